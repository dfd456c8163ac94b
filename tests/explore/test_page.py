import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
import torch

from kuramotognn import NodeDataset
from kuramotognn.explore.graph_layout import make_layout
from kuramotognn.explore.moving_picture import to_gif
from kuramotognn.explore.page import page_data, to_page
from kuramotognn.explore.palette import class_colours, phase_colours
from kuramotognn.explore.recording import record
from tests.explore.oscillators import nodes_without_edges, uncoupled

X0 = torch.rand(12, 3, generator=torch.Generator().manual_seed(0)) * 3
HOSTILE = ("</script><img src=x onerror=alert(1)>", "<b>bold</b> & 'quoted' \"twice\"")


class Reader(HTMLParser):
    """Collects elements, what they would fetch, and the contents of scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.fetched: list[str] = []
        self.scripts: list[str] = []
        self.words, self.in_script = "", False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.in_script = tag == "script"
        if self.in_script:
            self.scripts.append("")
        self.fetched += [f"{tag} {value}" for name, value in attrs if name in ("src", "href") and value != "data:,"]

    def handle_data(self, text: str) -> None:
        self.words += text
        if self.in_script:
            self.scripts[-1] += text

    def handle_endtag(self, tag: str) -> None:
        self.in_script = False


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    return reader


def arguments(data: NodeDataset) -> tuple[Any, ...]:
    trained = uncoupled(data)
    layout = make_layout(trained.task.graph)
    return data, layout, [record(trained, layout.nodes)]


@pytest.fixture(scope="module")
def hostile() -> str:
    return to_page(*arguments(nodes_without_edges(X0, HOSTILE, prefix=HOSTILE[0])))


def test_names_are_text_and_never_markup(hostile: str) -> None:
    reader = read(hostile)
    assert "img" not in reader.tags
    assert "b" not in reader.tags
    assert HOSTILE[1] in reader.words
    assert json.loads(reader.scripts[0])["classes"] == list(HOSTILE)
    assert json.loads(reader.scripts[0])["ids"][0] == f"{HOSTILE[0]}0"


def test_the_page_fetches_nothing_and_allows_its_own_script_only(hostile: str) -> None:
    reader = read(hostile)
    assert reader.fetched == []
    digest = base64.b64encode(hashlib.sha256(reader.scripts[1].encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', hostile)
    assert policy is not None
    assert policy[1].startswith("default-src 'none';")
    assert f"script-src 'sha256-{digest}'" in policy[1]


def test_packed_phases_give_the_order_parameter_of_uncoupled_oscillators() -> None:
    data = page_data(*arguments(nodes_without_edges(X0)))["models"][0]
    stored = np.frombuffer(base64.b64decode(data["phases"]["data"]), dtype="<i2")
    phases = stored.reshape(len(data["channels"]), len(data["times"]), 12) * data["unit"]
    x = X0.double().numpy()[None] * (1 + np.array(data["times"]))[:, None, None]
    expected = np.abs(np.exp(1j * x).mean(axis=1))[:, data["channels"]].T
    np.testing.assert_allclose(np.abs(np.exp(1j * phases).mean(axis=-1)), expected, atol=1e-3)
    np.testing.assert_allclose(np.hypot(*np.moveaxis(np.array(data["order"]), -1, 0)), expected, atol=1e-5)


def test_a_thinned_graph_says_so() -> None:
    data, _, _ = arguments(nodes_without_edges(X0))
    trained = uncoupled(data)
    layout = make_layout(trained.task.graph, most_nodes=5)
    page = to_page(data, layout, [record(trained, layout.nodes)])
    assert "5 of 12 nodes and 0 of 0 edges are shown: the nodes that random walks" in " ".join(page.split())


def test_the_moving_picture_is_an_animation_that_repeats() -> None:
    picture = to_gif(*arguments(nodes_without_edges(X0)))
    assert picture.startswith(b"GIF89a")
    assert b"NETSCAPE2.0" in picture
    assert picture.count(b"\x21\xf9\x04") > 20


def test_colours_of_phases_are_equally_light() -> None:
    """By the relative luminance of WCAG."""
    channels = np.array([[int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)] for colour in phase_colours()])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    luminance = linear @ [0.2126, 0.7152, 0.0722]
    assert luminance.max() < 1.35 * luminance.min()


@pytest.mark.parametrize("count", [2, 8, 9, 40])
def test_classes_have_different_colours(count: int) -> None:
    assert len(set(class_colours(count))) == count
