"""bert-operators: BERT's FLOPs by class of operator, against the time that a profile finds for each class."""

from __future__ import annotations

from collections.abc import Mapping

from experiments.evidence import Evidence
from experiments.judge import Assumed, above, below, between, inconclusive
from experiments.spec import Answer, Claim, Table
from measurement.statistics import Interval
from records.shapes import Profile, of_baseline

PRODUCTS = ("matmul", "attention")
# A profile is one run of a few calls and has no interval; its times are assumed accurate to this share.
PROFILE_SPREAD = 0.2


def profile_of(evidence: Evidence, eager: bool) -> Profile | None:
    """Return the profile of BERT in eager mode, or in the side's graph mode."""
    profiles = [p for p in evidence.profiles if p["workload"].startswith("bert") and of_baseline(p) == eager]
    return profiles[0] if len(profiles) == 1 else None


def uncertain(value: float) -> Assumed:
    """Return a profile's figure, with the spread assumed for profiles."""
    return Assumed.around(value, value * PROFILE_SPREAD, f"±{100 * PROFILE_SPREAD:.0f} %")


def flops_outside_products(profile: Profile) -> float:
    """Return the share of operations outside matrix products, analytic, in percent."""
    flops = profile["flops"]
    return 100 * (1 - sum(flops.get(kind, 0) for kind in PRODUCTS) / sum(flops.values()))


def time_outside_products(profile: Profile) -> float:
    """Return the share of kernels' time outside matrix products, in percent, idle time excluded."""
    times = {kind: seconds for kind, seconds in profile["classes"].items() if kind != "idle"}
    return 100 * (1 - sum(times[kind] for kind in PRODUCTS) / sum(times.values()))


def few_flops(evidence: Evidence) -> Answer:
    """Check that hardly any of BERT's operations are outside matrix products."""
    profile = profile_of(evidence, eager=True)
    if profile is None:
        return inconclusive("BERT's eager mode was not profiled")
    share = flops_outside_products(profile)
    return below("operations outside matrix products", Interval(share, share, share), 1, " %")


def much_time(evidence: Evidence) -> Answer:
    """Check that they take ten times their share of operations in time."""
    profile = profile_of(evidence, eager=True)
    if profile is None:
        return inconclusive("BERT's eager mode was not profiled")
    share = uncertain(time_outside_products(profile) / flops_outside_products(profile))
    return above("their share of the time is", share, 10, " times that of the operations")


def slower(kind: str, times: float):
    """Return a check that a class reaches so many times fewer FLOP/s than matrix products, within a factor of 2.

    In eager mode: graphs fuse classes, and the time of a fused kernel cannot be divided among its operators.
    """

    def check(evidence: Evidence) -> Answer:
        profile = profile_of(evidence, eager=True)
        if profile is None or not profile["classes"][kind]:
            return inconclusive("BERT's eager mode was not profiled")
        flops, seconds = profile["flops"], profile["classes"]
        products = sum(flops[name] for name in PRODUCTS) / sum(seconds[name] for name in PRODUCTS)
        ratio = uncertain(products / (flops[kind] / seconds[kind]))
        return between(f"{kind} is", ratio, times / 2, 2 * times, " times slower")

    return check


CLAIMS = (
    Claim("Less than 1 % of BERT's FLOPs lie outside matrix products (0.2 % in the source).", few_flops, of="eager"),
    Claim("In eager mode these FLOPs take more than ten times their share of the time.", much_time, of="eager"),
    Claim(
        "Normalisation reaches 250 times fewer FLOP/s than matrix products.", slower("normalisation", 250), of="eager"
    ),
    Claim(
        "Pointwise operators reach 700 times fewer FLOP/s than matrix products.", slower("pointwise", 700), of="eager"
    ),
)


def outside(evidence: Evidence) -> str:
    """Return the share of operations outside matrix products, as text."""
    profile = profile_of(evidence, eager=True)
    return f"{flops_outside_products(profile):.2g}" if profile else ""


def make_tables(evidence: Evidence) -> list[Table]:
    """Return FLOPs and time by class, in percent, for every profiled mode."""
    rows = []
    for name, shares in shares_of(evidence).items():
        rows.append((name, *(f"{shares[kind]:.2g}" if shares.get(kind) else "" for kind in _kinds(evidence))))
    return [Table("bert-operators: share by class, %", ("", *_kinds(evidence)), tuple(rows))] if rows else []


def shares_of(evidence: Evidence) -> dict[str, dict[str, float]]:
    """Return percent by class: of the operations, then of each profiled mode's time, idle time included."""
    profiles = [p for p in evidence.profiles if p["workload"].startswith("bert")]
    times: dict[str, Mapping[str, float]] = {"FLOPs": profiles[0]["flops"]} if profiles else {}
    times |= {f"{p['framework']} {p['mode']}": p["classes"] for p in profiles}
    return {name: {k: 100 * v / sum(parts.values()) for k, v in parts.items()} for name, parts in times.items()}


def _kinds(evidence: Evidence) -> list[str]:
    return list(evidence.profiles[0]["classes"])
