"""TensorFlow behind the boundary: eager, `tf.function`, and `tf.function` compiled by XLA."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.util import _pywrap_util_port

from frameworks import adapter as boundary
from frameworks import obstacles
from frameworks import smoke_test as known
from frameworks.tensorflow import DEVICES
from frameworks.tensorflow.inspect import program
from frameworks.tensorflow.models import layers, lstm
from frameworks.tensorflow.modes import graphs
from frameworks.tensorflow.user_model import model as user_model
from measurement.cells import Cell
from workloads.spec import MERGED_CHAINS, Arrays

_CAST = "variables and floating-point inputs cast; layer norm statistics of `plain` in float32"
_RECORDED = ("TF_ENABLE_ONEDNN_OPTS", "OMP_NUM_THREADS", "TF_XLA_FLAGS", "XLA_FLAGS")


def _put_options(first: dict[str, Any]) -> None:
    """Set Grappler's options again: the setter adds to those that are set, of which None is the default."""
    others = dict.fromkeys(tf.config.optimizer.get_experimental_options())
    tf.config.optimizer.set_experimental_options(others | first)


# Switches of the process that a user's file may not change: the functions that read and set them.
_SWITCHES: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {
    "enable_tensor_float_32_execution": (
        tf.config.experimental.tensor_float_32_execution_enabled,
        tf.config.experimental.enable_tensor_float_32_execution,
    ),
    "set_synchronous_execution": (  # calls on a CPU would return before their work is done
        tf.config.experimental.get_synchronous_execution,
        tf.config.experimental.set_synchronous_execution,
    ),
    "set_log_device_placement": (tf.debugging.get_log_device_placement, tf.debugging.set_log_device_placement),
    "set_jit": (tf.config.optimizer.get_jit, tf.config.optimizer.set_jit),
    "set_experimental_options": (tf.config.optimizer.get_experimental_options, _put_options),
}


class Adapter(boundary.Adapter):
    """TensorFlow on one device. All methods but `obstacle` fix the device for the process."""

    rules = user_model.Model.rules

    def __init__(self) -> None:
        super().__init__()
        self._device = self.device = ""  # as the boundary names it (gpu:1) and as TensorFlow does (/GPU:0)
        self._gpu: tf.config.PhysicalDevice | None = None
        self._switches: dict[str, Any] = {}  # those of `_SWITCHES`, once they are set
        self._count = 0  # of visible GPUs: one for each rank

    def obstacle(self, device: str, mode: str | None = None) -> str | None:
        if device == "cpu":
            return None
        if not tf.test.is_built_with_cuda():
            return "this build of TensorFlow has no CUDA kernels"
        gpus, index = tf.config.list_physical_devices("GPU"), int(device.removeprefix("gpu:"))
        if not gpus:
            return "TensorFlow sees no GPU: no driver, or no CUDA libraries (tensorflow[and-cuda] brings them)"
        if index >= len(gpus):
            return f"there is no {device}: TensorFlow sees {len(gpus)} GPU(s)"
        capability, built = _capability(gpus[index]), tf.sysconfig.get_build_info().get("cuda_compute_capabilities")
        if built and not any(obstacles.runs(architecture, capability) for architecture in built):
            return f"this build has kernels for {', '.join(built)}; {device} has compute capability {capability}"
        return None

    def smoke_test(self, device: str) -> dict[str, Any]:
        self._open(device)
        with tf.device(self.device):
            left, right = tf.constant(known.LEFT), tf.constant(known.RIGHT)
            results = {"ones": tf.ones((4, 4)), "sum": left + right, "matmul": left @ right, "relu": tf.nn.relu(left)}
        return self.to_numpy(results)

    def configure(self, cell: Cell) -> boundary.Effective:
        self._open(cell.device, cell.threads * cell.ranks)
        tf.config.experimental.enable_tensor_float_32_execution(cell.dtype == "tf32")
        tf32 = tf.config.experimental.tensor_float_32_execution_enabled()
        self._switches = {name: read() for name, (read, _) in _SWITCHES.items()}
        with tf.device(self.device):
            denormal = tf.constant(1e-37) * tf.constant(1e-3)
        settings = {name: os.environ.get(name) for name in _RECORDED} | {
            "inter_op_threads": tf.config.threading.get_inter_op_parallelism_threads(),  # 0: TensorFlow's default
            "onednn": _pywrap_util_port.IsMklEnabled(),
            "auto_jit": tf.config.optimizer.get_jit(),  # clustering behind `function`'s back; empty: off
            "grappler": tf.config.optimizer.get_experimental_options(),
            "flush_denormals": float(denormal) == 0.0,
            "tensor_float_32": tf32,
            "synchronous_execution": tf.config.experimental.get_synchronous_execution(),
            "dtype": user_model.DTYPES if cell.implementation == "own" else _CAST,
            "affinity": sorted(os.sched_getaffinity(0)),
        }
        if cell.pass_name == "training":
            from frameworks.tensorflow.modes.training import SETTINGS

            settings |= SETTINGS
        threads = tf.config.threading.get_intra_op_parallelism_threads() // cell.ranks  # one pool
        if not self._gpu:
            return boundary.Effective(threads, settings=settings)
        settings["memory_growth"] = tf.config.experimental.get_memory_growth(self._gpu)
        settings["compute_capability"] = _capability(self._gpu)
        name = tf.config.experimental.get_device_details(self._gpu).get("device_name")
        built = tf.sysconfig.get_build_info()  # what it was built for; TensorFlow does not report what it loaded
        libraries = {title: built[f"{title.lower()}_version"] for title in ("CUDA", "cuDNN")}
        return boundary.Effective(threads, name, tf32, settings, libraries)

    def on_device(self) -> Any:
        return tf.device(self.device)

    def tensor(self, array: np.ndarray, dtype: str) -> tf.Tensor:
        return tf.constant(array, dtype if np.issubdtype(array.dtype, np.floating) else None)

    def place(self, cell: Cell, arrays: Arrays) -> tuple:
        if cell.ranks == 1:
            return super().place(cell, arrays)
        from frameworks.tensorflow.modes.parallel import placed

        return placed(self, cell, arrays)

    def synchronize(self, output: Any) -> None:
        # On the CPU a call returns when its kernels are done. On a GPU this waits for the compute stream, on which
        # eager kernels, graphs and XLA's programs all run; nothing is copied. It is the operator of
        # tf.test.experimental.sync_devices, whose loop over all devices costs the host several times as much.
        if self._gpu is not None:
            for index in range(self._count):
                with tf.device(f"/GPU:{index}"):
                    tf.raw_ops.SyncDevice()

    def release(self) -> None:
        super().release()
        # Functions go with their steps, which the caller has dropped; models and functions hold cycles.
        gc.collect()

    def compiled_so_far(self) -> int | None:
        return graphs.tracing_time()

    def meter(self, cell: Cell) -> Meter | None:
        if self._gpu is None:
            return None
        own = self.user_models.get(cell.group_id) if cell.pass_name == "inference" else None
        model = self.models.get(cell.group_id)
        variables = model.variables if model else ()
        held = sum(one.shape.num_elements() * one.dtype.size for one in variables)
        return Meter(self._count, own.shared_bytes() if own else held)

    def _open(self, device: str, threads: int | None = None) -> None:
        """Choose the device and the thread counts, all of which are fixed once an operator ran.

        A smoke test that runs before `configure` takes the worker's environment for `threads`. Raises RuntimeError
        where a later call wants other values.
        """
        threads = threads or int(os.environ.get("TF_NUM_INTRAOP_THREADS", 0))
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        # 0 is TensorFlow's default, one per core.
        tf.config.threading.set_inter_op_parallelism_threads(int(os.environ.get("TF_NUM_INTEROP_THREADS", 0)))
        if device == self._device:
            return
        gpus, count = [], int(os.environ.get(DEVICES, 1))
        if device != "cpu":
            first = int(device.removeprefix("gpu:"))
            gpus = tf.config.list_physical_devices("GPU")[first : first + count]
        elif count > 1:
            parts = [tf.config.LogicalDeviceConfiguration()] * count
            tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], parts)
        for gpu in gpus:
            tf.config.experimental.set_memory_growth(gpu, True)
        tf.config.set_visible_devices(gpus, "GPU")
        # The first visible GPU is GPU:0, whatever its index on the machine.
        self._device, self.device = device, "/GPU:0" if gpus else "/CPU:0"
        self._gpu, self._count = gpus[0] if gpus else None, len(gpus)

    def refuse(self, cell: Cell) -> None:
        """Raise `Unsupported` for cells that this device, or TensorFlow, cannot run."""
        super().refuse(cell)
        of_suite = cell.implementation == "plain"  # in a user's file the name is the user's
        if of_suite and cell.mode == "function" and cell.workload in MERGED_CHAINS:
            raise boundary.Unsupported("Grappler merges the chain: measure function-unoptimized or function-xla")
        if of_suite and cell.parameter("attention") == "fused":
            raise boundary.Unsupported("TensorFlow has no fused attention operator")
        if of_suite and cell.parameter("layout") == "nchw" and self._gpu is None and cell.mode != "function-xla":
            layers.refuse_channels_first(cell, tf.as_dtype(boundary.DTYPES[cell.dtype]))
        if of_suite and cell.parameter("cell") == "fused":
            lstm.refuse_fused(cell, tf.as_dtype(boundary.DTYPES[cell.dtype]))
        if program.is_watched():
            raise boundary.Unsupported(
                "the model's file follows each operator by tf.debugging, which slows down eager mode more than graphs: "
                "remove enable_check_numerics() or enable_dump_debug_info()"
            )
        self._refuse_switches(cell)
        if cell.dtype == "tf32" and self._gpu is None:
            raise boundary.Unsupported("TF32 exists on GPUs only")
        if cell.ranks > 1 and cell.shapes == "dynamic":
            raise boundary.Unsupported("TensorFlow trains several ranks at one shape: use SHAPES=static")
        if self._gpu and cell.dtype in ("tf32", "bf16") and _capability(self._gpu) < (8, 0):
            raise boundary.Unsupported(f"{cell.dtype} needs compute capability 8.0, not {_capability(self._gpu)}")

    def _refuse_switches(self, cell: Cell) -> None:
        """Raise `Unsupported` where a user's file changed a switch of the process, and set it again."""
        for name, first in self._switches.items():
            read, put = _SWITCHES[name]
            if read() != first:
                put(first)
                self._changed[cell.workload] = name
        self.refuse_changed(cell)


class Meter(boundary.Meter):
    """Memory of the visible GPU that needs most."""

    def __init__(self, count: int, shared: int):
        super().__init__(shared)
        self._names = [f"GPU:{index}" for index in range(count)]

    def allocated_bytes(self) -> tuple[int, ...]:
        return self._most("current")

    def reset_peak(self) -> None:
        for name in self._names:
            tf.config.experimental.reset_memory_stats(name)

    def peak_bytes(self) -> tuple[int, ...]:
        return self._most("peak")

    def _most(self, kind: str) -> tuple[int, ...]:
        return (max(tf.config.experimental.get_memory_info(name)[kind] for name in self._names),)


def _capability(gpu: tf.config.PhysicalDevice) -> tuple[int, int]:
    return tuple(tf.config.experimental.get_device_details(gpu).get("compute_capability", (0, 0)))
