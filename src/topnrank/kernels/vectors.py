"""Operations on SIMD registers that Numba does not generate by itself, written as LLVM vectors.

An LLVM vector is not tied to a machine: where registers are narrower, the compiler splits it. Every sum runs over its terms
from first to last, so the bits do not depend on threads, blocks or tiles.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

ROWS, WIDTH = 6, 16
"""Shape of the tile whose sums stay in registers: 6 x 16 of float32 are 12 of the 16 registers of AVX2."""
MASK = 32
"""Number of scores that are compared at once."""
_LANES = 8
_LINE, FETCHED = 64, 4
"""Bytes of a cache line, and number of lines that are prefetched."""
_BIT, _I32, _I64, _FLOAT = ir.IntType(1), ir.IntType(32), ir.IntType(64), ir.FloatType()


def _spread(builder: Any, value: Any, lanes: int) -> Any:
    """A vector with `value` in each lane."""
    kind = ir.VectorType(_FLOAT, lanes)
    single = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.Constant(_I32, 0))
    return builder.shuffle_vector(single, single, ir.Constant(ir.VectorType(_I32, lanes), [0] * lanes))


def _vector_at(builder: Any, data: Any, place: Any, lanes: int) -> Any:
    """A pointer to the vector that begins at an element."""
    return builder.bitcast(builder.gep(data, [place]), ir.VectorType(_FLOAT, lanes).as_pointer())


@intrinsic
def at_least(context, row, start, threshold):
    """Bit b is set where row[start + b] >= threshold, for b < MASK; not where it is NaN."""

    def emit(context, builder, signature, args):
        data = context.make_array(row)(context, builder, args[0]).data
        values = builder.load(_vector_at(builder, data, args[1], MASK), align=4)
        good = builder.fcmp_ordered(">=", values, _spread(builder, args[2], MASK))
        return builder.zext(builder.bitcast(good, ir.IntType(MASK)), _I64)

    return types.int64(row, types.intp, types.float32), emit


@intrinsic
def lowest(context, mask):
    """Number of the lowest bit that is set; `mask` is not 0."""

    def emit(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(_BIT, 1))

    return types.int64(types.int64), emit


@intrinsic
def count(context, mask):
    """Number of bits that are set."""

    def emit(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.int64(types.int64), emit


@intrinsic
def lane_maxima(context, row, start, blocks, out, place):
    """out[place + b] = the highest of row[start + b], row[start + b + MASK], ... of so many blocks, without NaN."""

    def emit(context, builder, signature, args):
        data, target = (context.make_array(kind)(context, builder, args[n]).data for n, kind in ((0, row), (3, out)))
        vector = ir.VectorType(_FLOAT, MASK)
        best = cgutils.alloca_once(builder, vector)
        builder.store(ir.Constant(vector, [float("-inf")] * MASK), best)
        with cgutils.for_range(builder, args[2]) as loop:
            at = builder.add(args[1], builder.mul(loop.index, ir.Constant(_I64, MASK)))
            values, known = builder.load(_vector_at(builder, data, at, MASK), align=4), builder.load(best)
            builder.store(builder.select(builder.fcmp_ordered(">", values, known), values, known), best)
        builder.store(builder.load(best), _vector_at(builder, target, args[4], MASK), align=4)
        return context.get_dummy_value()

    return types.void(row, types.intp, types.intp, out, types.intp), emit


@intrinsic
def fetch(context, block, row):
    """Prefetches block[row], at most its first FETCHED cache lines; changes nothing."""

    def emit(context, builder, signature, args):
        array, byte = context.make_array(block)(context, builder, args[0]), ir.IntType(8).as_pointer()
        stride = cgutils.unpack_tuple(builder, array.strides, 2)[0]
        begin = builder.gep(builder.bitcast(array.data, byte), [builder.mul(stride, args[1])])
        kind = ir.FunctionType(ir.VoidType(), [byte, _I32, _I32, _I32])
        ahead = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        read_often_data = [ir.Constant(_I32, number) for number in (0, 3, 1)]
        for line in range(FETCHED):  # no loop in the machine code: it would cost more than it brings
            start = ir.Constant(_I64, _LINE * line)
            with builder.if_then(builder.icmp_signed("<", start, stride), likely=True):
                builder.call(ahead, [builder.gep(begin, [start]), *read_often_data])
        return context.get_dummy_value()

    assert (block.layout, block.ndim) == ("C", 2)
    return types.void(block, types.intp), emit


def _row_numbers(builder: Any, first: Any, last: Any) -> list[Any]:
    """ROWS rows from `first`; those beyond `last` are `last` once more, so that no tile is special."""
    rows = [builder.add(first, ir.Constant(_I64, r)) for r in range(ROWS)]
    return [builder.select(builder.icmp_signed("<", row, last), row, last) for row in rows]


def _tile_sums(builder: Any, own: list[Any], panel: Any, k: Any) -> list[list[Any]]:
    """Where the sums of a tile are: two vectors for each of the rows whose factors begin at `own`."""
    vector, halves = ir.VectorType(_FLOAT, _LANES), range(WIDTH // _LANES)

    def pieces(row: Any) -> list[Any]:
        begin = builder.mul(row, ir.Constant(_I64, WIDTH))
        places = [builder.add(begin, ir.Constant(_I64, half * _LANES)) for half in halves]
        return [builder.load(_vector_at(builder, panel, place, _LANES), align=4) for place in places]

    sums = [[cgutils.alloca_once(builder, vector) for _ in halves] for _ in own]
    for half, piece in enumerate(pieces(ir.Constant(_I64, 0))):
        for row in sums:
            builder.store(piece, row[half])
    kind = ir.FunctionType(vector, [vector] * 3)
    fused = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fmuladd.v{_LANES}f32")
    with cgutils.for_range(builder, k) as loop:
        parts = pieces(builder.add(loop.index, ir.Constant(_I64, 1)))
        for start, row in zip(own, sums, strict=True):
            x = _spread(builder, builder.load(builder.gep(start, [loop.index])), _LANES)
            for part, total in zip(parts, row, strict=True):
                builder.store(builder.call(fused, [x, part, builder.load(total)]), total)
    return sums


@intrinsic
def multiply(context, users, first, last, panel, out, column):
    """out[r, column : column + WIDTH] = panel[0] + users[r] @ panel[1:] for the ROWS rows `first` to at most `last`."""

    def emit(context, builder, signature, args):
        kinds = ((0, users), (3, panel), (4, out))
        own, items, target = (context.make_array(kind)(context, builder, args[n]) for n, kind in kinds)
        k, width = (cgutils.unpack_tuple(builder, array.shape, 2)[1] for array in (own, target))
        rows = _row_numbers(builder, args[1], args[2])
        sums = _tile_sums(builder, [builder.gep(own.data, [builder.mul(row, k)]) for row in rows], items.data, k)
        for row, halves in zip(rows, sums, strict=True):
            for half, total in enumerate(halves):
                column = builder.add(args[5], ir.Constant(_I64, half * _LANES))
                place = builder.add(builder.mul(row, width), column)
                builder.store(builder.load(total), _vector_at(builder, target.data, place, _LANES), align=4)
        return context.get_dummy_value()

    for array in (users, panel, out):
        assert (array.layout, array.ndim) == ("C", 2)
    return types.void(users, types.intp, types.intp, panel, out, types.intp), emit
