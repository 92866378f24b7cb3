"""Profiles of a shape's modes side by side: time by class of kernel, the longest kernels, and differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from rich.console import Console
from rich.table import Table

from analysis import losses
from analysis.points import grouped
from measurement import kernels
from measurement.kernels import CLASSES, classify, is_fused_attention
from measurement.text import as_code, in_markdown, markdown_table, percent
from records.shapes import Profile, of_baseline
from records.statuses import differs
from reports import causes
from reports.names import in_words
from reports.numbers import multiple, rounded, text_of

TOP_KERNELS = 8
# The smallest reported difference of a class, as a share of eager's time.
DIFFERS = 0.03
NAME_LENGTH = 90
LONGEST = ("ms per call", "count", "class", "kernel", "of the operator")


def explained(entries: Sequence[Profile]) -> list[Profile]:
    """Return the entries with a profile, their pass also under its name in records."""
    done = (entry for entry in entries if entry["status"] == "explained")
    return [cast(Profile, {**entry, "pass": entry["pass_name"]}) for entry in done]


def line(entry: Profile) -> str:
    """Return one line on a profiled cell."""
    if entry["status"] != "explained":
        return f"{entry['cell']}: {entry['status']}: {entry['reason']}"
    return f"{entry['cell']}: {text_of(entry['latency_s'] * 1e3)} ms"


def total_s(entry: Profile) -> float:
    """Return the time that the classes share, idle time included."""
    return sum(entry["classes"].values())


def by_shape(entries: Sequence[Profile]) -> dict[str, list[Profile]]:
    """Return profiled entries by their common properties except the mode, eager first."""
    groups = grouped(explained(entries), lambda entry: entry["cell"].removesuffix("/" + entry["mode"]))
    return {name: sorted(group, key=lambda entry: not of_baseline(entry)) for name, group in groups.items()}


def rows(group: Sequence[Profile]) -> list[tuple[str, ...]]:
    """Return a row per class: its share of FLOPs, then milliseconds and share of time in each mode; sums come last."""
    table = []
    for name in CLASSES:
        if any(entry["classes"][name] for entry in group):
            times = (_milliseconds(entry["classes"][name], total_s(entry)) for entry in group)
            table.append((name, _flops(group[0].get("flops") or {}, name), *times))
    table.append(("total", "", *(text_of(total_s(entry) * 1e3) for entry in group)))
    table.append(("without the profiler", "", *(text_of(entry["latency_s"] * 1e3) for entry in group)))
    speedups = [losses.speedup(group[0], entry) for entry in group[1:]] if of_baseline(group[0]) else []
    if any(speedups):
        table.append(("speedup over eager", "", "", *(multiple(s) if s else "" for s in speedups)))
    unknown = [sum(1 for _ in of_class(entry, "other")) for entry in group]
    if any(unknown):
        table.append(("number of unknown kernels", "", *map(str, unknown)))
    return table


def of_class(entry: Profile, kind: str) -> list[tuple[str, float, float, str]]:
    """Return the kernels of a class: name, seconds and occurrences per call, and the operator that each belongs to."""
    return [row for row in kernels.rows(entry["kernels"]) if classify(row[0], row[3]) == kind]


def _flops(flops: Mapping[str, float], name: str) -> str:
    """Return the class's share of the workload's operations, with as many digits as a small one needs."""
    share = 100 * flops[name] / sum(flops.values()) if flops.get(name) else 0
    return f"{share:.{3 if share > 10 else 2}g} %" if share else ""


def _milliseconds(seconds: float, whole: float) -> str:
    return f"{text_of(seconds * 1e3)} ({percent(seconds / whole)})" if seconds else ""


def longest(entry: Profile) -> tuple[Sequence[str], list[tuple[str, ...]]]:
    """Return the heads and rows of a table of the longest kernels, without operators where none is known."""
    found = [
        (text_of(seconds * 1e3), text_of(count), classify(name, operator), shortened(name), operator)
        for name, seconds, count, operator in kernels.rows(entry["kernels"])[:TOP_KERNELS]
    ]
    kept = len(LONGEST) if any(row[-1] for row in found) else -1
    return LONGEST[:kept], [row[:kept] for row in found]


def shortened(name: str) -> str:
    """Return a kernel's name without a C++ name's `void` and arguments, cut to a line."""
    text = name.removeprefix("void ")
    return text if len(text) <= NAME_LENGTH else text[: NAME_LENGTH - 1] + "…"


def differences(group: Sequence[Profile]) -> list[str]:
    """Return sentences on the classes in which a graph mode differs from eager, with the kernels that only one has."""
    if not group or not of_baseline(group[0]):
        return []
    eager, parts = group[0], []
    for graph in group[1:]:
        gains = {name: graph["classes"][name] - eager["classes"][name] for name in CLASSES}
        for name in sorted(CLASSES, key=lambda kind: -abs(gains[kind])):
            if abs(gains[name]) >= DIFFERS * total_s(eager):
                parts.append(_difference(name, gains[name], eager, graph))
    return parts


def _difference(kind: str, gain_s: float, eager: Profile, graph: Profile) -> str:
    before, after = eager["classes"][kind] * 1e3, graph["classes"][kind] * 1e3
    change = f"{'+' if gain_s > 0 else '-'}{rounded(abs(gain_s) * 1e3)}"
    sentence = f"{graph['mode']}: {kind} {text_of(before)} → {text_of(after)} ms ({change})"
    parts = []
    for entry, other in ((eager, graph), (graph, eager)):
        theirs = {name for name, *_ in of_class(other, kind)}
        kernels_here = [row for row in of_class(entry, kind) if row[0] not in theirs]
        if kernels_here:
            names = ", ".join(f"{shortened(name)} ({text_of(spent * 1e3)} ms)" for name, spent, *_ in kernels_here[:2])
            parts.append(f"only in {entry['mode']}: {names}")
    counts = [sum(count for _, _, count, _ in of_class(entry, kind)) for entry in (eager, graph)]
    if counts[0] != counts[1]:
        parts.append(f"{text_of(counts[0])} → {text_of(counts[1])} kernels")
    return "; ".join([sentence, *parts]) + "."


def attention(group: Sequence[Profile]) -> list[str]:
    """Return a sentence where attention is one fused kernel in one mode and several in another."""
    forms = {entry["mode"]: attention_form(entry) for entry in group}
    if len({form for form in forms.values() if form}) < 2:
        return []
    return ["Attention is " + ", ".join(f"{form} in {mode}" for mode, form in forms.items() if form) + "."]


def attention_form(entry: Profile) -> str:
    """Return `fused`, or `matrix products and a softmax`; empty where the profile lacks it."""
    parts = of_class(entry, "attention")
    if any(is_fused_attention(name) for name, *_ in parts):
        return "fused"
    products = any(classify(name) == "matmul" for name, *_ in parts)
    return "matrix products and a softmax" if products else ""


def refusals(group: Sequence[Profile]) -> list[str]:
    """Return where a framework's attention operator did not use a fused kernel: its own choice and its own reasons."""
    calls = [(entry, call) for entry in group for call in entry.get("attention") or []]
    lines = [_refusal(entry, call) for entry, call in calls if call["chosen"] == "math"]
    masks = {
        entry["mode"]: ", ".join(sorted({call["mask"] for call in entry.get("attention") or []})) for entry in group
    }
    eager = next((masks[entry["mode"]] for entry in group if of_baseline(entry)), None)
    others = [f"{mask} in {mode}" for mode, mask in masks.items() if mask and mask != eager]
    if eager and others:
        lines.append(f"Attention mask: {eager} in eager, {', '.join(others)}.")
    return lines


def _refusal(entry: Profile, call: Mapping[str, Any]) -> str:
    times = f"{call['count']} times a call" if call["count"] > 1 else "once a call"
    reasons = [f"{kernel}: {reason.rstrip('.')}" for kernel, reason in call["refused"].items()]
    why = ". Refused: " + "; ".join(reasons) if reasons else "; it gives no reason"
    return (
        f"{entry['mode']}: the attention operator is called {times} with {call['call']}; {entry['framework']} uses "
        f"its composed path (math) and no fused kernel{why}."
    )


def not_known(group: Sequence[Profile]) -> list[str]:
    """List the share of each mode's time in kernels without a rule, with the longest of them."""
    lines = []
    for entry in group:
        unknown = of_class(entry, "other")
        if unknown:
            names = ", ".join(shortened(name) for name, *_ in unknown[:3])
            spent = sum(seconds for _, seconds, *_ in unknown)
            share = f"{text_of(spent * 1e3)} ms ({percent(spent / total_s(entry), 1)})"
            lines.append(f"{share} of {entry['mode']} are in kernels of unknown purpose, such as {names}.")
    return lines


def sentences(group: Sequence[Profile], entries: Sequence[Profile]) -> list[str]:
    """Return all sentences on a shape; `entries` are all cells, including its controls."""
    reasons = [] if group[0].get("control") else causes.why(group, entries)
    return [*reasons, *programs(group), *differences(group), *attention(group), *refusals(group), *not_known(group)]


def programs(group: Sequence[Profile]) -> list[str]:
    """Return the graphs of a shape that run other operators than its eager mode, with the difference that decides."""
    others = [entry for entry in group if differs(entry.get("program"))]
    return [f"{one['mode']} runs other operators than eager: {one['program_difference']}." for one in others]


def title(name: str, group: Sequence[Profile]) -> str:
    """Return a shape's name in words; controls differ from the requested cells."""
    return in_words(name) + (" (control)" if group[0].get("control") else "")


def show(entries: Sequence[Profile], console: Console) -> None:
    """Print every shape's table, its longest kernels and the differences."""
    for name, group in by_shape(entries).items():
        modes = [entry["mode"] for entry in group]
        console.print(f"\n{title(name, group)}", soft_wrap=True)
        table = Table("ms per call", "FLOPs", *modes)
        for row in rows(group):
            table.add_row(*row)
        console.print(table)
        for entry in group:
            heads, kernel_rows = longest(entry)
            console.print(f"Longest kernels of {entry['mode']}:")
            table = Table(*heads)
            for row in kernel_rows:
                table.add_row(*row)
            console.print(table)
        for sentence in sentences(group, entries):
            console.print(sentence)
    for entry in entries:
        if entry["status"] != "explained":
            console.print(line(entry))


def markdown(entries: Sequence[Profile]) -> str:
    """Return the same as Markdown."""
    parts = ["# Where the time goes"]
    for name, group in by_shape(entries).items():
        parts.append(f"## {in_markdown(title(name, group))}")
        parts.append("\n".join(markdown_table(("ms per call", "FLOPs", *(e["mode"] for e in group)), rows(group))))
        parts.append("\n".join(f"- {in_markdown(sentence)}" for sentence in sentences(group, entries)))
        for entry in group:
            trace = f" (trace: {as_code(entry['trace'])})" if entry["trace"] else ""
            parts.append(f"Longest kernels of {in_markdown(entry['mode'])}{trace}:")
            parts.append("\n".join(markdown_table(*longest(entry))))
    parts += [f"- {in_markdown(line(entry))}" for entry in entries if entry["status"] != "explained"]
    return "\n\n".join(part for part in parts if part) + "\n"
