"""The README's figures, its picture, and the sample page, from committed records: `python -m harness.readme`.

The README's text between the two marks is made anew; the picture is drawn once for light and once for dark.
"""

from __future__ import annotations

from harness import picture
from harness.findings import bert, cpu, models
from harness.findings.evidence import ROOT, letters, material, unsure
from harness.picture import versions
from reports import page, sections
from reports.material import Material
from reports.verdict import Verdict

BEGIN, END = "<!-- figures: made by python -m harness.readme -->", "<!-- end of figures -->"
PICTURES = {"light": ROOT / "docs/picture-light.svg", "dark": ROOT / "docs/picture-dark.svg"}
SAMPLE = ROOT / "docs/sample.html"


def figures() -> str:
    """The README's findings: sentences of the verdict, and one table."""
    rankings, verdicts = bert.rankings()
    lines = [
        *bert.gains(),
        *rankings,
        bert.tensorflow(),
        bert.differs(),
        models.training(),
        models.small_training(),
        *models.decoding(),
        models.average(),
        models.resnet(),
        models.first_calls(),
        cpu.two_cores(),
        cpu.constant_weights(),
    ]
    return "\n".join([BEGIN, *lines, "", *bert.table(), "", _caption(verdicts), END])


def _caption(verdicts: list[Verdict]) -> str:
    points = [point for verdict in verdicts for point in verdict.setting.points]
    return (
        "Medians of milliseconds a call, and times as fast as eager from samples taken in turn in each process, so not "
        "the quotient of two medians. `~` and *noisy*: the interval is wider than the run's settings promise; "
        "*disturbed*: the machine was not steady; an interval of two processes holds for these two alone. A mode *pays "
        "for itself* after so many calls that they, its first one included, take less time than eager mode's. The "
        f"picture shows the row of {picture.SHAPE.text} on {letters(picture.drawn(pictured()))}, and the other "
        f"frameworks there. Versions unless said: {versions(points)}. In BERT-base's rankings {unsure(points)}."
    )


def pictured() -> Material:
    """What the picture is drawn from: all three frameworks on one host."""
    return material(*bert.SHORT)


def sample() -> str:
    """The page of the committed CPU run."""
    content = material(cpu.TWO_CORES)
    title = "Is compiling worth it? A sample on two CPU cores"
    return page.html(title, content, sections.build(content), "results/cpu/two-cores")


def with_figures(text: str) -> str:
    """The README with its figures made anew."""
    before, _, rest = text.partition(BEGIN)
    return before + figures() + rest.partition(END)[2]


if __name__ == "__main__":
    readme = ROOT / "README.md"
    readme.write_text(with_figures(readme.read_text(encoding="utf-8")), encoding="utf-8")
    for theme, path in PICTURES.items():
        path.write_text(picture.svg(theme, pictured()), encoding="utf-8")
    SAMPLE.write_text(sample(), encoding="utf-8")
