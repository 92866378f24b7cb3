"""JAX behind the boundary."""

from __future__ import annotations

import functools
import gc
import os
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np

import frameworks.adapter as boundary
from frameworks import canary
from frameworks.adapter import Capture, Effective, Step, Unsupported
from frameworks.jax import runtime
from measurement.cells import Cell
from workloads.spec import Arrays, Workload

# dtype -> (dtype of parameters and activations, jax_default_matmul_precision). JAX's own default is TF32 on a GPU.
PRECISION = {
    "fp32": (jnp.float32, "highest"),
    "tf32": (jnp.float32, "tensorfloat32"),
    "bf16": (jnp.bfloat16, "default"),
    "fp16": (jnp.float16, "default"),
}
COMPILED = "/jax/core/compile/backend_compile_duration"  # fires once per executable, cached on disk or not
WHOLE_MODEL = "whole_model_"
READ_BACK = (
    "jax_default_matmul_precision",
    "jax_enable_x64",
    "jax_cpu_enable_async_dispatch",
    "jax_compilation_cache_dir",
    "jax_persistent_cache_min_compile_time_secs",
)
ENVIRONMENT = ("PJRT_NPROC", "NPROC", "XLA_FLAGS", "XLA_PYTHON_CLIENT_PREALLOCATE", "NVIDIA_TF32_OVERRIDE")


class Adapter(boundary.Adapter):
    def __init__(self):
        self._compiled: Counter[str] = Counter()  # executables by the function they were compiled for
        self._peak_before = 0
        self._device: jax.Device | None = None
        jax.monitoring.register_event_duration_secs_listener(self._count)

    def _count(self, event: str, _seconds: float, **details: Any) -> None:
        if event == COMPILED:
            self._compiled[str(details.get("fun_name", ""))] += 1

    def available(self, device: str) -> str | None:
        problem = runtime.problem(device)
        return problem and f"jaxlib {jaxlib.__version__}: {problem}"

    def canary(self, device: str) -> dict[str, Any]:
        where = runtime.find(device)
        left, right = (jax.device_put(array, where) for array in (canary.LEFT, canary.RIGHT))
        ones = jnp.ones((4, 4), device=where)
        return self.to_numpy({"ones": ones, "sum": left + right, "matmul": left @ right, "relu": jax.nn.relu(left)})

    def configure(self, cell: Cell) -> Effective:
        self._device = runtime.find(cell.device)
        dtype, precision = PRECISION[cell.dtype]
        jax.config.update("jax_default_device", self._device)
        jax.config.update("jax_default_matmul_precision", precision)
        values = getattr(jax.config, "values", {})  # no part of JAX's API, and some switches are nowhere else
        settings = {name: values.get(name, getattr(jax.config, name, None)) for name in READ_BACK}
        settings |= {name: os.environ.get(name) for name in ENVIRONMENT}
        settings |= {
            "jaxlib": jaxlib.__version__,
            "parameters_and_inputs": f"cast to {jnp.dtype(dtype).name} on the host; token ids are int32",
            "denormals_flushed": float(jnp.float32(1e-30) * jnp.float32(1e-10)) == 0,
            "platform_version": self._device.client.platform_version,
            "compute_capability": getattr(self._device, "compute_capability", None),
            "affinity": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        }
        gpu = cell.device_kind == "gpu"
        return Effective(
            threads=runtime.pool_threads(),
            device_name=self._device.device_kind if gpu else None,
            tf32=jax.config.jax_default_matmul_precision == "tensorfloat32" if gpu else None,
            settings=settings,
        )

    def prepare(self, workload: Workload, cell: Cell, weights: Arrays, inputs: Sequence[Arrays]) -> Step:
        if cell.pass_name != "inference":
            raise Unsupported(f"the {cell.pass_name} pass is not written for JAX")
        if cell.dtype == "tf32" and cell.device_kind != "gpu":
            raise Unsupported("TF32 is a format of NVIDIA's GPUs; the CPU has no such matrix products")
        if jax.config.jax_disable_jit:
            raise Unsupported("JAX_DISABLE_JIT is set: neither jit nor eager would run what they say")
        if cell.shapes == "dynamic" and cell.mode != "eager":
            raise Unsupported("XLA compiles for one shape, and jax.jit has no dynamic ones.")
        if cell.implementation == "library":
            from frameworks.jax import library as models  # transformers takes seconds to import
        else:
            from frameworks.jax import plain as models
        dtype = jnp.dtype(PRECISION[cell.dtype][0])

        load = functools.partial(self._load, dtype)
        params, forward, detail = models.MODELS[workload.family](workload, cell, weights, load, dtype)
        device_inputs = [self.place(cell, arrays) for arrays in inputs]
        jax.block_until_ready((params, device_inputs))
        backend = f"xla:{cell.device_kind}"
        if cell.mode == "eager":
            return Step(functools.partial(forward, params), device_inputs, self._eager_capture(backend, detail))

        def whole_model(params, *inputs):
            return forward(params, *inputs)

        # Compilation events tell this graph from others by its name. The name is part of the key of JAX's compile
        # cache too, so it must be the same in every process.
        whole_model.__name__ = whole_model.__qualname__ = f"{WHOLE_MODEL}{zlib.crc32(cell.id.encode()):08x}"
        graph = jax.jit(whole_model)
        capture = self._graph_capture(graph, (params, *device_inputs[0]), backend, detail)
        return Step(functools.partial(graph, params), device_inputs, capture)

    def place(self, cell: Cell, arrays: Arrays) -> tuple:
        dtype = jnp.dtype(PRECISION[cell.dtype][0])
        return tuple(self._load(dtype, array) for array in arrays.values())

    def _load(self, dtype: jnp.dtype, array: np.ndarray) -> jax.Array:
        # A copy of our own: JAX may alias host memory, and these arrays are pages of a file.
        kind = dtype if np.issubdtype(array.dtype, np.floating) else np.int32
        return jax.device_put(np.array(array, dtype=kind, order="C"), self._device)

    def _eager_capture(self, backend: str, detail: str) -> Callable[[], Capture]:
        def operators() -> int:
            return sum(count for function, count in self._compiled.items() if WHOLE_MODEL not in function)

        before = operators()
        return lambda: Capture(False, graphs=0, compilations=operators() - before, backend=backend, detail=detail)

    def _graph_capture(self, graph: Any, arguments: tuple, backend: str, detail: str) -> Callable[[], Capture]:
        whole = functools.cache(lambda: runtime.is_whole(graph.lower(*arguments).as_text()))
        name = graph.__name__

        def compilations() -> int:
            return sum(count for function, count in self._compiled.items() if name in function)

        before = compilations()  # the cell may have been prepared before

        def capture() -> Capture:
            events = compilations() - before
            graphs = graph._cache_size() if hasattr(graph, "_cache_size") else events  # no part of JAX's API
            if not graphs:
                return Capture(False, 0, 0, events, backend, "not called yet")
            problem = "" if whole() else "the module calls back into Python"
            # A version whose events name no function still moves the cache's size.
            return Capture(not problem, graphs, 0, max(events, graphs), backend, problem or detail)

        return capture

    def synchronize(self, output: Any) -> None:
        jax.block_until_ready(output)  # every leaf; dispatch is asynchronous on the CPU too

    def to_numpy(self, output: Any) -> Arrays:
        return {name: np.asarray(array).astype(np.float32) for name, array in output.items()}

    def release(self) -> None:
        jax.clear_caches()
        gc.collect()  # compiled functions and parameters hang in reference cycles

    def allocated_bytes(self) -> int | None:
        # JAX cannot reset the peak, so it counts from here, before a mode is prepared; what XLA's autotuning tries is
        # in it, and a mode that stays below an earlier one's peak has an unknown one of its own.
        self._peak_before = self._statistic("peak_bytes_in_use") or 0
        return self._statistic("bytes_in_use")

    def peak_memory_bytes(self) -> int | None:
        peak = self._statistic("peak_bytes_in_use")
        return peak if peak is not None and peak > self._peak_before else None

    def _statistic(self, name: str) -> int | None:
        statistics = self._device.memory_stats() if self._device is not None else None
        return statistics.get(name) if statistics else None
