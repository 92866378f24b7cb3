"""Weights, inputs and reference outputs: made once, in a process of their own, and kept for later runs.

Every worker reads the same files, so every framework gets the same numbers whatever its NumPy. `ensure` is called by
the parent and only starts processes; run as `python -m harness.materials`, this module does the work.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness.plan import Group

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "materials"
# Beyond this the NumPy reference takes minutes; cells are then compared with the first framework's outputs.
ORACLE_FLOPS = 2e12


class MaterialsError(Exception):
    """The weights cannot be had; the message is one clear sentence."""


@dataclass(frozen=True)
class Materials:
    """Where a group's data lies. `weights` holds one `.npy` per tensor; `reference` is None where none was computed."""

    weights: Path
    inputs: Path
    reference: Path | None
    weights_name: str


def ensure(workload: str, pass_name: str, parameters: dict, dtype: str, source: str | None, seed: int) -> Materials:
    """The materials of one workload at these parameters, made where they are not in the cache yet.

    The reference is float64, on weights and inputs as `dtype` holds them. `source` is a checkpoint (folder or hub
    name), or None for seeded weights. Raises MaterialsError.
    """
    request = {"workload": workload, "pass": pass_name, "parameters": parameters, "source": source, "seed": seed}
    request["storage"] = storage(dtype, pass_name)
    done = subprocess.run(
        [sys.executable, "-m", "harness.materials"],
        input=json.dumps(request), capture_output=True, text=True, cwd=ROOT,
    )  # fmt: skip
    if done.returncode < 0:
        raise MaterialsError(
            f"Making the weights and reference outputs of {workload} was ended by signal {-done.returncode}, "
            "most likely for want of memory; measure a smaller shape."
        )
    if done.returncode:
        raise MaterialsError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no weights were made")
    made = json.loads(done.stdout.splitlines()[-1])
    return Materials(
        weights=Path(made["weights"]),
        inputs=Path(made["inputs"]),
        reference=Path(made["reference"]) if made["reference"] else None,
        weights_name=made["weights_name"],
    )


class Store:
    """The materials of a whole plan, made before anything is measured."""

    def __init__(self, source: str | None, seed: int):
        self._source, self._seed = source, seed
        self._made: dict[tuple, Materials] = {}

    def prepare(self, groups: Iterable[Group], report: Callable[[str], None], seeded: bool = False) -> None:
        """Make what `groups` need, from the checkpoint if there is one and not `seeded`. Raises MaterialsError."""
        wanted = {self._key(group): group for group in groups}
        for number, (key, group) in enumerate(wanted.items(), start=1):
            workload, pass_name = group.cells[0].workload, group.cells[0].pass_name
            report(f"Weights and reference outputs {number}/{len(wanted)}: {workload}")
            source = None if seeded else self._source
            dtype = group.cells[0].dtype
            self._made[key] = ensure(workload, pass_name, group.parameters, dtype, source, self._seed)

    def __call__(self, group: Group) -> Materials:
        return self._made[self._key(group)]

    @staticmethod
    def _key(group: Group) -> tuple:
        cell = group.cells[0]
        return cell.workload, cell.pass_name, cell.parameters, storage(cell.dtype, cell.pass_name)


def storage(dtype: str, pass_name: str) -> str:
    """In which dtype a cell's weights lie: training keeps them in float32, and TF32 rounds inside a product only."""
    return "fp32" if pass_name == "training" or dtype == "tf32" else dtype


def _digest(*parts) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _code_digest() -> str:
    """Changes whenever a workload's code does, so that no stale reference survives an edit."""
    files = sorted((ROOT / "workloads").glob("*.py"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()[:16]


def _make(request: dict) -> dict:
    import numpy as np

    import workloads
    from workloads.rounding import stored
    from workloads.spec import sampled, without_padding

    workload, parameters = workloads.get(request["workload"], request["pass"]), request["parameters"]
    wanted = workload.weight_parameters(parameters)
    name, load = _weights_source(workload, wanted, request["source"], request["seed"])
    tensors = sorted(workload.weight_shapes(wanted))  # passes share their weights unless one has more of them
    weights = CACHE / f"{workload.name}-weights-{_digest(_code_digest(), workload.name, tensors, wanted, name)}"
    if not weights.exists():
        with _temporary() as folder:
            for tensor, value in load().items():
                np.save(folder / f"{tensor}.npy", value)
            _publish(folder, weights)

    oracle = workload.oracle_parameters(parameters)
    key = _digest(_code_digest(), workload.name, request["pass"], oracle, request["seed"])
    inputs = CACHE / f"{workload.name}-inputs-{key}.npz"
    sets = [workload.inputs(parameters, request["seed"] + 1 + index) for index in range(workload.input_sets)]
    _save(inputs, {f"{i}.{name}": value for i, arrays in enumerate(sets) for name, value in arrays.items()})

    held = request["storage"]
    reference = CACHE / f"{workload.name}-reference-{held}-{_digest(key, weights.name)}.npz"
    if workload.cost(parameters, "fp32").flops * workload.parity_calls > ORACLE_FLOPS:
        reference = None
    elif not reference.exists():
        loaded = {path.stem: stored(np.load(path), held) for path in weights.glob("*.npy")}
        calls = [
            {name: stored(value, held) for name, value in arrays.items()} for arrays in sets[: workload.parity_calls]
        ]
        outputs = {}
        for index, values in enumerate(workload.references(parameters, loaded, calls)):
            values = without_padding(values, calls[index].get(workload.padding))
            outputs |= {f"{index}.{name}": sampled(value, np.float64) for name, value in values.items()}
        _save(reference, outputs)
    return {"weights": weights, "inputs": inputs, "reference": reference, "weights_name": name}


def _weights_source(workload, parameters: dict, source: str | None, seed: int):
    """A name for the weights that changes with their values, and a function that loads them."""
    if source is None:
        return f"seed:{seed}", lambda: workload.seeded_weights(parameters, seed)
    from harness.checkpoints import open_checkpoint

    checkpoint = open_checkpoint(source)
    return checkpoint.name, lambda: workload.from_checkpoint(checkpoint.tensors, parameters, seed)


class _temporary:
    """A folder beside the cache's entries that is gone afterwards unless it was published."""

    def __enter__(self) -> Path:
        CACHE.mkdir(parents=True, exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(dir=CACHE, prefix=".new-"))
        return self.folder

    def __exit__(self, *_) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def _publish(made: Path, target: Path) -> None:
    """Move into place at once; a concurrent run that was first has made the same."""
    try:
        os.rename(made, target)
    except OSError:
        if not target.exists():
            raise


def _save(path: Path, arrays: dict) -> None:
    import numpy as np

    if path.exists():
        return
    with _temporary() as folder:
        np.savez(folder / "arrays.npz", **arrays)
        _publish(folder / "arrays.npz", path)


def main() -> int:
    from harness.checkpoints import CheckpointError

    try:
        made = _make(json.loads(sys.stdin.read()))
    except CheckpointError as error:
        print(error, file=sys.stderr)
        return 1
    print(json.dumps(made, default=str))
    return 0


if __name__ == "__main__":
    sys.exit(main())
