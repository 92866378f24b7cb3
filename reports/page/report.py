"""The whole page: its head, what can be chosen, its sections, and the template that holds them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from reports import drawing, markdown
from reports.content import Section
from reports.material import Material
from reports.page import template
from reports.page.panels import panel

# Sections that say where the figures come from; they stand last, folded.
FOLDED = {"flags", "failures", "machines"}
MOST_COMMANDS = 5  # that stand open


def html(title: str, material: Material, sections: list[Section], heading: str = "", home: str = "") -> str:
    """Return the page; `heading` names the runs, `home` is the address of the index of its site."""
    settings = [verdict.setting.name for verdict in material.verdicts]
    parts = {
        "title": escape(title),
        "home": f'<a href="{escape(home)}">All runs</a>' if home else "",
        "subtitle": escape(_subtitle(material, heading)),
        "navigation": "".join(f'<a href="#{s.key}">{escape(s.title)}</a>' for s in sections[1:]),
        "filters": _filters(settings, sections, material),
        "symbols": drawing.symbols(material.looks_in_order),
        "body": "\n".join(fragment(section) for section in sections),
        "commands": _commands(material.commands),
        "script": template.asset("page.js"),
    }
    return template.page(title, template.filled(template.asset("page.html"), parts))


def _subtitle(material: Material, heading: str) -> str:
    points = material.points
    frameworks = dict.fromkeys((p.record.framework, p.record.framework_version) for p in points.all)
    versions = [f"{framework} {version}" for framework, version in frameworks if version]
    begun = sorted({time[:10] for time in {point.record.started_at for point in points.all} if time})
    days = [begun[0]] if begun and begun[0] == begun[-1] else [f"{begun[0]} to {begun[-1]}"] if begun else []
    cells = [f"{len(points.all):,} cells"] if points.all else []
    devices = list(dict.fromkeys(device for _, device in points.machines if device)) or ["an unnamed device"]
    return " · ".join([", ".join(devices), ", ".join(versions), *cells, *days, *([heading] if heading else [])])


def _commands(commands: Sequence[str]) -> str:
    """Return what was typed for the runs; many are folded."""
    items = "".join(f"<li><code>{escape(command)}</code></li>" for command in commands)
    if len(commands) <= MOST_COMMANDS:
        return f"<ul>{items}</ul>"
    return f"<details><summary>The {len(commands)} commands that measured this</summary><ul>{items}</ul></details>"


def _filters(settings: list[str], sections: list[Section], material: Material) -> str:
    """Return what can be chosen: a setting, a batch, a length, which modes are shown. Hidden without scripts."""
    shown = len(sections[0].panels) if sections else 0
    options = "".join(f'<option value="{n}">{escape(name)}</option>' for n, name in enumerate(settings[:shown]))
    if not options:
        return ""
    # Their order says a mode's number.
    modes = "".join(
        f'<label><input type="checkbox" name="mode" value="{escape(name, quote=True)}" checked> {escape(name)}</label>'
        for name in material.points.series
    )
    return (
        '<form id="filters" aria-label="What is shown" hidden>'
        f'<label class="wide">Setting <select name="setting">{options}</select></label>'
        '<label>Batch <select name="batch"></select></label><label>Tokens <select name="tokens"></select></label>'
        f'<details class="modes"><summary>Modes</summary><div>{modes}</div></details>'
        '<button type="button" id="link">Copy link</button><output id="told" aria-live="polite"></output></form>'
    )


def fragment(section: Section) -> str:
    """Return a section as HTML."""
    sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in section.sentences)
    panels = "\n".join(panel(one, section.key, n) for n, one in enumerate(section.panels))
    rest = f'<p class="rest">{escape(markdown.left_out(section))}</p>' if section.left_out else ""
    title = f'<h2 id="{section.key}-title">{escape(section.title)}</h2>'
    body = f"{sentences}{panels}{rest}"
    if section.key in FOLDED:
        body = f"<details><summary>{title}</summary>{body}</details>"
    elif section.key == "answer":
        body = f'<h2 id="{section.key}-title" class="quiet">{escape(section.title)}</h2>{panels}{rest}{sentences}'
    else:
        folded = f'<details class="how"><summary>How to read this</summary>{sentences}</details>' if sentences else ""
        body = f"{title}{folded}{panels}{rest}"
    return f'<section id="{section.key}" aria-labelledby="{section.key}-title">{body}</section>'
