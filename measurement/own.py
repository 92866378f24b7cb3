"""What a worker finds out of a user's own model, as it tells it."""

from __future__ import annotations

from dataclasses import dataclass

from measurement.checked import Count, Duration, Positive


@dataclass(frozen=True)
class OwnModel:
    """What a worker found out of a user's model: outputs to compare with (a file, and what made them), and its cost.

    `inside_s` and `whole_s` are seconds of calls within graphs and altogether, where the model leaves them.
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
