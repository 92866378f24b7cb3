"""JAX behind the boundary."""

from __future__ import annotations

import gc
import os
from typing import Any

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np

import frameworks.adapter as boundary
from frameworks import smoke_test
from frameworks.adapter import Effective, Unsupported
from frameworks.jax import POOL_THREADS_MORE, runtime
from frameworks.jax.modes import compiling, graphs, parallel
from frameworks.jax.user_model import model as user_model
from measurement.cells import Cell
from workloads.spec import Arrays

# dtype -> (dtype of parameters and activations, jax_default_matmul_precision). JAX's own default is TF32 on a GPU.
# JAX's "tensorfloat32" is Precision.HIGH, in which XLA has no Triton kernels. An algorithm such as TF32_TF32_F32 would
# also convert products of integers and complex numbers.
PRECISION = {
    "fp32": (jnp.float32, "highest"),
    "tf32": (jnp.float32, "default"),
    "bf16": (jnp.bfloat16, "default"),
    "fp16": (jnp.float16, "default"),
}
# Other names of these precisions.
SYNONYMS = {"float32": "highest", "bfloat16": "default", "fastest": "default", None: "default"}
CAST_THERE = 1 << 20  # values: from this size on the device casts, since NumPy is slow
READ_BACK = (
    "jax_default_matmul_precision",
    "jax_enable_x64",
    "jax_cpu_enable_async_dispatch",
    "jax_persistent_cache_min_compile_time_secs",
)
DEBUGGING = ("jax_check_tracer_leaks", "jax_enable_checks", "jax_debug_nans", "jax_debug_infs", "jax_debug_key_reuse")
ENVIRONMENT = ("PJRT_NPROC", "NPROC", "XLA_FLAGS", "XLA_PYTHON_CLIENT_PREALLOCATE", "NVIDIA_TF32_OVERRIDE")


class Adapter(boundary.Adapter):
    rules = user_model.Model.rules

    def __init__(self):
        super().__init__()
        self.compilations = graphs.Compilations()
        self._precision = ""  # of products, which a user's file may not change
        self.sharded: dict[str, tuple] = {}  # by group, whose modes train one state, as `modes.training.built` makes it

    def obstacle(self, device: str, mode: str | None = None) -> str | None:
        problem = runtime.problem(device)
        return problem and f"jaxlib {jaxlib.__version__}: {problem}"

    def smoke_test(self, device: str) -> dict[str, Any]:
        where = runtime.find(device)
        left, right = (jax.device_put(array, where) for array in (smoke_test.LEFT, smoke_test.RIGHT))
        ones = jnp.ones((4, 4), device=where)
        return self.to_numpy({"ones": ones, "sum": left + right, "matmul": left @ right, "relu": jax.nn.relu(left)})

    def configure(self, cell: Cell) -> Effective:
        self.device = runtime.find(cell.device)
        dtype, self._precision = PRECISION[cell.dtype]
        jax.config.update("jax_default_device", self.device)
        jax.config.update("jax_default_matmul_precision", self._precision)
        values = getattr(jax.config, "values", {})  # no part of JAX's API, and some switches are nowhere else
        settings = {name: values.get(name, getattr(jax.config, name, None)) for name in READ_BACK}
        settings |= {name: os.environ.get(name) for name in ENVIRONMENT}
        settings |= {
            "jaxlib": jaxlib.__version__,
            "parameters_and_inputs": f"cast to {jnp.dtype(dtype).name} on the host; token ids are int32",
            "denormals_flushed": float(jnp.float32(1e-30) * jnp.float32(1e-10)) == 0,
            "platform_version": self.device.client.platform_version,
            "compute_capability": getattr(self.device, "compute_capability", None),
            "affinity": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        }
        if cell.pass_name == "training":
            from frameworks.jax.modes.training import SETTINGS

            settings |= SETTINGS
        gpu, pool = cell.device_kind == "gpu", runtime.pool_threads()
        return Effective(
            threads=pool if gpu or pool is None or cell.ranks == 1 else pool // cell.ranks - POOL_THREADS_MORE,
            device_name=self.device.device_kind if gpu else None,
            tf32=(dtype == jnp.float32 and jax.config.jax_default_matmul_precision != "highest") if gpu else None,
            settings=settings,
            libraries=runtime.libraries() if gpu else {},
        )

    def refuse(self, cell: Cell) -> None:
        super().refuse(cell)
        if cell.dtype == "tf32" and cell.device_kind != "gpu":
            raise Unsupported("TF32 exists on NVIDIA GPUs only")
        if jax.config.jax_disable_jit:
            raise Unsupported("JAX_DISABLE_JIT is set, which changes eager mode and jit: unset it")
        if slowing := [name for name in DEBUGGING if getattr(jax.config, name, False)]:
            raise Unsupported(f"{slowing[0]} is set, which slows down eager mode more than jit: unset it")
        self._refuse_precision(cell)
        if cell.mode == compiling.BLOCKS and cell.implementation != "plain":
            way_out = "" if cell.implementation == "own" else ": measure IMPL=plain"
            raise Unsupported(f"only the suite's plain models are divided into blocks{way_out}.")

    def _refuse_precision(self, cell: Cell) -> None:
        """Raise Unsupported where a user's file changed the precision of products, and set it again."""
        now = jax.config.jax_default_matmul_precision
        if self._precision and SYNONYMS.get(now, now) != self._precision:
            jax.config.update("jax_default_matmul_precision", self._precision)
            self._changed[cell.workload] = "jax_default_matmul_precision"
        self.refuse_changed(cell)

    def tensor(self, array: np.ndarray, dtype: str) -> jax.Array:
        # A copy of our own: JAX may alias host memory, and these arrays are pages of a file.
        kind = jnp.dtype(dtype) if np.issubdtype(array.dtype, np.floating) else np.int32
        if array.size >= CAST_THERE and array.dtype != kind:
            return jax.device_put(array, self.device).astype(kind)
        return jax.device_put(np.array(array, dtype=kind, order="C"), self.device)

    def place(self, cell: Cell, arrays: Arrays) -> tuple:
        placed = super().place(cell, arrays)
        return jax.device_put(placed, parallel.of_batch(cell, self.device)) if cell.ranks > 1 else placed

    def synchronize(self, output: Any) -> None:
        jax.block_until_ready(output)  # every leaf; dispatch is asynchronous on the CPU too

    def to_numpy(self, output: Any) -> Arrays:
        if isinstance(output, dict) and hasattr(output.get("state"), "held"):  # of training
            output = {"loss": output["loss"], **output["state"].held}
        return super().to_numpy(output)

    def release(self) -> None:
        for model in self.user_models.values():
            model.release()
        super().release()
        self.sharded.clear()
        jax.clear_caches()
        gc.collect()  # compiled functions and parameters hang in reference cycles

    def compiled_so_far(self) -> int:
        return self.compilations.total

    def meter(self, cell: Cell) -> runtime.Meter | None:
        if cell.device_kind != "gpu":
            return None
        sharded = self.sharded.get(cell.group_id)
        if sharded:
            return runtime.Meter(self.device, sharded[0].bytes_of(self.device))
        own = self.user_models.get(cell.group_id) if cell.pass_name == "inference" else None
        parameters = self.models.get(cell.group_id, ())[:1] if cell.mode != compiling.BLOCKS else ()
        held = sum(leaf.nbytes for leaf in jax.tree.leaves(parameters))
        return runtime.Meter(self.device, own.shared_bytes() if own else held)
