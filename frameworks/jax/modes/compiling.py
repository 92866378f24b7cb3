"""Compiler options of XLA for each mode: `jax.jit` takes them, so that modes of one process differ in them alone."""

from __future__ import annotations

import functools
import re
import zlib
from collections.abc import Callable

import jax

from frameworks.adapter import Unsupported
from measurement.cells import Cell

OWN = "whole_model_"  # prefix of the functions that a graph mode compiles
BLOCKS = "jit-blocks"
UNFUSED = (BLOCKS, "jit-unfused", "jit-unfused-uncaptured")
UNCAPTURED = (BLOCKS, "jit-unfused-uncaptured", "jit-uncaptured")
# Options that keep XLA from merging operators into one kernel: its passes by name (a name that a version lacks does
# nothing), and on a CPU the fusion by its library of kernels, which keeps the products. `fused` checks the result.
NO_FUSION = {
    "cpu": {
        "xla_disable_hlo_passes": "fusion,cpu_multi_output_fusion",
        "xla_cpu_experimental_ynn_fusion_type": "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT",
    },
    "gpu": {
        "xla_disable_hlo_passes": "fusion,priority-fusion,multi_output_fusion,fusion_merger,horizontal_loop_fusion,"
        "horizontal_input_fusion,triton-softmax-rewriter,triton-gemm-rewriter,norm-rewriter",
    },
}
NO_COMMAND_BUFFERS = {"xla_gpu_enable_command_buffer": ""}


def options(cell: Cell) -> dict[str, str]:
    """Return the compiler options of the cell's mode that this version of XLA has; none for the users' default.

    Raises Unsupported where it cannot omit command buffers, which nothing would show.
    """
    choices = NO_FUSION[cell.device_kind] if cell.mode in UNFUSED else {}
    if cell.mode in UNCAPTURED and cell.device_kind == "gpu":
        if not all(_has(*option) for option in NO_COMMAND_BUFFERS.items()):
            raise Unsupported("this XLA cannot disable command buffers: omit this mode.")
        choices = choices | NO_COMMAND_BUFFERS
    return {name: value for name, value in choices.items() if _has(name, value)}


@functools.cache
def _has(name: str, value: str) -> bool:
    """Return whether this version of XLA takes an option."""
    try:
        jax.jit(lambda x: x + 1, compiler_options={name: value}).lower(1.0).compile()
    except jax.errors.JaxRuntimeError:
        return False
    return True


def compiled(cell: Cell, function: Callable, **how) -> Callable:
    """Return `jax.jit` of a function for the cell's mode."""
    return jax.jit(function, compiler_options=options(cell) or None, **how)


def name(cell: Cell) -> str:
    """Return the name of the cell's compiled functions, which separates their compilation events from other modes'.

    The name is part of the key of JAX's compile cache too, so it must be the same in every process.
    """
    return f"{OWN}{zlib.crc32(cell.id.encode()):08x}"


def blocks(cell: Cell) -> Callable[[Callable], Callable]:
    """Return a decorator for parts of a model: jitted separately in a mode of blocks, else unchanged."""

    def jitted(part: Callable) -> Callable:
        def block(*arguments):
            return part(*arguments)

        block.__name__ = block.__qualname__ = name(cell)
        return compiled(cell, block)

    return jitted if cell.mode == BLOCKS else lambda part: part


def fused(hlo: str) -> int:
    """Return how many fusions of an optimized module hold more than one operator.

    On a GPU XLA wraps each operator that is not fused into its own fusion.
    """
    kinds = re.findall(r"fusion\(.*?calls=(%?[\w.-]+)", hlo)
    return sum(_operators(hlo, name) > 1 for name in kinds)


def _operators(hlo: str, computation: str) -> int:
    """Return the operators of a computation, without parameters and constants."""
    body = re.search(rf"^{re.escape(computation)} .*?\{{\n(.*?)^\}}", hlo, re.DOTALL | re.MULTILINE)
    lines = body[1].splitlines() if body else []
    return sum(not re.search(r"= \S+ (parameter|constant)\(", line) for line in lines)
