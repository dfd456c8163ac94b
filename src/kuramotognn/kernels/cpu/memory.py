"""Bare pointers for kernels, to numbers or to rows of lanes.

Kernels walk pointers (:func:`pointer`) to rows of a width that is part of the type: numba's arrays would be counted at
every call of a helper, which empties the registers.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

from kuramotognn.kernels.cpu.lanes import (
    UNIT_BYTES,
    Lanes,
    halved,
    lanes_of,
    register_sum,
    registers,
    side_by_side,
    transposed_square,
)

LINE_BYTES = 64


class Pointer(types.Type):
    """Where items lie one after the other: numbers, or lanes."""

    def __init__(self, item):
        self.item = item
        super().__init__(f"Pointer({item})")

    @property
    def stride(self):
        """Bytes from one item to the next."""
        return self.item.row_bytes if isinstance(self.item, Lanes) else self.item.bitwidth // 8


_BYTE_POINTER = ir.IntType(8).as_pointer()


@register_model(Pointer)
class _PointerModel(models.PrimitiveModel):
    def __init__(self, manager, ty):
        super().__init__(manager, ty, _BYTE_POINTER)


@intrinsic
def pointer(typingctx, array):
    """To the first item of an array, which the caller keeps alive (:func:`until_here`); None for None."""
    if isinstance(array, types.NoneType):
        return array(array), lambda context, builder, sig, args: context.get_dummy_value()
    item = array.dtype
    if isinstance(item, types.Record):
        row = item.typeof("lanes")
        item = Lanes(row.dtype, row.shape[0])

    def codegen(context, builder, sig, args):
        return builder.bitcast(context.make_array(array)(context, builder, value=args[0]).data, _BYTE_POINTER)

    return Pointer(item)(array), codegen


@intrinsic
def until_here(typingctx, array):
    """Keep an array that a kernel made: numba frees it after its last mention, whoever still points to it."""
    return types.void(array), lambda context, builder, sig, args: context.get_dummy_value()


@intrinsic
def lane_count(typingctx, like):
    """How many lanes `like` points to, a constant."""
    width = like.item.width
    return types.int64(like), lambda context, builder, sig, args: context.get_constant(types.int64, width)


def _item(context, builder, sig, args):
    """Address of the item that the first two arguments, a pointer and an index, mean."""
    index = context.cast(builder, args[1], sig.args[1], types.intp)
    return builder.gep(args[0], [builder.mul(index, ir.Constant(index.type, sig.args[0].stride))])


def _address(builder, address, kind, offset=0):
    """`offset` values of this LLVM type further on."""
    address = builder.bitcast(address, kind.as_pointer())
    return builder.gep(address, [ir.Constant(ir.IntType(64), offset)]) if offset else address


def _load(context, builder, address, ty):
    if not isinstance(ty, Lanes):
        out = builder.load(_address(builder, address, context.get_value_type(ty)))
        out.align = ty.bitwidth // 8
        return out
    vectors = [builder.load(_address(builder, address, ty.vector, place)) for place in range(ty.registers)]
    for vector in vectors:
        vector.align = ty.dtype.bitwidth // 8
    return lanes_of(builder, vectors)


def _store(builder, address, ty, value):
    if not isinstance(ty, Lanes):
        builder.store(value, _address(builder, address, value.type), align=ty.bitwidth // 8)
        return []
    return [
        builder.store(vector, _address(builder, address, vector.type, place), align=ty.dtype.bitwidth // 8)
        for place, vector in enumerate(registers(builder, value))
    ]


@intrinsic
def ahead(typingctx, items, count):
    """A pointer `count` items further on."""
    return items(items, count), _item


@intrinsic
def ahead_if(typingctx, wanted, items, count):
    """The same, or None where `wanted` is None, for the compiler to see."""
    if isinstance(wanted, types.NoneType):
        return wanted(wanted, items, count), lambda context, builder, sig, args: context.get_dummy_value()

    def codegen(context, builder, sig, args):
        return _item(context, builder, items(items, count), args[1:])

    return items(wanted, items, count), codegen


@intrinsic
def rows_from(typingctx, numbers, index, like):
    """A pointer to the rows that begin at numbers[index], of as many lanes as `like` points to."""
    return like(numbers, index, like), _item


@intrinsic
def at(typingctx, items, index):
    """items[index]."""

    def codegen(context, builder, sig, args):
        return _load(context, builder, _item(context, builder, sig, args), items.item)

    return items.item(items, index), codegen


@intrinsic
def put(typingctx, items, index, value):
    """items[index] = value."""

    def codegen(context, builder, sig, args):
        _store(builder, _item(context, builder, sig, args), items.item, args[2])
        return context.get_dummy_value()

    return types.void(items, index, items.item), codegen


@intrinsic
def put_past(typingctx, items, index, value):
    """items[index] = value in memory, past the caches, where nobody looks for it soon; items lie on whole units."""

    def codegen(context, builder, sig, args):
        for stored in _store(builder, _item(context, builder, sig, args), items.item, args[2]):
            stored.align = UNIT_BYTES
            stored.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
        return context.get_dummy_value()

    return types.void(items, index, items.item), codegen


@intrinsic
def settle(typingctx):
    """Wait until what `put_past` wrote can be seen by every thread."""

    def codegen(context, builder, sig, args):
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def increase(typingctx, numbers, index, value):
    """numbers[index] += value."""

    def codegen(context, builder, sig, args):
        address = _item(context, builder, sig, args)
        before = _load(context, builder, address, numbers.item)
        _store(builder, address, numbers.item, builder.fadd(before, args[2]))
        return context.get_dummy_value()

    return types.void(numbers, index, numbers.item), codegen


@intrinsic
def lanes_at(typingctx, numbers, index, like):
    """The lanes that begin at numbers[index], as many as `like` points to."""

    def codegen(context, builder, sig, args):
        return _load(context, builder, _item(context, builder, sig, args), like.item)

    return like.item(numbers, index, like), codegen


@intrinsic
def put_lanes(typingctx, numbers, index, value):
    """numbers[index], numbers[index + 1], ... = value."""

    def codegen(context, builder, sig, args):
        _store(builder, _item(context, builder, sig, args), value, args[2])
        return context.get_dummy_value()

    return types.void(numbers, index, value), codegen


@intrinsic
def put_transposed(typingctx, target, target_pitch, source, source_pitch, like):
    """target = source transposed: squares of the lanes of one register, rows so many numbers (intp) apart."""

    def codegen(context, builder, sig, args):
        def row(items, pitch, number):
            return builder.gep(items, [builder.mul(pitch, ir.Constant(pitch.type, number * target.stride))])

        to, to_pitch, start, pitch, _ = args
        lanes = [_load(context, builder, row(start, pitch, k), like.item) for k in range(like.item.width)]
        vectors = [vector for value in lanes for vector in registers(builder, value)]
        for k, vector in enumerate(transposed_square(builder, vectors)):
            _store(builder, row(to, to_pitch, k), like.item, lanes_of(builder, [vector]))
        return context.get_dummy_value()

    return types.void(target, types.intp, source, types.intp, like), codegen


@intrinsic(prefer_literal=True)
def prefetch(typingctx, items, index, count):
    """Bring `count` (a literal) items from `index` on near: they are needed soon."""
    return _prefetching(items, index, count, locality=3)


@intrinsic(prefer_literal=True)
def prefetch_once(typingctx, items, index, count):
    """The same for items that are needed once: they push nothing else out of the larger caches."""
    return _prefetching(items, index, count, locality=0)


def _prefetching(items, index, count, locality):
    def codegen(context, builder, sig, args):
        word = ir.IntType(32)
        function = builder.module.globals.get("llvm.prefetch.p0") or ir.Function(
            builder.module, ir.FunctionType(ir.VoidType(), [_BYTE_POINTER, word, word, word]), "llvm.prefetch.p0"
        )
        first = _item(context, builder, sig, args)
        for offset in range(0, count.literal_value * items.stride, LINE_BYTES):
            line = builder.gep(first, [ir.Constant(ir.IntType(64), offset)])
            builder.call(function, [line, *(ir.Constant(word, flag) for flag in (0, locality, 1))])
        return context.get_dummy_value()

    return types.void(items, index, count), codegen


@intrinsic
def increase_two(typingctx, numbers, index, a, b):
    """numbers[index] += total(a), numbers[index + 1] += total(b): less work than two totals."""

    def codegen(context, builder, sig, args):
        address, two = _item(context, builder, sig, args), Lanes(numbers.item, 2)
        sums = side_by_side(builder, *(register_sum(builder, value) for value in args[2:]))
        while sums.type.count > 2:
            sums = halved(builder, sums)
        before = builder.extract_value(_load(context, builder, address, two), 0)
        _store(builder, address, two, lanes_of(builder, [builder.fadd(before, sums)]))
        return context.get_dummy_value()

    return types.void(numbers, index, a, b), codegen
