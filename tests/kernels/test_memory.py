"""Memory that is lent and used again."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from kuramotognn.kernels import memory
from kuramotognn.kernels.memory import SMALL, Pool

LARGE = SMALL  # numbers, of at least a byte each


def test_nothing_is_lent_twice() -> None:
    pool = Pool()
    first, second = pool.empty(LARGE, torch.float32), pool.empty(LARGE, torch.float32)
    first.fill_(1.0)
    second.fill_(2.0)
    assert (first == 1).all()


@pytest.mark.parametrize(
    "make_view", [lambda t: t[10:], lambda t: t.view(2, -1), lambda t: t.numpy()[5:], torch.detach]
)
def test_a_view_keeps_its_memory(make_view) -> None:
    pool = Pool()
    tensor = pool.empty(LARGE, torch.float32).fill_(1.0)
    view = make_view(tensor)
    del tensor
    pool.empty(LARGE, torch.float32).fill_(2.0)
    assert (view == 1).all()


def test_what_was_dropped_is_lent_again() -> None:
    pool = Pool()
    address = pool.empty(LARGE, torch.float32).data_ptr()
    assert pool.empty(LARGE - 7, torch.float32).data_ptr() == address


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.uint8])
@pytest.mark.parametrize("count", [0, 1, 1000, SMALL, SMALL + 1, 10 * SMALL, 5_000_000])
def test_size_type_and_alignment(count: int, dtype: torch.dtype) -> None:
    tensor = Pool().empty(count, dtype)
    assert (tensor.shape, tensor.dtype, tensor.data_ptr() % 64) == ((count,), dtype, 0)
    tensor.fill_(1)
    assert tensor.sum(dtype=torch.float64) == count


def test_free_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "RETAINED", 10 * SMALL)
    pool = Pool()
    for size in range(2 * SMALL, 20 * SMALL, SMALL):
        pool.empty(size, torch.uint8)
        assert sum(size * len(blocks) for size, blocks in pool.free.items()) <= 10 * SMALL


def test_four_threads_never_share_a_block() -> None:
    pool = Pool()

    def work(owner: int) -> bool:
        """Whether every block kept the mark of its owner for as long as it was held."""
        draw, held, intact = random.Random(owner), [], True
        for mark in range(300):
            tensor = pool.empty(LARGE * draw.choice([1, 2, 3]), torch.int64)
            tensor[::1000] = 10_000 * owner + mark
            held.append((tensor, 10_000 * owner + mark))
            if len(held) > 4:
                old, written = held.pop(draw.randrange(5))
                intact = intact and bool((old[::1000] == written).all())
        return intact

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(work, range(1, 5))) == [True] * 4
