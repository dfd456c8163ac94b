"""A numba type for one tile row of a state: an LLVM vector that stays in registers.

Left to itself LLVM vectorises the same loops, but with alias checks, scalar remainders and the accumulator in memory:
about twice as slow at four neighbours a row.
"""

import operator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

TILE_BYTES = 64


def lanes(dtype: type[np.floating[Any]]) -> int:
    """Columns per tile, L."""
    return TILE_BYTES // np.dtype(dtype).itemsize


class Lanes(types.Type):
    """L numbers of one row, held in vector registers."""

    def __init__(self, dtype):
        self.dtype = dtype
        super().__init__(f"Lanes({dtype}, {TILE_BYTES})")


def _vector_type(ty):
    scalar = ir.FloatType() if ty.dtype == types.float32 else ir.DoubleType()
    return ir.VectorType(scalar, TILE_BYTES // (ty.dtype.bitwidth // 8))


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, ty):
        super().__init__(manager, ty, _vector_type(ty))


def _splat(builder, vector_type, scalar):
    first = builder.insert_element(ir.Constant(vector_type, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), vector_type.count), [0] * vector_type.count)
    return builder.shuffle_vector(first, ir.Constant(vector_type, ir.Undefined), zeros)


def _row_pointer(context, builder, array_type, array, index_type, index):
    """Pointer to the lanes at array[index], where index covers every dimension but the last."""
    view = context.make_array(array_type)(context, builder, value=array)
    parts = [index]
    part_types = [index_type]
    if isinstance(index_type, types.BaseTuple):
        parts, part_types = [builder.extract_value(index, n) for n in range(len(index_type))], list(index_type)
    offset = ir.Constant(context.get_value_type(types.intp), 0)
    for n, (part, ty) in enumerate(zip(parts, part_types, strict=True)):
        part = context.cast(builder, part, ty, types.intp)
        offset = builder.add(offset, builder.mul(part, builder.extract_value(view.strides, n)))
    raw = builder.gep(builder.bitcast(view.data, ir.IntType(8).as_pointer()), [offset])
    return builder.bitcast(raw, _vector_type(Lanes(array_type.dtype)).as_pointer())


@intrinsic
def load(typingctx, array, index):
    """The lanes at array[index]; index covers every dimension but the last."""

    def codegen(context, builder, sig, args):
        out = builder.load(_row_pointer(context, builder, array, args[0], index, args[1]))
        out.align = array.dtype.bitwidth // 8
        return out

    return Lanes(array.dtype)(array, index), codegen


@intrinsic
def store(typingctx, array, index, value):
    """array[index] = value."""

    def codegen(context, builder, sig, args):
        pointer = _row_pointer(context, builder, array, args[0], index, args[1])
        builder.store(args[2], pointer, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, index, value), codegen


@intrinsic
def at(typingctx, array, index):
    """array[index] of a vector, without the test for a negative index."""

    def codegen(context, builder, sig, args):
        data = context.make_array(array)(context, builder, value=args[0]).data
        return builder.load(builder.gep(data, [context.cast(builder, args[1], index, types.intp)]))

    return array.dtype(array, index), codegen


@intrinsic
def increase(typingctx, array, index, value):
    """array[index] += value of a vector, without the test for a negative index."""

    def codegen(context, builder, sig, args):
        data = context.make_array(array)(context, builder, value=args[0]).data
        pointer = builder.gep(data, [context.cast(builder, args[1], index, types.intp)])
        builder.store(builder.fadd(builder.load(pointer), args[2]), pointer)
        return context.get_dummy_value()

    return types.void(array, index, array.dtype), codegen


@intrinsic
def splat(typingctx, scalar):
    """One number in every lane."""

    def codegen(context, builder, sig, args):
        return _splat(builder, _vector_type(sig.return_type), args[0])

    return Lanes(scalar)(scalar), codegen


@intrinsic
def total(typingctx, x):
    """Sum of the lanes, by halving: a fixed order."""

    def codegen(context, builder, sig, args):
        vector, count = args[0], _vector_type(x).count
        while count > 1:
            count //= 2
            halves = [ir.Constant(ir.VectorType(ir.IntType(32), count), list(range(n, n + count))) for n in (0, count)]
            low, high = (builder.shuffle_vector(vector, vector, half) for half in halves)
            vector = builder.fadd(low, high)
        return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))

    return x.dtype(x), codegen


def _elementwise(name):
    """Code for an LLVM intrinsic that maps lanes to lanes."""

    def codegen(context, builder, sig, args):
        kind = args[0].type
        full = f"llvm.{name}.v{kind.count}{kind.element.intrinsic_name}"
        function = builder.module.globals.get(full) or ir.Function(
            builder.module, ir.FunctionType(kind, [kind] * len(args)), full
        )
        return builder.call(function, args)

    return codegen


@intrinsic
def fma(typingctx, a, b, c):
    """a * b + c, fused where the processor can."""
    return a(a, b, c), _elementwise("fmuladd")


@intrinsic
def nearest(typingctx, x):
    """Round to the nearest integer."""
    return x(x), _elementwise("rint")


@intrinsic
def floor(typingctx, x):
    """Round down."""
    return x(x), _elementwise("floor")


for _operator, _instruction in ((operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul")):

    @infer_global(_operator)
    class _LanesBinary(AbstractTemplate):
        def generic(self, args, kws):
            same_lanes = isinstance(args[0], Lanes) and args[0] == args[1]
            return signature(args[0], *args) if same_lanes else None

    @lower_builtin(_operator, Lanes, Lanes)
    def _lower_binary(context, builder, sig, args, instruction=_instruction):
        return getattr(builder, instruction)(*args)
