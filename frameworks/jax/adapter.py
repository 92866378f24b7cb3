"""JAX behind the boundary."""

from __future__ import annotations

import functools
import gc
import os
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np

import frameworks.adapter as boundary
from frameworks import generating, smoke_test, values
from frameworks.adapter import Effective, Step, Unsupported
from frameworks.jax import runtime
from frameworks.jax.inspect import memory, program
from frameworks.jax.models import build
from frameworks.jax.modes import compiling, generation, graphs
from frameworks.jax.user_model import model as user_model
from measurement.cells import Cell
from workloads.passes import WITH_CACHE
from workloads.spec import Arrays, Workload
from workloads.user_model import UserModel

# dtype -> (dtype of parameters and activations, jax_default_matmul_precision). JAX's own default is TF32 on a GPU.
PRECISION = {
    "fp32": (jnp.float32, "highest"),
    "tf32": (jnp.float32, "tensorfloat32"),
    "bf16": (jnp.bfloat16, "default"),
    "fp16": (jnp.float16, "default"),
}
CAST_THERE = 1 << 20  # values: from so many on the device casts, which takes NumPy long
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
        self._compilations = graphs.Compilations()
        self._device: jax.Device | None = None
        self._own: dict[str, user_model.Model] = {}  # user models by group

    def obstacle(self, device: str, mode: str | None = None) -> str | None:
        problem = runtime.problem(device)
        return problem and f"jaxlib {jaxlib.__version__}: {problem}"

    def smoke_test(self, device: str) -> dict[str, Any]:
        where = runtime.find(device)
        left, right = (jax.device_put(array, where) for array in (smoke_test.LEFT, smoke_test.RIGHT))
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
        if cell.pass_name == "training":
            from frameworks.jax.modes.training import SETTINGS

            settings |= SETTINGS
        gpu = cell.device_kind == "gpu"
        return Effective(
            threads=runtime.pool_threads(),
            device_name=self._device.device_kind if gpu else None,
            tf32=jax.config.jax_default_matmul_precision == "tensorfloat32" if gpu else None,
            settings=settings,
            libraries=runtime.libraries() if gpu else {},
        )

    def prepare(self, workload: Workload, cell: Cell, weights: Arrays, inputs: Sequence[Arrays]) -> Step:
        if cell.dtype == "tf32" and cell.device_kind != "gpu":
            raise Unsupported("TF32 is a format of NVIDIA's GPUs; the CPU has no such matrix products")
        if jax.config.jax_disable_jit:
            raise Unsupported("JAX_DISABLE_JIT is set: neither jit nor eager would run what they say")
        if cell.mode == compiling.BLOCKS and cell.implementation != "plain":
            way_out = "" if cell.implementation == "own" else ": measure IMPL=plain"
            raise Unsupported(f"only the suite's plain models are divided into blocks{way_out}.")
        if cell.implementation == "own":
            return self._prepare_user_model(workload, cell, weights, inputs)
        if cell.pass_name in WITH_CACHE:
            return self._prepare_generating(workload, cell, weights, inputs)
        built = build.implementation_module(cell.implementation)
        dtype, trains = jnp.dtype(PRECISION[cell.dtype][0]), cell.pass_name == "training"
        load = functools.partial(self._load, jnp.dtype(jnp.float32) if trains else dtype)
        model = workload.model if trains else workload
        params, forward, detail = built.MODELS[workload.family](model, cell, weights, load, dtype)
        device_inputs = [self.place(cell, arrays) for arrays in inputs]
        jax.block_until_ready((params, device_inputs))
        if trains:
            from frameworks.jax.modes import training

            objective = training.objective_of(workload.family, forward, dtype)
            return self._trained(cell, objective, params, device_inputs, detail)
        call, capture = self._compilations.callable(cell, forward, (params, *device_inputs[0]), detail)
        step = functools.partial(call, params)
        listed = program.listing(cell, call, (params, *device_inputs[0]), step, device_inputs[0])
        return Step(step, device_inputs, capture, program=listed)

    def _trained(self, cell: Cell, objective: Callable, params: dict, sets: Sequence[tuple], detail: str) -> Step:
        """Return an optimizer iteration on the parameters, in the cell's mode."""
        from frameworks.jax.modes import training

        accumulate = int(cell.parameter("accumulate") or 1)
        iterate = training.iteration(objective, accumulate, scanned=cell.mode != "eager")
        trainer = training.Trainer(params, self._device)
        arguments = (trainer.state, *sets[0])
        trainer.iterate, capture = self._compilations.callable(cell, iterate, arguments, detail, donated=(0,))
        listed = program.listing(cell, trainer.iterate, arguments, trainer, sets[0])
        return Step(trainer, sets, capture, trainer.restore, listed)

    def _prepare_user_model(self, workload: UserModel, cell: Cell, weights: Arrays, inputs: Sequence[Arrays]) -> Step:
        if cell.group_id not in self._own:
            dtype = jnp.dtype(jnp.float32 if cell.pass_name == "training" else PRECISION[cell.dtype][0])
            trains = cell.pass_name == "training"
            self._own[cell.group_id] = user_model.Model(workload, weights, inputs, self._device, dtype, trains)
        model = self._own[cell.group_id]
        if cell.pass_name == "training":
            from frameworks.jax.user_model import training as user_training

            return user_training.prepare(model, cell, jnp.dtype(PRECISION[cell.dtype][0]), self._compilations)
        return user_model.prepare(model, cell, self._compilations)

    def _prepare_generating(self, workload: Workload, cell: Cell, weights: Arrays, inputs: Sequence[Arrays]) -> Step:
        """Return the model with a cache of its own, which a jitted call takes over from the one before."""
        generation.refuse(cell)
        dtype = jnp.dtype(PRECISION[cell.dtype][0])
        if cell.pass_name == "generate":
            cached = generation.Cached(workload, cell, weights, functools.partial(self._load, dtype), dtype)
            prompts = [self.place(cell, arrays) for arrays in inputs]
            places = [self._load(dtype, place) for place in workload.places_told(dict(cell.parameters))]
            jax.block_until_ready((cached.params, cached.cache, prompts, places))
            return generation.generating(cached, cell, prompts, places, self._compilations)
        made = generation.Generator(workload, cell, weights, functools.partial(self._load, dtype), dtype)
        device_inputs = [self.place(cell, arrays) for arrays in inputs]
        jax.block_until_ready((made.params, made.cache, device_inputs))
        arguments = (made.params, made.cache, *device_inputs[0])
        made.advance, capture = self._compilations.callable(cell, made.forward, arguments, made.detail, donated=(1,))
        listed = program.listing(cell, made.advance, arguments, made, device_inputs[0])
        return Step(made, device_inputs, capture, made.restore, listed)

    def place(self, cell: Cell, arrays: Arrays) -> tuple:
        if cell.implementation == "own":
            return self._own[cell.group_id].place(arrays)
        # Under training everything stays in float32, and the loss casts it.
        dtype = jnp.dtype(jnp.float32 if cell.pass_name == "training" else PRECISION[cell.dtype][0])
        return tuple(self._load(dtype, array) for array in arrays.values())

    def _load(self, dtype: jnp.dtype, array: np.ndarray) -> jax.Array:
        # A copy of our own: JAX may alias host memory, and these arrays are pages of a file.
        kind = dtype if np.issubdtype(array.dtype, np.floating) else np.int32
        if array.size >= CAST_THERE and array.dtype != kind:
            return jax.device_put(array, self._device).astype(kind)
        return jax.device_put(np.array(array, dtype=kind, order="C"), self._device)

    def synchronize(self, output: Any) -> None:
        jax.block_until_ready(output)  # every leaf; dispatch is asynchronous on the CPU too

    def to_numpy(self, output: Any) -> Arrays:
        output = generating.tensors(output)
        if isinstance(output, dict) and hasattr(output.get("state"), "held"):  # of training
            output = {"loss": output["loss"], **output["state"].held}
        return values.read(output, user_model.Model.rules).arrays

    def release(self) -> None:
        for model in self._own.values():
            model.release()
        self._own.clear()
        jax.clear_caches()
        gc.collect()  # compiled functions and parameters hang in reference cycles

    def meter(self, cell: Cell) -> memory.Meter | None:
        return memory.Meter(self._device) if cell.device_kind == "gpu" else None
