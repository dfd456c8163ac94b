"""A numba type for one row of a tile: LLVM vectors that stay in registers.

Left to itself LLVM vectorises the same loops, but with alias checks, scalar remainders and the accumulator in memory:
about twice as slow at four neighbours a row. How lanes come from memory and go there is in `memory`.
"""

import operator
from functools import lru_cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

from kuramotognn.kernels.cpu.layout import Array

UNIT_BYTES = 32  # Half a cache line, and a vector register; a tile is one to three units wide.


def unit(dtype: type[np.floating[Any]]) -> int:
    """Columns in a unit."""
    return UNIT_BYTES // np.dtype(dtype).itemsize


@lru_cache
def _row_type(dtype: np.dtype[Any], width: int) -> np.dtype[Any]:
    return np.dtype([("lanes", dtype, (width,))])


def rows(array: Array, width: int) -> Array:
    """A contiguous array as a flat array of rows of `width` numbers, for pointers to them."""
    return array.reshape(-1).view(_row_type(array.dtype, width))


@lru_cache
def like(dtype: np.dtype[Any], units: int = 1) -> Array:
    """No rows at all, of so many units: what tells a kernel the lanes to use."""
    return rows(np.empty(0, dtype), units * unit(dtype.type))


class Lanes(types.Type):
    """The numbers of one row, held in vector registers."""

    def __init__(self, dtype, width):
        self.dtype, self.width = dtype, width
        super().__init__(f"Lanes({dtype}, {width})")

    @property
    def vector(self):
        """The LLVM type of a register."""
        scalar = ir.FloatType() if self.dtype == types.float32 else ir.DoubleType()
        return ir.VectorType(scalar, min(self.width, UNIT_BYTES * 8 // self.dtype.bitwidth))

    @property
    def words(self):
        """A register as integers."""
        return ir.VectorType(ir.IntType(self.dtype.bitwidth), self.vector.count)

    @property
    def registers(self):
        """How many registers there are. One wide vector would be left to LLVM, which cuts into powers of two."""
        return self.width // self.vector.count

    @property
    def first(self):
        """The lanes of one register."""
        return Lanes(self.dtype, self.vector.count)

    @property
    def row_bytes(self):
        """Bytes from one row to the next."""
        return self.width * self.dtype.bitwidth // 8


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, ty):
        super().__init__(manager, ty, ir.ArrayType(ty.vector, ty.registers))


def registers(builder, value):
    """The vectors of lanes."""
    return [builder.extract_value(value, place) for place in range(value.type.count)]


def lanes_of(builder, vectors):
    """Lanes of these vectors."""
    value = ir.Constant(ir.ArrayType(vectors[0].type, len(vectors)), ir.Undefined)
    for place, vector in enumerate(vectors):
        value = builder.insert_value(value, vector, place)
    return value


def _by_register(function):
    """Code for lanes to lanes from function(builder, lanes type, vector, ...)."""

    def codegen(context, builder, sig, args):
        columns = zip(*(registers(builder, arg) for arg in args), strict=True)
        return lanes_of(builder, [function(builder, sig.return_type, *vectors) for vectors in columns])

    return codegen


@intrinsic
def opaque(typingctx, number):
    """The same number, of which the compiler knows nothing: a loop that counts with it is not unrolled."""

    def codegen(context, builder, sig, args):
        kind = ir.FunctionType(args[0].type, [args[0].type])
        return builder.asm(kind, "", "=r,0", args, False)

    return number(number), codegen


@intrinsic
def splat(typingctx, like, scalar):
    """One number in every lane, as many as `like` has or points to."""
    lanes = getattr(like, "item", like)

    def codegen(context, builder, sig, args):
        number, nothing = context.cast(builder, args[1], scalar, lanes.dtype), ir.Constant(lanes.vector, ir.Undefined)
        first = builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
        return lanes_of(builder, [_picked(builder, first, nothing, [0] * nothing.type.count)] * lanes.registers)

    return lanes(like, scalar), codegen


def _picked(builder, left, right, places):
    """Lanes of two vectors; those of the right one are counted on from those of the left one."""
    return builder.shuffle_vector(left, right, ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places))


def halved(builder, vector):
    """Its first half plus its second."""
    count = vector.type.count // 2
    low, high = (_picked(builder, vector, vector, list(range(n, n + count))) for n in (0, count))
    return builder.fadd(low, high)


def transposed_square(builder, vectors):
    """As many vectors as each has lanes: the lanes numbered k of all of them, for every k."""
    size = len(vectors)
    half = size // 2
    while half:  # Blocks of `half` lanes change places between vectors that are `half` apart.
        even = [lane // half % 2 == 0 for lane in range(size)]
        to_low = [lane if even[lane] else size + lane - half for lane in range(size)]
        to_high = [lane + half if even[lane] else size + lane for lane in range(size)]
        pairs = [(k, k + half) for k in range(size) if even[k]]
        for low, high in pairs:
            both = vectors[low], vectors[high]
            vectors[low], vectors[high] = (_picked(builder, *both, lanes) for lanes in (to_low, to_high))
        half //= 2
    return vectors


def register_sum(builder, value):
    """The registers of lanes added up, in order."""
    vector, *others = registers(builder, value)
    for other in others:
        vector = builder.fadd(vector, other)
    return vector


@intrinsic
def total(typingctx, x):
    """Sum of the lanes: registers in order, then by halving."""

    def codegen(context, builder, sig, args):
        vector = register_sum(builder, args[0])
        while vector.type.count > 1:
            vector = halved(builder, vector)
        return builder.extract_element(vector, ir.Constant(ir.IntType(32), 0))

    return x.dtype(x), codegen


@intrinsic
def folded(typingctx, a, b):
    """a * b, the registers added up in order: lanes of one register."""

    def codegen(context, builder, sig, args):
        (a0, *more_a), (b0, *more_b) = (registers(builder, arg) for arg in args)
        vector = builder.fmul(a0, b0)
        for other_a, other_b in zip(more_a, more_b, strict=True):
            vector = _call(builder, "fmuladd", other_a, other_b, vector)
        return lanes_of(builder, [vector])

    return a.first(a, b), codegen


@intrinsic
def folded_fma(typingctx, a, b, c):
    """The same, added to the one register of c."""

    def codegen(context, builder, sig, args):
        vector = builder.extract_value(args[2], 0)
        for each_a, each_b in zip(*(registers(builder, arg) for arg in args[:2]), strict=True):
            vector = _call(builder, "fmuladd", each_a, each_b, vector)
        return lanes_of(builder, [vector])

    return c(a, b, c), codegen


def _paired(builder, left, right, low, high):
    """Lanes `low` plus lanes `high` of every four of one vector and, as lanes 4 to 7, of the other."""
    count = left.type.count

    def places(chosen):
        return [block + lane % 4 + lane // 4 * count for block in range(0, count, 4) for lane in chosen]

    return builder.fadd(*(_picked(builder, left, right, places(chosen)) for chosen in (low, high)))


def side_by_side(builder, left, right):
    """Two vectors as one, whose even lanes have the sum of the first and whose odd lanes that of the second."""
    return _paired(builder, left, right, (0, 4, 1, 5), (2, 6, 3, 7))


@intrinsic
def four_totals(typingctx, a, b, c, d):
    """total(a), total(b), ... as four lanes: half the work of four totals."""

    def codegen(context, builder, sig, args):
        vectors = [register_sum(builder, value) for value in args]
        first, second = (side_by_side(builder, *vectors[n : n + 2]) for n in (0, 2))
        sums = _paired(builder, first, second, (0, 1, 4, 5), (2, 3, 6, 7))
        while sums.type.count > 4:
            sums = halved(builder, sums)
        return lanes_of(builder, [sums])

    return Lanes(a.dtype, 4)(a, b, c, d), codegen


def _call(builder, name, *vectors):
    """An LLVM intrinsic that maps vectors to a vector."""
    kind = vectors[0].type
    full = f"llvm.{name}.v{kind.count}{kind.element.intrinsic_name}"
    function = builder.module.globals.get(full) or ir.Function(
        builder.module, ir.FunctionType(kind, [kind] * len(vectors)), full
    )
    return builder.call(function, vectors)


def _elementwise(name):
    """Code for such an intrinsic on lanes."""
    return _by_register(lambda builder, _, *vectors: _call(builder, name, *vectors))


@intrinsic
def fma(typingctx, a, b, c):
    """a * b + c, fused where the processor can."""
    return a(a, b, c), _elementwise("fmuladd")


@intrinsic
def exact_fma(typingctx, a, b, c):
    """a * b + c with one rounding, on any processor."""
    return a(a, b, c), _elementwise("fma")


@intrinsic
def flip_odd(typingctx, x, whole):
    """x, with its sign flipped where the last bit of `whole` is set."""

    def flip(builder, lanes, vector, whole):
        raw, parity = (builder.bitcast(each, lanes.words) for each in (vector, whole))
        top = builder.shl(parity, ir.Constant(lanes.words, [lanes.dtype.bitwidth - 1] * lanes.words.count))
        return builder.bitcast(builder.xor(raw, top), lanes.vector)

    return x(x, whole), _by_register(flip)


@intrinsic
def times_two_to(typingctx, x, whole):
    """x times two to the power in the last bits of `whole`; the result must be an ordinary number."""

    def scale(builder, lanes, vector, whole):
        digits = 23 if lanes.dtype == types.float32 else 52
        raw, power = (builder.bitcast(each, lanes.words) for each in (vector, whole))
        exponent = builder.shl(power, ir.Constant(lanes.words, [digits] * lanes.words.count))
        return builder.bitcast(builder.add(raw, exponent), lanes.vector)

    return x(x, whole), _by_register(scale)


@intrinsic
def where_less(typingctx, x, low, less, other):
    """`less` in the lanes where x < low, `other` elsewhere and where x is NaN."""

    def choose(builder, _, x, low, less, other):
        return builder.select(builder.fcmp_ordered("<", x, low), less, other)

    return x(x, low, less, other), _by_register(choose)


for _operator, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):

    @infer_global(_operator)
    class _LanesBinary(AbstractTemplate):
        def generic(self, args, kws):
            same_lanes = isinstance(args[0], Lanes) and args[0] == args[1]
            return signature(args[0], *args) if same_lanes else None

    @lower_builtin(_operator, Lanes, Lanes)
    def _lower_binary(context, builder, sig, args, instruction=_instruction):
        apply = _by_register(lambda builder, _, *vectors: getattr(builder, instruction)(*vectors))
        return apply(context, builder, sig, args)


@infer_global(operator.neg)
class _LanesNegative(AbstractTemplate):
    def generic(self, args, kws):
        return signature(args[0], *args) if isinstance(args[0], Lanes) else None


@lower_builtin(operator.neg, Lanes)
def _lower_negative(context, builder, sig, args):
    return _by_register(lambda builder, _, vector: builder.fneg(vector))(context, builder, sig, args)
