"""An MLP of matmul, layer norm and ReLU with TF32 off and on: the possible gain once matrix products are fast."""

from __future__ import annotations

from pathlib import Path

from experiments import tables
from experiments.evidence import Evidence, speedup_of
from experiments.judge import Assumed, above, below, greater, greater_of, inconclusive
from experiments.spec import Answer, Claim, Experiment, Published, Table
from records.shapes import Profile

# A profile has no interval; a share of the time is assumed accurate to so many percentage points.
PROFILE_POINTS = 3.0
DTYPES = {"off": "fp32", "on": "tf32"}


def matmul_share(profile: Profile | None) -> Assumed | None:
    """Return the percentage of kernels' time that matrix products take, idle time excluded."""
    if profile is None:
        return None
    times = {kind: seconds for kind, seconds in profile["classes"].items() if kind != "idle"}
    share = 100 * times["matmul"] / sum(times.values())
    return Assumed.around(share, PROFILE_POINTS, f"±{PROFILE_POINTS:.0f} points")


def eager_share(evidence: Evidence, tf32: str) -> Assumed | None:
    """Return the share in eager mode."""
    return matmul_share(evidence.profile(mode="eager", dtype=DTYPES[tf32]))


def share_falls(evidence: Evidence) -> Answer:
    """Check that matrix products take a smaller share of the time with TF32."""
    return greater("matmul with TF32 off", eager_share(evidence, "off"), "on", eager_share(evidence, "on"), " %")


def most_without(evidence: Evidence) -> Answer:
    """Check that without TF32 they take more than three quarters."""
    return above("matmul with TF32 off", eager_share(evidence, "off"), 75, " %")


def less_than_half_with(evidence: Evidence) -> Answer:
    """Check that with TF32 they take less than half."""
    return below("matmul with TF32 on", eager_share(evidence, "on"), 50, " %")


def graph_gains_more(evidence: Evidence) -> Answer:
    """Check that the graph's speedup is larger with TF32."""
    on, off = (evidence.records.graph.find_one(dtype=DTYPES[name]) for name in ("on", "off"))
    if on is None or off is None:
        return inconclusive("no speedup with TF32 off and on")
    return greater_of(speedup_of, "speedup with TF32 on", on, "off", off, "x")


CLAIMS = (
    Claim("With TF32 on, matrix products take a smaller share of the time.", share_falls, of="eager"),
    Claim("With TF32 off, matrix products take most of the time (85 % in the source).", most_without, of="eager"),
    Claim(
        "With TF32 on, matrix products take less than half of the time (40 % in the source).",
        less_than_half_with,
        of="eager",
    ),
    Claim("Graph mode gains more with TF32 on than off.", graph_gains_more),
)


def make_tables(evidence: Evidence, published: Published) -> list[Table]:
    """Return the share of matrix products with the published one, and the speedups."""
    profiled = dict.fromkeys((p["framework"], p["mode"]) for p in evidence.profiles)
    rows = []
    for row in published:
        profiles = (evidence.profile(framework=f, mode=m, dtype=DTYPES[row["tf32"]]) for f, m in profiled)
        shares = (matmul_share(profile) for profile in profiles)
        rows.append((row["tf32"], row["matmul_time_pct"], *(f"{s.value:.0f}" if s else "" for s in shares)))
    columns = ("TF32", "published", *(f"{framework} {mode}" for framework, mode in profiled))
    made = [Table("Matrix products, % of kernels' time", columns, tuple(rows))]
    groups = tables.by_framework(evidence)
    if groups:
        axes = ("dtype", "width", "batch_size")
        made.append(tables.by_shape("Latency in ms (median)", axes, groups, tables.latency))
        graphs = {name: records.graph for name, records in groups.items()}
        made.append(tables.by_shape("Gain in %, (eager - graph) / eager", axes, graphs, tables.gain))
    return made


EXPERIMENT = Experiment(
    folder=Path(__file__).parent,
    title="MLP with layer norm and ReLU: TF32 off and on",
    source="eager-mode thread, 2022-12",
    claims=CLAIMS,
    tables=make_tables,
)
