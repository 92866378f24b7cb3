"""All that pages say was found, made from committed records: `python -m publish.readme`.

In the README and in `docs/findings.md` the text between the two marks is made anew; the picture is drawn once for
light and once for dark, and the sample page is written.
"""

from __future__ import annotations

from publish import picture
from publish.findings import bert, cpu, losses, models, summary
from publish.findings.evidence import ROOT, letters, material, unsure
from publish.picture import versions
from reports import page, sections
from reports.material import Material
from reports.verdict import Verdict

BEGIN, END = "<!-- figures: made by python -m publish.readme -->", "<!-- end of figures -->"
PICTURES = {"light": ROOT / "docs/picture-light.svg", "dark": ROOT / "docs/picture-dark.svg"}
SAMPLE = ROOT / "docs/sample.html"


def figures() -> str:
    """The README's findings: one table and a few sentences."""
    return "\n".join([BEGIN, *summary.table(), "", *summary.sentences(), END])


def findings() -> str:
    """All findings, with hosts and cautions: sentences of the verdict, and one table."""
    rankings, verdicts = bert.rankings()
    chapters = {
        "BERT-base": [*bert.gains(), *rankings, bert.tensorflow(), bert.differs(), "", *bert.table()],
        "Training": [models.training(), models.small_training()],
        "Decoding": models.decoding(),
        "Other models' inference": [models.average(), models.resnet()],
        "Where compiling loses": losses.where_it_loses(),
        "TF32 beside compiling": losses.beside_tf32(),
        "The first call": [models.first_calls()],
        "Processors": [cpu.two_cores(), cpu.constant_weights()],
        "How to read these figures": [_caption(verdicts)],
    }
    lines = [line for title, told in chapters.items() for line in ("", f"## {title}", "", *told)]
    return "\n".join([BEGIN, *lines, "", END])


def _caption(verdicts: list[Verdict]) -> str:
    points = [point for verdict in verdicts for point in verdict.setting.points]
    return (
        "A letter is a [host](../results/h200/README.md#the-machines), its link leads to the records. A bold range "
        "holds the 95 % intervals of all its figures. Medians of milliseconds a call, and times as fast as eager from "
        "samples taken in turn in each process, so not the quotient of two medians. `~` and *noisy*: the interval is "
        "wider than the run's settings promise; *disturbed*: the machine was not steady; an interval of two processes "
        "holds for these two alone. A mode *pays "
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


# What is made between the marks of each page.
PAGES = {ROOT / "README.md": figures, ROOT / "docs/findings.md": findings}


def made_anew(text: str, made: str) -> str:
    """A page with `made` in place of what stands between its marks."""
    before, _, rest = text.partition(BEGIN)
    return before + made + rest.partition(END)[2]


if __name__ == "__main__":
    for path, make in PAGES.items():
        path.write_text(made_anew(path.read_text(encoding="utf-8"), make()), encoding="utf-8")
    for theme, path in PICTURES.items():
        path.write_text(picture.svg(theme, pictured()), encoding="utf-8")
    SAMPLE.write_text(sample(), encoding="utf-8")
