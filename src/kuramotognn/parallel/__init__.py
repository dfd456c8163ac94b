"""One graph over many processes, on torch.distributed: the numbers of one process, a part of its memory each."""

from kuramotognn.parallel.distribute import distribute

__all__ = ["distribute"]
