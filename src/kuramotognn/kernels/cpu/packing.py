"""Between the caller's rows and the kernels' tiles."""

from kuramotognn.kernels.cpu.jit import kernel, share_rows
from kuramotognn.kernels.cpu.lanes import load, store


def pack(x, layout, out):
    """out [T, N, L] = x [N, d]: whole rows at a time, so that each cache line is read once."""
    if x.shape[1] % out.shape[2]:
        share_rows(_pack, layout.chunks, x, layout.order, out)
    else:
        share_rows(_pack_whole, layout.chunks, x.reshape(x.shape[0], -1, out.shape[2]), layout.order, out)


def unpack(tiles, layout, out):
    """out [N, d] = tiles [T, N, L]."""
    if out.shape[1] % tiles.shape[2]:
        share_rows(_unpack, layout.chunks, tiles, layout.order, out)
    else:
        share_rows(_unpack_whole, layout.chunks, tiles, layout.order, out.reshape(out.shape[0], -1, tiles.shape[2]))


@kernel
def _pack(lo, hi, x, order, out):
    """out [T, N, L] = the columns of x [N, d] tile by tile, rows in the layout's order, padded with zeros."""
    tile, d = out.shape[2], x.shape[1]
    for i in range(lo, hi):
        row = order[i]
        for t in range(out.shape[0]):
            width = min(tile, d - t * tile)
            for k in range(width):
                out[t, i, k] = x[row, t * tile + k]
            for k in range(width, tile):
                out[t, i, k] = 0


@kernel
def _pack_whole(lo, hi, x, order, out):
    """The same for x [N, T, L], whose columns fill the tiles."""
    for i in range(lo, hi):
        for t in range(out.shape[0]):
            store(out, (t, i), load(x, (order[i], t)))


@kernel
def _unpack_whole(lo, hi, tiles, order, out):
    for i in range(lo, hi):
        for t in range(tiles.shape[0]):
            store(out, (order[i], t), load(tiles, (t, i)))


@kernel
def _unpack(lo, hi, tiles, order, out):
    tile, d = tiles.shape[2], out.shape[1]
    for i in range(lo, hi):
        row = order[i]
        for t in range(tiles.shape[0]):
            for k in range(min(tile, d - t * tile)):
                out[row, t * tile + k] = tiles[t, i, k]
