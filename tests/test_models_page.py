from tools.write_models import PAGE, page


def test_the_page_of_models_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python tools/write_models.py`"
