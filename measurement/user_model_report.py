"""Report of a worker on a user model."""

from __future__ import annotations

from dataclasses import dataclass, field

from measurement.checked import Count, Duration, Positive


@dataclass(frozen=True)
class UserModelReport:
    """Report of a user model: outputs to compare with (files, and the model that computed them), and its cost.

    `eager` has eager mode's outputs before any sample, `not_compared` the outputs without a rule, and `computes_in` the
    dtypes of its products. `shapes` are those of outputs, by their key in the files. `inside_s` and
    `whole_s` are seconds of calls within graphs and in total, if the model leaves its graphs.
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
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
