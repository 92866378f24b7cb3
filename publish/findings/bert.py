"""BERT-base on H200s: what torch's and TensorFlow's users should take, who is fastest, and every figure behind it."""

from __future__ import annotations

import json
from collections.abc import Iterable

from analysis.modes import words
from measurement.schema import is_noisy
from publish.findings.evidence import H200, letters, material, ms, one, place, points, verdict
from reports.content import ratio, text_of
from reports.points import Point
from reports.verdict import Fastest, Verdict, wording
from reports.verdict.places import Shape
from reports.verdict.rules import Advice

# Rankings: all three frameworks on one H200 for each length. Torch's own findings: three processes or more.
SHORT = tuple(H200 / f"{name}-h-short" for name in ("torch-2.13", "jax", "tensorflow"))
LONG = tuple(H200 / f"{name}-c-long" for name in ("torch-2.13", "jax", "tensorflow"))
TORCH = SHORT[0], H200 / "torch-2.13-d-long"
TORCH_AGAIN = H200 / "torch-2.13-d-short", H200 / "torch-2.13-c-short", LONG[0]
MODES = "eager", "inductor", "inductor-reduce-overhead", "cuda-graph"
TITLES = "Small batches of 128 tokens", "A small batch of 512 tokens", "A large batch of 512 tokens"
MASKS = (
    "These are the libraries' models: TensorFlow's and JAX's add a mask of ones and write attention out, torch's has "
    "no mask and the fused operator."
)
ALIKE, FUSED = "With the suite's own model and fused attention in both", "mask=none;attention=fused"
UNCHECKED = "No reference was computed at this size: graphs agree with eager mode."


def gains() -> Iterable[str]:
    """What torch's users should take at each size, a bullet each."""
    answers = [advice for folder in TORCH for advice in verdict(material(folder), "library").advice]
    for title, advice in zip(TITLES, answers, strict=True):
        every, default = _everywhere(advice, advice.mode), _everywhere(advice, advice.default)
        parts = [
            f"- **{title}: {span(every)}** with `{advice.words.call}`, {span(default)} by default.",
            f"BERT-base in torch, {wording.where([judged.shape for judged in advice.judged])}: {len(every)} figures of "
            f"{letters(every)}, each in the table.",
            f"On {letters(advice.chosen)} compiling {wording.pays(advice)}.",
            wording.cautions(advice),
            "" if all(judged.eager["parity_reference"] for judged in advice.judged) else UNCHECKED,
        ]
        yield " ".join(filter(None, parts))


def span(measured: Iterable[Point]) -> str:
    """The range that holds the intervals of all these speedups: `3.63 to 8.66×`."""
    whole = wording.hull([point.speedup for point in measured])
    return f"{ratio(whole.low)} to {ratio(whole.high)}×"


def _everywhere(advice: Advice, mode: str) -> list[Point]:
    """A mode's points at the shapes of the advice, on every host that ran them."""
    shapes = {(judged.shape.batch, judged.shape.length) for judged in advice.judged}
    return [p for p in figures() if p["mode"] == mode and (p["batch_size"], p["seq_len"]) in shapes]


def figures() -> list[Point]:
    return [p for folder in (*TORCH, *TORCH_AGAIN) for p in points(folder, implementation="library", dtype="bf16")]


def table() -> list[str]:
    """Torch's modes with every interval, a row for each shape of each run."""
    lines = [
        f"| BERT-base, torch, bf16: ms (95 %) · × eager (95 %) | H200 | {' | '.join(MODES)} |",
        f"| --- | --- |{' --- |' * len(MODES)}",
    ]
    rows = {}
    for folder in (*TORCH, *TORCH_AGAIN):
        for point in points(folder, implementation="library", dtype="bf16"):
            rows.setdefault((Shape.of(point.record), folder), {})[point["mode"]] = point
    for shape, folder in sorted(rows, key=lambda row: (row[0].length, row[0])):
        by_mode = rows[shape, folder]
        cells = [_cell(by_mode[mode]) for mode in MODES]
        lines.append(f"| {shape.text} | {place(by_mode.values(), folder)} | {' | '.join(cells)} |")
    return lines


def _cell(point: Point) -> str:
    """`0.564 (0.552-0.576) · 7.07× (6.58-7.59)~`; `~` where the profile promises more certainty."""
    time = ms(point) + ("~" if is_noisy(point.record, "latency") else "")
    if point.eager:
        return time
    gain, noisy = point.speedup, "~" if is_noisy(point.record, "ratio") else ""
    return f"{time} · {ratio(gain.value)}× ({ratio(gain.low)}-{ratio(gain.high)}){noisy}"


def rankings() -> tuple[list[str], list[Verdict]]:
    """Who is fastest where all three frameworks ran, and the verdicts that say so."""
    short, long = (verdict(material(*folders), "library") for folders in (SHORT, LONG))
    alike = verdict(material(*LONG), "plain", FUSED)
    lines = [f"- **Compare milliseconds, not speedups, between frameworks.** {MASKS}"]
    for told, folders, begun in ((short, SHORT, "On"), (long, LONG, "On"), (alike, LONG[:2], f"{ALIKE}, on")):
        ranked = " ".join(fastest.sentence for fastest in told.fastest.values())
        lines.append(f"  - {begun} {place(told.setting.points, *folders)}: {ranked}{_own(told.fastest.values())}")
    return lines, [short, long, alike]


def _own(rankings: Iterable[Fastest]) -> str:
    """At which shapes the frameworks' outputs were compared with their own eager modes alone."""
    shapes = [
        fastest.shape.text
        for fastest in rankings
        if any(rank.point["parity_reference"] != "numpy" for rank in fastest.ranks)
    ]
    return (
        f" Outputs at {'; '.join(shapes)} were compared with each framework's own eager mode alone." if shapes else ""
    )


def tensorflow() -> str:
    """What XLA brings TensorFlow's users, in milliseconds, and what a graph without it does."""
    plain, xla = (words()["tensorflow", mode].call for mode in ("function", "function-xla"))
    both, runs = [], (SHORT[2], LONG[2])
    measured = [point for folder in runs for point in points(folder, implementation="library")]
    for function in (point for point in measured if point["mode"] == "function"):
        shape = Shape.of(function.record)
        with_xla = next(p for p in measured if p["mode"] == "function-xla" and Shape.of(p.record) == shape)
        both.append(f"{shape.text}: {ms(function)} → {ms(with_xla)}")
    eager = wording.milliseconds([point for point in measured if point.eager])
    largest = {"implementation": "plain", "batch_size": 64, "seq_len": 512}
    own = [one(LONG[2], mode=mode, **largest) for mode in ("function", "function-xla")]
    graph, compiled = (wording.spread([point.speedup]) for point in own)
    where = "; ".join(place([p for p in measured if p in points(run)], run) for run in runs)
    return (
        f"- **TensorFlow: `{xla}`.** BERT-base, ms a call (95 %) with `{plain}` → with XLA, {'; '.join(both)} "
        f"({where}). Operator by operator it takes {eager}, which nobody deploys. With the suite's own model at "
        f"{Shape.of(own[0].record).text} `{plain}` comes to {graph} of eager mode's speed, XLA to {compiled} "
        f"({place(own, LONG[2])})."
    )


def differs() -> str:
    """Why a compiled mode that looks slow says nothing of compiling."""
    folder = H200 / "torch-2.11-long"
    slow = next(p for p in material(folder).points.measured if p["batch_size"] == 64 and p.excluded)
    return (
        f"- **{wording.spread([slow.speedup])}, and no finding.** With torch {slow['framework_version']} and "
        f"transformers {json.loads(slow['versions'])['transformers']} BERT-base takes "
        f"{text_of(slow['latency_ms_median'])} ms compiled at {Shape.of(slow.record).text} ({place([slow], folder)}): "
        "it then makes an attention mask that eager mode does not. Such cells are marked `program_differs` and "
        "excluded from means, rankings and advice ([the story](experiments.md#a-mask-that-only-a-graph-sees))."
    )
