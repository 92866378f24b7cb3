"""Turn a sweep into cells and cells into processes, and estimate how long they take."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import frameworks
import workloads
from frameworks.description import Framework
from measurement.cells import Cell, matches
from measurement.energy import WINDOW_SECONDS
from measurement.profiles import PROFILES, Profile
from measurement.protocol import Control
from measurement.refusals import UsageError
from plan import suggestions, user_models
from plan.options import variable
from plan.sweep import Sweep, takes
from workloads.spec import Parameter, Workload

# Rough figures, used only for the estimate, in seconds on a small machine.
START_SECONDS, COMPILE_SECONDS, LOAD_SECONDS = 8.0, 12.0, 3.0
POSITION_SECONDS = 0.3  # per position of an unrolled loop, on an H200
# Until the intervals are narrow enough. `standard`: the mean over groups of the edition's records, rounded up;
# `rigorous`, which has no records: the middle of its range.
EXPECTED_PROCESSES = {"quick": 3, "standard": 5, "rigorous": 12}
SPARE_PROCESSES = 2  # of a budget on a GPU
PARTS_A_SLOT = 4  # parts of bundles per slot, approximately, so that slots end at about the same time


@dataclass(frozen=True)
class Group:
    """Cells that differ only in their mode, measured alternately. `lacking` holds the ids of those without a record."""

    cells: tuple[Cell, ...]
    lacking: frozenset[str]
    controls: tuple[Control, ...] = ()

    @property
    def parameters(self) -> dict[str, int | str]:
        return dict(self.cells[0].parameters)

    def without(self, ids: set[str]) -> Group | None:
        """Return the group without the cells in `ids`; None if every remaining cell has a record."""
        left = tuple(cell for cell in self.cells if cell.id not in ids)
        lacking = self.lacking - ids
        return replace(self, cells=left, lacking=lacking) if lacking else None


@dataclass(frozen=True)
class Bundle:
    """Groups that share worker processes: those with the same `process_key`."""

    groups: tuple[Group, ...]

    @property
    def first(self) -> Cell:
        return self.groups[0].cells[0]


@dataclass(frozen=True)
class Plan:
    """All planned cells, the bundles to measure, and the cells known beforehand to be impossible, with reasons."""

    cells: tuple[Cell, ...]
    bundles: tuple[Bundle, ...]
    impossible: dict[str, str]


def cells_of(sweep: Sweep) -> list[Cell]:
    """Return every cell of the sweep, in the order of the plan. Raises UsageError for a parameter out of bounds."""
    cells = [
        Cell(framework, workload.name, implementation, pass_name, device, dtype, threads, shape, mode, shapes)
        for framework, device, dtype, threads, shapes in itertools.product(
            *(sweep.axes[name] for name in ("framework", "device", "dtype", "threads", "shapes"))
        )
        for name, pass_name in itertools.product(sweep.axes["workload"], sweep.axes["pass"])
        for workload in [workloads.get(name, pass_name)]
        if pass_name in workload.passes and user_models.is_for(workload, framework)
        for implementation in sweep.axes["implementation"] or workload.implementations[:1]
        if implementation in workload.implementations
        for shape in shapes_of(workload, implementation, sweep, partial(default_of, framework, device, dtype))
        for mode in measured_modes(framework, sweep.axes["mode"], device.split(":")[0], pass_name)
    ]
    if not cells:
        if unknown := unknown_modes(sweep):
            raise UsageError(f"Nothing to measure: {unknown}")
        names, passes = (", ".join(sweep.axes[name]) for name in ("workload", "pass"))
        model = f"{' or '.join(sweep.axes['implementation'])} model".lstrip()
        having = {name for workload in sweep.axes["workload"] for name in workloads.get(workload).passes}
        others = [name for name in workloads.PASSES if name in having - set(sweep.axes["pass"])]
        hint = f" There is PASS={','.join(others)}." if others else ""
        hint += user_models.training_hint(sweep.axes["workload"]) if "training" in sweep.axes["pass"] else ""
        raise UsageError(f"Nothing to measure: {names} has no {model} for the {passes} pass.{hint}")
    kept = [cell for cell in cells if not sweep.filter or matches(cell.id, sweep.filter)]
    if not kept:
        raise UsageError(f"No cell's name matches FILTER={sweep.filter!r}; `DRY_RUN=1` lists the names.")
    return kept


def default_of(framework: str, device: str, dtype: str, parameter: Parameter) -> int | str:
    """Return the framework's default of a parameter; attention is explicit if the framework has no kernel for it."""
    description = frameworks.describe(framework)
    if parameter.name == "attention" and not description.attention_kernel("plain", device.split(":")[0], dtype):
        return "explicit"
    return description.defaults.get(parameter.name, parameter.default)


def shapes_of(
    workload: Workload, implementation: str, sweep: Sweep, default: Callable[[Parameter], int | str]
) -> list[tuple[tuple[str, int | str], ...]]:
    """Return every combination of the workload's parameters in the sweep. Raises UsageError."""
    measured = itertools.product(sweep.axes["workload"], sweep.axes["pass"])
    every = (parameter for name, kind in measured for parameter in workloads.get(name, kind).parameters)
    declared = dict.fromkeys(parameter.flag for parameter in every)
    for flag in sweep.parameters:
        if flag not in declared:
            raise UsageError(_takes_no(flag, sweep, declared))
    choices = []
    for parameter in workload.parameters:
        if implementation not in parameter.implementations:
            continue
        values = sweep.parameters.get(parameter.flag, [default(parameter)])
        for value in values:
            problem = parameter.problem(value)
            if problem:
                raise UsageError(f"{workload.name}: {problem}")
        choices.append([(parameter.name, value) for value in dict.fromkeys(values)])
    named = (tuple(workload.named(dict(shape)).items()) for shape in itertools.product(*choices))
    return list(dict.fromkeys(named))


def _takes_no(flag: str, sweep: Sweep, declared: Iterable[str]) -> str:
    """Return a sentence that reports a parameter of no workload in the sweep, with the workloads that have it.

    `declared` are the flags of the parameters that the sweep's workloads have.
    """
    passes = sweep.axes["pass"]

    def takers(*kinds: str) -> list[str]:
        return [name for name in workloads.names() if any(flag in workloads.flags_of(name, kind) for kind in kinds)]

    names = sweep.axes["workload"]
    others = ", ".join(takers(*passes))
    if not others:
        kind, others = next((one, ", ".join(found)) for one in workloads.PASSES if (found := takers(one)))
        others = f"PASS={kind}" if set(names) <= set(takers(kind)) else f"{others}, for PASS={kind}"
    return (
        f"{variable(flag)} has no effect on the {' and '.join(passes)} of {', '.join(names)}; "
        f"it is a parameter of {others}, and {takes(names, map(variable, declared))}."
    )


def modes_of(framework: str, given: list[str], device_kind: str = "cpu", pass_name: str = "inference") -> list[str]:
    """Return the framework's modes that words like `graph` and `all` select, eager first; ignore unknown modes.

    `all` excludes a ladder's rungs, which nobody deploys, and modes that need additional packages.
    """
    description = frameworks.describe(framework)
    known = [mode.name for mode in description.modes]
    words = {
        "all": [mode.name for mode in description.modes if not mode.is_rung and not mode.packages],
        "graph": description.default_graph,
        "recommended": description.recommended(device_kind),
        "eager": [description.baseline.name],
        "ladder": description.ladder_modes(device_kind, pass_name),
    }
    chosen = {name for word in given for name in words.get(word, [word])}
    return [name for name in known if name in chosen]


def unknown_modes(sweep: Sweep) -> str:
    """Return a sentence on the words of MODE that no framework of the sweep has; empty where each is known."""
    asked = sweep.axes["framework"]
    others = [word for word in sweep.axes["mode"] if word not in suggestions.mode_words(asked)]
    known = {name: [mode.name for mode in frameworks.describe(name).modes] for name in asked}
    there = "; ".join(f"{name} has {', '.join(names)}" for name, names in known.items())
    return f"MODE={','.join(others)} is not a mode here: {there}." if others else ""


def measured_modes(framework: str, given: list[str], device_kind: str, pass_name: str) -> list[str]:
    """Return the modes that the words select, plus the baseline, which every speedup needs."""
    named = modes_of(framework, given, device_kind, pass_name)
    return modes_of(framework, ["eager", *named], device_kind, pass_name) if named else []


def baseline_of(cell: Cell) -> Cell:
    """Return the cell that the speedup of `cell` is relative to."""
    return replace(cell, mode=frameworks.describe(cell.framework).baseline.name)


def known_obstacle(cell: Cell) -> str | None:
    """Return why no machine can run this cell, from the framework's description; None if one might."""
    description = frameworks.describe(cell.framework)
    workload = workloads.get(cell.workload, cell.pass_name)
    mode = description.mode(cell.mode)
    if not description.has(cell.implementation, workload.family):
        other = description.other_architectures.get(workload.family) if cell.implementation == "library" else None
        why = f" ({other})" if other else ""
        return f"{description.title} has no {cell.implementation} implementation of {cell.workload}{why}."
    if cell.device_kind not in mode.devices:
        return f"{description.title}'s mode {mode.name} needs a {' or '.join(mode.devices).upper()}."
    if cell.pass_name not in mode.passes:
        return f"{description.title}'s mode {mode.name} does not run the {cell.pass_name} pass."
    if cell.shapes == "dynamic" and (why := description.one_shape(mode, cell.implementation)):
        return (
            f"{description.title}'s mode {mode.name} serves one shape ({why}): use SHAPES=static, or UNSEEN_SEQ= to "
            f"measure an unseen length."
        )
    if cell.dtype == "tf32" and cell.device_kind == "cpu":
        return "TF32 exists on GPUs only: choose DTYPE=fp32, or DEVICE=gpu."
    if not description.has(cell.implementation, workload.family, cell.pass_name):
        return f"{description.title} has no {cell.pass_name} pass of {cell.workload} with IMPL={cell.implementation}."
    if problem := _obstacle_to_ranks(cell, description):
        return problem
    if cell.dtype not in workload.tolerance:  # training in fp16 needs loss scaling
        return (
            f"The {cell.pass_name} pass is not available in {cell.dtype}; choose from {', '.join(workload.tolerance)}."
        )
    return None


def _obstacle_to_ranks(cell: Cell, description: Framework) -> str | None:
    """Return why a cell cannot train on its ranks, recompute activations or store its states; None if it can."""
    if (strategy := cell.parameter("strategy")) is not None:
        modes = description.strategies.get(str(strategy), ())
        if cell.mode not in modes:
            offered = f" supports {', '.join(modes)}" if modes else " supports no mode"
            return f"{description.title}{offered} with RANKS above 1 and STRATEGY={strategy}, not {cell.mode}."
        if cell.parameter("accumulate", 1) != 1:
            return "Several ranks are measured with ACCUMULATE=1 only."
    family = workloads.get(cell.workload, cell.pass_name).family
    if cell.parameter("checkpoint", "none") != "none" and family not in description.checkpointed:
        return f"{description.title} does not support CHECKPOINT={cell.parameter('checkpoint')} for {cell.workload}."
    if cell.parameter("states", cell.dtype) not in ("fp32", cell.dtype):
        return f"STATES={cell.parameter('states')} needs DTYPE={cell.parameter('states')}."
    return None


def plan(sweep: Sweep, finished: frozenset[str] = frozenset()) -> Plan:
    """Return the plan of the sweep, with bundles for all cells that have no record yet.

    A partly finished group is measured with its eager cell again, because a ratio needs both; only the missing cells
    get records. Raises UsageError if no machine can measure any cell.
    """
    planned = arranged(cells_of(sweep), sweep, finished)
    if len(planned.impossible) == len(planned.cells) and not finished:
        raise UsageError(f"Nothing to measure: {' '.join(dict.fromkeys(planned.impossible.values()))}")
    return planned


def arranged(cells: list[Cell], sweep: Sweep, finished: frozenset[str] = frozenset()) -> Plan:
    """Return the plan of `cells`, with bundles for those that have no record yet."""
    impossible = {cell.id: reason for cell in cells if (reason := known_obstacle(cell))}
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.id not in impossible:
            groups.setdefault(cell.group_id, []).append(cell)
    bundles: dict[tuple[str | int, ...], list[Group]] = {}
    for members in groups.values():
        lacking = frozenset(cell.id for cell in members if cell.id not in finished)
        if not lacking:
            continue
        needed = tuple(cell for cell in members if cell.id in lacking or frameworks.is_baseline(cell))
        bundles.setdefault(process_key(members[0], sweep.isolate), []).append(Group(needed, lacking))
    slots, every = sweep.places.slots, max(1, sum(map(len, bundles.values())))

    def shares(bundle: Bundle) -> int:
        """Return the number of parts of a bundle: starts take seconds, so a small share of the groups stays whole."""
        return min(slots, math.ceil(PARTS_A_SLOT * slots * len(bundle.groups) / every))

    # The largest batch first: a batch that does not fit in memory fails before the others take time.
    ordered = [
        Bundle(tuple(sorted(groups, key=lambda group: -int(group.parameters.get("batch_size", 0)))))
        for groups in bundles.values()
    ]
    parts = [part for bundle in ordered for part in (divided(bundle, shares(bundle)) if slots else (bundle,))]
    return Plan(tuple(cells), tuple(parts), impossible)


def process_key(cell: Cell, isolate: bool) -> tuple[str | int, ...]:
    """Return the properties that groups of one worker process share; with `isolate` each group has its own process.

    A user's file shares its process with no other workload: the modules that it imports and the settings that it
    changes affect the whole process.
    """
    workload = workloads.get(cell.workload, cell.pass_name)
    file = cell.workload if user_models.is_users_file(workload) else ""
    key = (cell.framework, cell.pass_name, cell.device, cell.dtype, cell.threads, file, cell.ranks)
    return (*key, cell.group_id) if isolate else key


def divided(bundle: Bundle, parts: int) -> tuple[Bundle, ...]:
    """Return the bundle divided into at most `parts` bundles of about the same size.

    Shapes that differ only in batch are adjacent, so only the limit of a part separates them.
    """

    def shape(group: Group) -> str:
        first = group.cells[0]
        rest = tuple(item for item in first.parameters if item[0] != "batch_size")
        return replace(first, parameters=rest).group_id

    shapes = list(dict.fromkeys(map(shape, bundle.groups)))
    groups = sorted(bundle.groups, key=lambda group: shapes.index(shape(group)))  # stable: larger batches stay first
    parts = min(parts, len(groups))
    bounds = [len(groups) * part // parts for part in range(parts + 1)]
    return tuple(Bundle(tuple(groups[low:high])) for low, high in itertools.pairwise(bounds))


def at_unseen_length(group: Group, length: int | str | None) -> Group | None:
    """Return the group at the sequence length of UNSEEN_SEQ; None without either length. Raises UsageError."""
    if length is None or "seq_len" not in group.parameters:
        return None
    cell = group.cells[0]
    if cell.ranks > 1:
        raise UsageError("UNSEEN_SEQ needs RANKS=1: omit one of them.")
    (parameter,) = (p for p in workloads.get(cell.workload, cell.pass_name).parameters if p.name == "seq_len")
    if problem := parameter.problem(length):
        raise UsageError(f"UNSEEN_SEQ: {problem}")
    if length == group.parameters["seq_len"]:
        raise UsageError(f"UNSEEN_SEQ={length} is already a sequence length of this sweep; choose another length.")

    def longer(cell: Cell) -> Cell:
        shape = tuple((name, length if name == "seq_len" else value) for name, value in cell.parameters)
        return replace(cell, parameters=shape)

    return replace(group, cells=tuple(map(longer, group.cells)))


def profiled(groups: Sequence[Group]) -> list[Group]:
    """Return eager mode of the groups that a profile bounds: on a GPU, in a framework that can replay kernels."""
    found = []
    for group in groups:
        cell = group.cells[0]
        modes = frameworks.describe(cell.framework).modes
        replays = cell.ranks == 1 and any(mode.replays for mode in modes)
        if cell.device_kind == "gpu" and replays and len(group.cells) > 1:
            eager = [member for member in group.cells if frameworks.is_baseline(member)]
            found += [Group(tuple(eager), frozenset())] if eager else []
    return found


def expected_processes(profile: Profile) -> int:
    """Return the approximate number of processes of a bundle, within the profile's limits."""
    expected = EXPECTED_PROCESSES.get(profile.name, profile.minimum_processes)
    return min(max(expected, profile.minimum_processes), profile.maximum_processes)


def estimated_seconds(bundle: Bundle, profile: Profile, compile_cache: str, energy: bool = False) -> float:
    """Return the estimated seconds of a bundle: starts, compilation, warm-up and sampling, without environments."""
    cells = [cell for group in bundle.groups for cell in group.cells]
    processes = expected_processes(profile)
    starts = processes + (compile_cache == "warm")
    compiling = sum(_compiling_seconds(cell, starts) for cell in cells if not frameworks.is_baseline(cell))
    in_process = profile.warmup_seconds / 2 + profile.seconds_per_cell / profile.minimum_processes
    in_process += energy * WINDOW_SECONDS
    all_starts = starts + bool(profiled(bundle.groups))
    return all_starts * START_SECONDS + compiling + processes * len(cells) * in_process


def _compiling_seconds(cell: Cell, starts: int) -> float:
    """Return the estimated seconds of a graph's compilation in that many processes."""
    description = frameworks.describe(cell.framework)
    mode, first = description.mode(cell.mode), COMPILE_SECONDS
    family = workloads.get(cell.workload, cell.pass_name).family
    if mode.fuses and cell.device_kind == "gpu" and family in description.unrolled:
        first += int(cell.parameter("seq_len") or 0) * POSITION_SECONDS
    if mode.artefact:
        return starts * first  # built by every process
    return first + (starts - 1) * LOAD_SECONDS  # loaded by every later process


def profile_of(sweep: Sweep) -> Profile:
    """Return the sweep's profile; a budget scales its times, and limits it to its minimum number of processes.

    On a GPU more replace those on a slow host, which may stay slow for minutes.
    """
    profile = PROFILES[sweep.profile]
    if sweep.budget is None:
        return profile
    scale = sweep.budget / profile.seconds_per_cell
    return replace(
        profile,
        maximum_processes=profile.minimum_processes,
        spare_processes=SPARE_PROCESSES if any(device.startswith("gpu") for device in sweep.axes["device"]) else 0,
        seconds_per_cell=sweep.budget,
        maximum_seconds_per_cell=profile.maximum_seconds_per_cell * scale,
        warmup_seconds=profile.warmup_seconds * scale,
    )
