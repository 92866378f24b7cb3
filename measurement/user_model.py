"""What a worker finds out of a user model."""

from __future__ import annotations

from dataclasses import dataclass, field

from measurement.checked import Count, Duration, Positive


@dataclass(frozen=True)
class UserModelReport:
    """What a worker found out of a user model: outputs to compare with (files, and what made them), and its cost.

    `eager` holds eager mode's outputs before anything was sampled, `not_compared` the outputs without a rule, and
    `computes_in` the dtypes of its products. `inside_s` and `whole_s` are seconds of calls within graphs and
    altogether, where the model leaves them.
    """

    reference: str
    reference_name: str
    flops: Count | None = None
    bytes: Count | None = None
    unfused_bytes: Count | None = None
    transcendentals: Count | None = None
    counted_by: str = ""
    inside_s: Duration | None = None
    whole_s: Positive | None = None
    eager: str = ""
    not_compared: tuple[str, ...] = ()
    computes_in: tuple[str, ...] = ()
    settings: dict[str, str] = field(default_factory=dict)
