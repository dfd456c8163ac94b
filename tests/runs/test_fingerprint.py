"""Results of code that computes other numbers are found by their fingerprint."""

import pytest

from kuramotognn import KuramotoGNN
from kuramotognn.config.resolve import resolve
from kuramotognn.runs.fingerprint import _fingerprint, fingerprint, same_numbers


def of(**settings: object) -> tuple[float, ...]:
    return fingerprint(resolve({}, {"recommended": False} | settings).config)


@pytest.fixture(autouse=True)
def forget() -> None:
    _fingerprint.cache_clear()


@pytest.mark.parametrize("model", ["kuramotognn", "graphcon", "gcnii", "gat"])
def test_it_is_the_same_whenever_it_is_computed(model: str) -> None:
    first = of(model={"name": model})
    _fingerprint.cache_clear()
    assert len(first) == 6
    assert of(model={"name": model}) == first


def test_data_split_and_seed_take_no_part() -> None:
    assert of(dataset="citeseer", first_split=3, seed=5) == of(dataset="cora")


def test_other_arithmetic_and_another_random_stream_change_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = of()
    forward = KuramotoGNN.forward
    monkeypatch.setattr(KuramotoGNN, "forward", lambda self, *inputs: 1.01 * forward(self, *inputs))
    _fingerprint.cache_clear()
    assert not same_numbers(of(), before)


def test_rounding_of_another_processor_does_not_change_it() -> None:
    first = of()
    assert same_numbers([number * (1 + 1e-5) for number in first], first)
    assert not same_numbers(first[:-1], first)
    assert not same_numbers((), first)


def test_settings_that_cannot_be_trained_have_none() -> None:
    assert of(model={"coupling": 1e38}) == ()
