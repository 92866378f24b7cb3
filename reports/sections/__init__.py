"""The report's sections, in their order. Each module makes its own from the same points."""

from __future__ import annotations

from reports.content import Section
from reports.material import Material
from reports.sections import answer, compiling, kernels, memory, notes, ranking, roofs, scaling, speedup, truth


def build(material: Material) -> list[Section]:
    """Every section that has something to say."""
    makers = (
        answer.section,
        notes.machine_section,
        speedup.section,
        ranking.section,
        compiling.section,
        *scaling.SECTIONS,
        roofs.roofline_section,
        roofs.regime_section,
        memory.section,
        truth.section,
        kernels.section,
        notes.flags_section,
        notes.failures_section,
    )
    return [section for maker in makers if (section := maker(material)) is not None]
