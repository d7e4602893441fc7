"""The parallel loop of Numba's kernels made safe: after a fork, with many Python threads, with signal handlers.

Compiled kernels hand their `prange` loops to a function called `numba_parallel_for`, which Numba takes from its threading
layer: OpenMP, TBB, or its own work queue. Each of them has a way to fail that no caller can catch:

* OpenMP sends SIGTERM to a forked child and returns without having run the loop: a process that handles the signal, such as
  a worker of gunicorn, goes on with arrays that nobody filled; a grandchild waits for threads that are not there;
* the work queue aborts the process when a second Python thread begins a loop.

`guard` puts a function of ours in its place before the first kernel is linked. It runs the whole loop on the calling thread
in a forked child, where the loop has one thread anyhow, and where another Python thread has the work queue; and it counts
what the threading layer has run: where that is nothing, it runs the loop itself. The bits are the same: iterations write
only their own rows.

The function is made with llvmlite, because it is called from compiled code: Python code would need the GIL, and could be
interrupted in the middle.
"""

import importlib
import os
from typing import Any

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.np.ufunc import parallel

_POOLS = {"omp": "omppool", "tbb": "tbbpool", "workqueue": "workqueue"}
"""Numba's modules of the threading layers."""
_FORKED, _BUSY = 0, 1
_LOOP, _DATA, _DONE = 0, 1, 2

_state = np.zeros(2, np.intp)
"""Whether this is a forked child of a process that had threads; whether a thread has the work queue."""
_keep_alive: list[Any] = []
"""The compiled function, once it is made."""

_BYTES = ir.IntType(8).as_pointer()
_INT = ir.IntType(8 * np.intp(0).itemsize)
_RUN_LOOP = ir.FunctionType(ir.VoidType(), [_BYTES] * 4)
"""A part of a loop: arguments, sizes (the first is how many iterations), steps, data."""
_PARALLEL_FOR = ir.FunctionType(ir.VoidType(), [_BYTES] * 5 + [_INT] * 3)
"""loop, arguments, sizes, steps, data, inner dimensions, arrays, threads."""


def guard() -> None:
    """Makes parallel loops safe in this process; before the first parallel kernel is compiled or read from the cache."""
    if _keep_alive:
        return
    with global_compiler_lock:
        if _keep_alive:
            return
        parallel._launch_threads()
        layer = parallel.threading_layer()
        original = importlib.import_module(f"numba.np.ufunc.{_POOLS[layer]}").parallel_for
        library = cpu_target.target_context.codegen().create_library("topnrank_parallel_for")
        module = library.create_ir_module("topnrank_parallel_for")
        _emit(module, original, takes_turns=layer == "workqueue")
        library.add_ir_module(module)
        library.finalize()
        address = library.get_pointer_to_function("topnrank_parallel_for")
        llvmlite.binding.add_symbol("numba_parallel_for", address)
        _keep_alive.append(library)


def _emit(module: ir.Module, original: int, *, takes_turns: bool) -> None:
    """Two functions: the parallel loop, and what the threading layer runs for it."""
    counted = ir.Function(module, _RUN_LOOP, "topnrank_counted_loop")
    _emit_counted(counted)
    function = ir.Function(module, _PARALLEL_FOR, "topnrank_parallel_for")
    loop, arguments, sizes, steps, data, *counts = function.args
    build = ir.IRBuilder(function.append_basic_block("entry"))
    ask, run, alone, end = (function.append_basic_block(name) for name in ("ask", "run", "alone", "end"))
    state = build.inttoptr(_INT(_state.ctypes.data), _BYTES)
    record = build.bitcast(build.alloca(_INT, 3), _BYTES)
    forked = build.icmp_signed("!=", build.load(_at(build, state, _FORKED)), _INT(0))
    one_thread = build.icmp_signed("==", counts[-1], _INT(1))
    build.cbranch(build.or_(forked, one_thread), alone, ask)

    build.position_at_end(ask)
    if takes_turns:
        turn = build.cmpxchg(_at(build, state, _BUSY), _INT(0), _INT(1), "seq_cst", "seq_cst")
        build.cbranch(build.extract_value(turn, 1), run, alone)
    else:
        build.branch(run)

    build.position_at_end(run)
    for place, value in ((_LOOP, build.ptrtoint(loop, _INT)), (_DATA, build.ptrtoint(data, _INT)), (_DONE, _INT(0))):
        build.store(value, _at(build, record, place))
    shared = [build.bitcast(counted, _BYTES), arguments, sizes, steps, record, *counts]
    build.call(build.inttoptr(_INT(original), _PARALLEL_FOR.as_pointer()), shared)
    if takes_turns:
        build.store_atomic(_INT(0), _at(build, state, _BUSY), "seq_cst", _INT.width // 8)
    done = build.load_atomic(_at(build, record, _DONE), "seq_cst", _INT.width // 8)
    build.cbranch(build.icmp_signed("==", done, _INT(0)), alone, end)

    build.position_at_end(alone)
    build.call(build.bitcast(loop, _RUN_LOOP.as_pointer()), [arguments, sizes, steps, data])
    build.branch(end)
    build.position_at_end(end)
    build.ret_void()


def _emit_counted(function: ir.Function) -> None:
    """Runs a part of the loop, then adds its size to the count; `data` is the record of the loop."""
    arguments, sizes, steps, record = function.args
    build = ir.IRBuilder(function.append_basic_block("entry"))
    loop = build.inttoptr(build.load(_at(build, record, _LOOP)), _RUN_LOOP.as_pointer())
    data = build.inttoptr(build.load(_at(build, record, _DATA)), _BYTES)
    build.call(loop, [arguments, sizes, steps, data])
    build.atomic_rmw("add", _at(build, record, _DONE), build.load(_at(build, sizes, 0)), "seq_cst")
    build.ret_void()


def _at(build: ir.IRBuilder, base: ir.Value, place: int) -> ir.Value:
    """A pointer to the integer at `place` of those that begin at `base`."""
    return build.gep(build.bitcast(base, _INT.as_pointer()), [_INT(place)])


def _after_fork_in_child() -> None:
    global_compiler_lock.release()
    _state[_BUSY] = 0
    if parallel._is_initialized:
        _state[_FORKED] = 1


if hasattr(os, "register_at_fork"):
    # A fork waits for a kernel that another thread is compiling: the child would wait for its lock for ever.
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=_after_fork_in_child,
    )
