"""Weights, inputs and reference outputs: computed once, in a separate process, and stored for later runs.

Every worker reads the same files, so every framework gets the same numbers with any version of NumPy. The parent calls
`ensure`, which only starts processes; as `python -m execution.reference_data`, this module computes the data.

Each file has its digest next to it. A run compares all digests once, before any measurement, and makes invalid files
again. Before each process it checks file metadata for writes, without reading the files.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import frameworks
import workloads
from environments import locks
from measurement import durable, places, programs
from measurement.places import SUITE
from measurement.refusals import UsageError, naming, sentence
from workloads.signature import Unreadable

if TYPE_CHECKING:
    from plan.plan import Group
    from workloads.spec import Arrays, Parameters, Weights, Workload

CACHE = places.CACHE / "reference"
LOCK = ".lock"
UNKEPT = 2  # exit code where the system refused a file
# Beyond this the NumPy reference takes minutes; cells are then compared with the first framework's outputs.
REFERENCE_FLOPS = 2e12
NOW, LATER, NEVER = "now", "later", "never"  # when to compute a reference that the cache lacks


Requests = dict[tuple[object, ...], dict[str, Any]]  # of `ensure`, by `Store._key`


class ReferenceDataError(UsageError):
    """The weights are not available; the message is one clear sentence."""


class Unkept(ReferenceDataError):
    """The system refused a file of the cache; a second attempt may succeed."""


@dataclass(frozen=True)
class ReferenceData:
    """Paths of a group's data. `weights` contains one `.npy` per tensor; `reference` is None if none was computed."""

    weights: Path
    inputs: Path
    reference: Path | None
    weights_name: str
    lacking: bool = False  # whether the reference is still to be computed

    @property
    def kept(self) -> list[Path]:
        """Return the files and folders of the job's data in the cache."""
        return [path for path in (self.weights, self.inputs, self.reference) if path]


def ensure(requests: Sequence[dict[str, Any]], seals: dict[str, str]) -> list[ReferenceData]:
    """Return the reference data of each of `Store`'s requests; compute missing and damaged entries of the cache.

    The reference is float64, from weights and inputs rounded to the storage dtype. `seals` are those of files that this
    run has compared with their digests; add new ones. Raises ReferenceDataError.
    """
    command = [sys.executable, "-m", "execution.reference_data"]
    words = json.dumps({"requests": requests, "seals": seals})
    done = programs.run(command, programs.LONG, programs.MUCH, words=words, cwd=SUITE)
    lines = [line for line in done.output.splitlines() if line.startswith("{")]
    workload = requests[min(len(lines), len(requests) - 1)]["workload"]  # the current one, if the process failed
    if done.problem:
        raise ReferenceDataError(f"Making the weights and reference outputs of {workload} failed: {done.problem}.")
    if done.code and done.code < 0:
        raise ReferenceDataError(
            f"Making the weights and reference outputs of {workload} was stopped by signal {-done.code}, "
            "most likely because memory ran out; measure a smaller shape."
        )
    if done.code:
        kind = Unkept if done.code == UNKEPT else ReferenceDataError
        raise kind(done.errors.strip().splitlines()[-1] if done.errors.strip() else "no weights were made")
    made = [json.loads(line) for line in lines]
    for one in made:
        seals |= one["seals"]
    return [
        ReferenceData(
            weights=Path(one["weights"]),
            inputs=Path(one["inputs"]),
            reference=Path(one["reference"]) if one["reference"] else None,
            weights_name=one["weights_name"],
            lacking=one["lacking"],
        )
        for one in made
    ]


class Store:
    """The reference data of a whole plan, made before anything is measured."""

    def __init__(self, source: str | None, seed: int):
        self._source, self._seed = source, seed
        self._made: dict[tuple[object, ...], tuple[dict[str, Any], ReferenceData]] = {}
        self._seals: dict[str, str] = {}  # by path, of files compared with their digests
        self._background = ThreadPoolExecutor(1)
        self._awaited: list[tuple[Requests, Future[list[ReferenceData]]]] = []  # data that it makes, in order

    def prepare(
        self, groups: Sequence[Group], report: Callable[[str], None], seeded: bool = False, references: str = NOW
    ) -> None:
        """Make the reference data of `groups`, from a checkpoint unless `seeded`. Raises ReferenceDataError.

        With `LATER`, references are still being computed when this returns; `complete` waits for them.
        """
        requests = self._requests(groups, seeded)
        if not requests:
            return
        if references != NEVER:
            names = dict.fromkeys(group.cells[0].workload for group in groups)
            report(f"Weights and reference outputs: {', '.join(names)}")
        asked = [request | {"reference": references} for request in requests.values()]
        self._take(requests, ensure(asked, self._seals))
        if references == LATER:
            self._make_later({key: request for key, (request, made) in self._made.items() if made.lacking})

    def prepare_later(self, groups: Iterable[Group]) -> None:
        """Make the seeded data of `groups`, without references, in the background; `complete` waits for them."""
        requests = self._requests(groups, seeded=True)
        self._make_later({key: request | {"reference": NEVER} for key, request in requests.items()})

    def complete(self) -> None:
        """Wait for data made in the background. Raises ReferenceDataError."""
        while self._awaited:
            requests, made = self._awaited[0]
            self._take(requests, made.result())
            self._awaited.pop(0)  # not before: what failed once fails again

    def close(self) -> None:
        """Begin no further work in the background."""
        self._background.shutdown(wait=False, cancel_futures=True)

    def _requests(self, groups: Iterable[Group], seeded: bool) -> Requests:
        """Return the requests for the data of `groups` that are not made yet, by key."""
        requests: Requests = {}
        for key, group in {self._key(group): group for group in groups}.items():
            if key in self._made:
                continue
            cell = group.cells[0]
            requests[key] = {
                "workload": cell.workload,
                "pass": cell.pass_name,
                "parameters": with_conventions(group),
                "seed": self._seed,
                "source": None if seeded else self._source,
                "own": workloads.source_of(cell.workload),
                "storage": storage(cell.dtype, cell.pass_name),
            }
        return requests

    def _take(self, requests: Requests, made: list[ReferenceData]) -> None:
        self._made |= dict(zip(requests, zip(requests.values(), made, strict=True), strict=True))

    def _make_later(self, requests: Requests) -> None:
        if requests:
            self._awaited.append((requests, self._background.submit(ensure, [*requests.values()], self._seals)))

    def __call__(self, group: Group) -> ReferenceData:
        """Return the reference data of a prepared group, with its reference."""
        self.complete()
        return self.for_worker(group)

    def for_worker(self, group: Group) -> ReferenceData:
        """Return a group's reference data, with a reference only if it exists; make changed or removed files again."""
        request, made = self._made[self._key(group)]
        if any(durable.seal(path) != self._seals.get(str(path)) for path in made.kept):
            self.complete()
            (made,) = ensure([request], self._seals)
            self._made[self._key(group)] = request, made
        return made

    @staticmethod
    def _key(group: Group) -> tuple[object, ...]:
        cell = group.cells[0]
        return (
            cell.workload,
            cell.pass_name,
            tuple(with_conventions(group).items()),
            storage(cell.dtype, cell.pass_name),
        )


def with_conventions(group: Group) -> Parameters:
    """Return a group's parameters, with the framework's conventions that its reference follows."""
    cell, parameters = group.cells[0], group.parameters
    followed = workloads.get(cell.workload, cell.pass_name).conventions(parameters)
    conventions = frameworks.describe(cell.framework).conventions(cell.device_kind)
    return parameters | {name: form for name, form in conventions.items() if name in followed}


def storage(dtype: str, pass_name: str) -> str:
    """Return the dtype of a cell's weights: training keeps float32, and TF32 rounds only within products."""
    return "fp32" if pass_name == "training" or dtype == "tf32" else dtype


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _code_digest() -> str:
    """Return a digest of the workloads' code, so that no stale reference survives an edit."""
    files = sorted((SUITE / "workloads").glob("*.py"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()[:16]


def _make(request: dict[str, Any], cache: Cache) -> dict[str, Any]:
    import numpy as np

    from workloads.rounding import stored

    if request.get("own"):
        workloads.add({request["workload"]: request["own"]})
    workload, parameters = workloads.get(request["workload"], request["pass"]), request["parameters"]
    dimensions = workload.weight_parameters(parameters)
    name, load = _weights_source(workload, dimensions, request["source"], request["seed"])
    tensors = sorted(workload.weight_shapes(dimensions))  # passes share their weights unless one has more tensors
    weights = CACHE / f"{workload.name}-weights-{_digest(_code_digest(), workload.name, tensors, dimensions, name)}"
    if not cache.holds(weights):
        with _temporary() as folder:
            made = folder / weights.name
            made.mkdir()
            for tensor, value in load().items():
                np.save(made / f"{tensor}.npy", value)
            cache.publish(made)

    shape = workload.reference_parameters(parameters)
    key = _digest(_code_digest(), workload.name, request["pass"], shape, request["seed"])
    sets = workload.sets(parameters, request["seed"])
    shapes = [[value.shape for value in arrays.values()] for arrays in sets]  # the same values may have other shapes
    inputs = CACHE / f"{workload.name}-inputs-{_digest(key, shapes)}.npz"
    cache.save(inputs, {f"{i}.{name}": value for i, arrays in enumerate(sets) for name, value in arrays.items()})

    held = request["storage"]
    reference = CACHE / f"{workload.name}-reference-{held}-{_digest(key, weights.name)}.npz"
    flops = workload.cost(parameters, "fp32").flops * workload.parity_calls
    has_reference = workload.has_reference and flops <= REFERENCE_FLOPS
    when = request.get("reference", NOW)
    kept_already = has_reference and when != NEVER and cache.holds(reference)
    if has_reference and when == NOW and not kept_already:
        kept = {path.stem: stored(np.load(path), held) for path in weights.glob("*.npy")}
        cache.save(reference, _outputs(workload, parameters, workload.weights_from(dimensions, kept), sets, held))
    return {
        "weights": weights,
        "inputs": inputs,
        "reference": reference if has_reference and (when == NOW or kept_already) else None,
        "lacking": has_reference and when == LATER and not kept_already,
        "weights_name": name,
        "seals": cache.seals,
    }


def _outputs(workload: Workload, parameters: Parameters, weights: Weights, sets: list[Arrays], held: str) -> Arrays:
    """Return reference outputs of the compared calls, as `<call>.<name>`, on inputs rounded to the dtype `held`."""
    import numpy as np

    from workloads.rounding import stored
    from workloads.spec import sampled, without_padding

    calls = [{name: stored(value, held) for name, value in arrays.items()} for arrays in sets[: workload.parity_calls]]
    outputs: Arrays = {}
    for index, values in enumerate(workload.references(parameters, weights, calls)):
        values = without_padding(values, calls[index].get(workload.padding or ""))
        outputs |= {f"{index}.{name}": sampled(value, np.float64) for name, value in values.items()}
    return outputs


def _weights_source(
    workload: Workload, parameters: Parameters, source: str | None, seed: int
) -> tuple[str, Callable[[], Arrays]]:
    """Return a name for the weights that changes with their values, and a function that loads them."""
    if source is None:
        return f"seed:{seed}", lambda: workload.kept_weights(parameters, seed)
    from execution.checkpoints import open_checkpoint

    checkpoint = open_checkpoint(source)
    return checkpoint.name, lambda: workload.from_checkpoint(checkpoint.tensors, parameters, seed)


@contextlib.contextmanager
def _temporary() -> Iterator[Path]:
    """Yield a locked folder in the cache, removed afterwards; a killed process leaves it unlocked."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as held:
        with locks.exclusive(CACHE / LOCK):
            for left in filter(locks.is_free, CACHE.glob(".new-*")):
                shutil.rmtree(left, ignore_errors=True)
            folder = Path(tempfile.mkdtemp(dir=CACHE, prefix=".new-"))
            held.enter_context(locks.hold_folder(folder))
        try:
            with naming(CACHE):
                yield folder
        except Exception:
            durable.check_room(CACHE, os.environ)  # else NumPy's message hides that the disk is full
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)


class Cache:
    """Entries with their digests. `seals` are, by path, those of entries compared with their digests."""

    def __init__(self, seals: dict[str, str]):
        self.seals = dict(seals)

    def holds(self, entry: Path) -> bool:
        """Return whether there is an undamaged entry; read it once per run, and again after a change."""
        now = durable.seal(entry)
        if now is None or self.seals.get(str(entry)) == now:
            return now is not None
        if durable.fits(entry):
            self.seals[str(entry)] = now
            return True
        return False

    def publish(self, made: Path) -> None:
        """Move a finished entry and its digest to the cache, atomically; keep an entry from a concurrent run.

        The entry may not be on disk yet: after a power failure the digest shows what is missing.
        """
        entry = CACHE / made.name
        digest = durable.beside(made)
        digest.write_text(durable.digest_line(made))
        with locks.exclusive(CACHE / LOCK):
            if not self.holds(entry):
                if entry.is_dir():
                    os.rename(entry, made.parent / "damaged")
                if made.is_file():
                    os.replace(digest, durable.beside(entry))
                os.rename(made, entry)
                if seal := durable.seal(entry):
                    self.seals[str(entry)] = seal

    def save(self, entry: Path, arrays: Arrays) -> None:
        """Write an entry of arrays, unless it exists."""
        import numpy as np

        if self.holds(entry):
            return
        with _temporary() as folder:
            np.savez(folder / entry.name, **arrays)  # type: ignore[arg-type]
            self.publish(folder / entry.name)


def main() -> int:
    try:
        asked = json.loads(sys.stdin.read())
        for request in asked["requests"]:
            made = _make(request, Cache(asked["seals"]))
            asked["seals"] |= made["seals"]
            print(json.dumps(made, default=str), flush=True)
    except (UsageError, Unreadable) as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"Weights and reference outputs cannot be written. {sentence(error)}", file=sys.stderr)
        return UNKEPT
    return 0


if __name__ == "__main__":
    sys.exit(main())
