"""What each table of `docs/experiments.md` says of itself, made from the experiments; findings beside it are by hand.

`python -m experiments.overview` writes it.
"""

from __future__ import annotations

import re
from pathlib import Path

import experiments
from experiments.spec import Experiment, Sweep
from measurement.text import make_command

PAGE = Path(__file__).resolve().parent.parent / "docs" / "experiments.md"
_BEGIN, _END = "<!-- {name}: made by experiments/overview.py -->", "<!-- end of {name} -->"


def section(experiment: Experiment) -> str:
    """Source, commands, sweeps and claims of a table, between its marks."""
    kinds = dict.fromkeys(part.device for part in experiment.sweeps())
    commands = "\n".join(make_command("reproduce", {"TABLE": experiment.name, "DEVICE": kind}) for kind in kinds)
    return "\n".join(
        [
            _BEGIN.format(name=experiment.name),
            f"{experiment.title}. Source: {experiment.source}.",
            "",
            f"```\n{commands}\n```",
            "",
            "| sweep | what | scaled down |",
            "|---|---|---|",
            *(_row(part) for part in experiment.sweeps()),
            "",
            "Claims:",
            "",
            *(f"- {claim.sentence}{_devices(claim.devices)}" for claim in experiment.claims),
            _END.format(name=experiment.name),
        ]
    )


def _row(part: Sweep) -> str:
    took = f", about {part.about['minutes']} min" if "minutes" in part.about else ""
    where = f" on {part.about['on']}" if "on" in part.about else ""
    what = "profiled" if part.profiles else "timed"
    return f"| `{part.path.name}` | {what}{took}{where} | {part.about.get('scaled_down', '')} |"


def _devices(kinds: tuple[str, ...]) -> str:
    return "" if len(kinds) > 1 else f" (asked of the {kinds[0].upper()} only)"


def made_anew(page: str) -> str:
    """The page with every table's section made anew; a table that it lacks is added at its end."""
    for name in experiments.names():
        text = section(experiments.get(name))
        begin, end = re.escape(_BEGIN.format(name=name)), re.escape(_END.format(name=name))
        if re.search(begin, page):
            page = re.sub(f"{begin}.*?{end}", text.replace("\\", r"\\"), page, flags=re.DOTALL)
        else:
            page = f"{page.rstrip()}\n\n## {name}\n\n{text}\n\n### Findings\n\nNot measured yet.\n"
    return page


if __name__ == "__main__":
    PAGE.write_text(made_anew(PAGE.read_text()))
