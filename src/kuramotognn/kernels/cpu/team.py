"""Teams of threads that kernels share their work with: torch's own where they can be had, threads of ours elsewhere.

After each of its operators torch's idle threads spin for milliseconds, so as to start the next one at once. A second
pool would have to share the cores with them just then. GNU OpenMP's ``GOMP_parallel`` in the library that torch has
loaded hands work to the very threads that spin, in a few microseconds: compiled code calls it, not the interpreter.

Shares never add to the same number, so the bits do not depend on how many threads there are.
"""

import ctypes
import math
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from kuramotognn.kernels.cpu.jit import inner

__all__ = ["Team", "of_rows", "share", "team_for", "thread_count"]

WORTH_SHARING = 30_000  # Numbers to be touched that are worth waking the other threads for: ten microseconds of work.


class Team(NamedTuple):
    """Who does the work of a kernel."""

    launch: int  # address of a function like GOMP_parallel
    threads: int


def thread_count() -> int:
    """As many threads as torch uses: one setting for the whole process."""
    return torch.get_num_threads()


def team_for(work: float = math.inf) -> Team:
    """For a kernel that touches so many numbers."""
    return Team(_launchers.address, thread_count() if work > WORTH_SHARING else 1)


def of_rows(function):
    """What :func:`share` calls for ranges of rows, from a function of (first row, last row, *operands).

    Operands begin with the bounds of the ranges, which are of 64 bits for the function, as everybody else's are.
    """

    @inner
    def rows(number, worker, bounds, *operands):
        function(np.int64(bounds[number]), np.int64(bounds[number + 1]), *operands)

    return rows


@intrinsic
def share(typingctx, team, count, function, operands):
    """Call ``function(number, worker, *operands)`` for every number below `count`, on the threads of a team.

    A compiled function; whoever is free takes the next number. Workers are numbered from 0 on. Where a call raises, no
    further number is taken, and the kernel raises a RuntimeError.
    """
    signature = typingctx.resolve_function_type(function, (types.int64, types.int64, *operands.types), {})

    def codegen(context, builder, sig, args):
        compiled = function.dispatcher.get_compile_result(signature)
        context.active_code_library.add_linking_library(compiled.library)
        launch, threads = (builder.extract_value(args[0], place) for place in range(2))
        job = cgutils.alloca_once(builder, ir.LiteralStructType([_LONG, _LONG, _LONG, _LONG, args[3].type]))
        for place, value in ((_NEXT, _LONG(0)), (_WORKERS, _LONG(0)), (_FAILED, _LONG(0)), (_COUNT, args[1])):
            builder.store(value, _field(builder, job, place))
        builder.store(args[3], _field(builder, job, _OPERANDS))
        name = f"{builder.function.name}.member{len(builder.module.functions)}"
        member = ir.Function(builder.module, ir.FunctionType(ir.VoidType(), [_BYTES]), name)
        member.linkage = "internal"
        _member(context, member, job.type, compiled.fndesc, signature, len(operands))
        data, several = builder.bitcast(job, _BYTES), builder.icmp_signed(">", threads, threads.type(1))
        with builder.if_else(several) as (together, alone):
            with together:
                kind = ir.FunctionType(ir.VoidType(), [member.type, _BYTES, _WORD, _WORD])
                start = builder.inttoptr(launch, kind.as_pointer())
                builder.call(start, [member, data, builder.trunc(threads, _WORD), _WORD(0)])
            with alone:
                builder.call(member, [data])
        failed = builder.icmp_signed("!=", builder.load(_field(builder, job, _FAILED)), _LONG(0))
        with builder.if_then(failed, likely=False):
            words = (
                "a kernel could not finish its work; memory may have run out: take fewer channels or a smaller graph",
            )
            context.call_conv.return_user_exc(builder, RuntimeError, words)
        return context.get_dummy_value()

    return types.void(team, types.int64, function, operands), codegen


_WORD, _LONG, _BYTES = ir.IntType(32), ir.IntType(64), ir.IntType(8).as_pointer()
_NEXT, _WORKERS, _FAILED, _COUNT, _OPERANDS = range(5)  # what the members of a team see of their job


def _field(builder, job, place):
    return builder.gep(job, [_WORD(0), _WORD(place)])


def _member(context, member, kind, called, signature, operand_count):
    """The body of what each thread runs: take numbers until there are none."""
    entry, ask, work, leave = (member.append_basic_block(name) for name in ("entry", "ask", "work", "leave"))
    builder = ir.IRBuilder(entry)
    job = builder.bitcast(member.args[0], kind)
    worker = builder.atomic_rmw("add", _field(builder, job, _WORKERS), _LONG(1), "monotonic")
    count, operands = (builder.load(_field(builder, job, place)) for place in (_COUNT, _OPERANDS))
    builder.branch(ask)
    builder.position_at_end(ask)
    number = builder.atomic_rmw("add", _field(builder, job, _NEXT), _LONG(1), "monotonic")
    builder.cbranch(builder.icmp_signed("<", number, count), work, leave)
    builder.position_at_end(work)
    values = [number, worker, *(builder.extract_value(operands, place) for place in range(operand_count))]
    if isinstance(signature.args[-1], types.StarArgTuple | types.StarArgUniTuple):
        fixed = len(signature.args) - 1
        values[fixed:] = [context.make_tuple(builder, signature.args[-1], values[fixed:])]
    status, _ = context.call_internal_no_propagate(builder, called, signature, values)
    with builder.if_then(status.is_error, likely=False):
        builder.store(_LONG(1), _field(builder, job, _FAILED))
        builder.store_atomic(count, _field(builder, job, _NEXT), "monotonic", 8)
    builder.branch(ask)
    builder.position_at_end(leave)
    builder.ret_void()


_Work = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Launch = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)


class _Launchers:
    """What this process can start teams with."""

    def __init__(self) -> None:
        self.pool: ThreadPoolExecutor | None = None
        self.own = _Launch(self._start)
        self.use(_loaded_gomp())

    def use(self, gomp: ctypes.CDLL | None) -> None:
        """Start teams with this library, or with threads of ours."""
        self.gomp = gomp
        address = ctypes.cast(gomp.GOMP_parallel if gomp else self.own, ctypes.c_void_p).value
        assert address is not None
        self.address = address

    def _start(self, work: int, data: int, threads: int, _: int) -> None:
        """What GOMP_parallel does, by threads of ours."""
        if self.pool is None:
            self.pool = ThreadPoolExecutor(max_workers=64, thread_name_prefix="kuramotognn")
        others = [self.pool.submit(_Work(work), data) for _ in range(threads - 1)]
        _Work(work)(data)
        for other in others:
            other.result()

    def forget_threads(self) -> None:
        """A forked child has none of its parent's threads, and GNU OpenMP hangs in it."""
        self.pool = None
        self.use(None)


def _loaded_gomp() -> ctypes.CDLL | None:
    """The GNU OpenMP library beside torch's own, which torch has loaded; None where torch came without one."""
    for path in sorted((Path(torch.__file__).parent / "lib").glob("libgomp*.so*")):
        return ctypes.CDLL(str(path))
    return None


_launchers = _Launchers()
os.register_at_fork(after_in_child=_launchers.forget_threads)
