"""The README's figures, its picture, and the sample page, from committed records: `python -m harness.readme`.

The README's text between the two marks is made anew; the picture is drawn once for light and once for dark.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from experiments.geometric_mean import geometric_mean, planned
from harness import modes, picture, recordfile
from harness.picture import versions
from measurement.statistics import Interval
from reports import brief, page, published, sections
from reports.content import ratio, text_of
from reports.material import Material
from reports.points import Point, Points
from reports.verdict import Verdict, wording
from reports.verdict.rules import Advice, comparable
from reports.verdict.whole import Fastest

ROOT = Path(__file__).resolve().parent.parent
H200, TWO_CORES = ROOT / "results/h200", ROOT / "results/cpu/two-cores"
# Rankings: all three frameworks on one H200 for each length. Torch's own findings: three processes or more.
SHORT = tuple(H200 / f"{name}-h-short" for name in ("torch-2.13", "jax", "tensorflow"))
LONG = tuple(H200 / f"{name}-c-long" for name in ("torch-2.13", "jax", "tensorflow"))
TORCH = SHORT[0], H200 / "torch-2.13-d-long"
TORCH_AGAIN = H200 / "torch-2.13-c-short", LONG[0], H200 / "torch-2.13-d-short"
# Torch and JAX on the two GPUs of one host, and at batch 1 a second time.
DECODING = tuple(H200 / name for name in ("ladder-i-torch-1b", "decode-i-torch-1b", "decode-i-jax-1b"))
DECODING_AGAIN = tuple(ROOT / f"results/experiments/decode-claims-h200/{name}" for name in ("gpu-graphs", "gpu-jax"))
AVERAGE = ROOT / "results/experiments/geometric-mean-h200/gpu-inference"
SMALL_TRAINING = AVERAGE.parent / "gpu-training"
TITLES = "Small batches of 128 tokens", "A small batch of 512 tokens", "A large batch"
AVERAGED = {"inductor": "by default", "inductor-reduce-overhead": 'with mode="reduce-overhead"'}
MASKS = (
    "These are the libraries' models: TensorFlow's and JAX's add a mask of ones and write attention out, torch's has "
    "no mask and the fused operator."
)
ALIKE, FUSED = "With the suite's own model and fused attention in both:", "mask=none;attention=fused"
BEGIN, END = "<!-- figures: made by python -m harness.readme -->", "<!-- end of figures -->"
PICTURES = {"light": ROOT / "docs/picture-light.svg", "dark": ROOT / "docs/picture-dark.svg"}
SAMPLE = ROOT / "docs/sample.html"


def material(*folders: Path) -> Material:
    """What the runs in these folders hold."""
    records = [record for folder in folders for record in recordfile.json_lines(folder / "records.jsonl")]
    return Material(Points(records), known=modes.words(), commands=tuple(map(_command, folders)))


def _command(folder: Path) -> str:
    return published.command("bench", json.loads((folder / "plan.json").read_text())["given"])


def figures() -> str:
    """The README's findings: sentences of the verdict, and one table."""
    old, cpu = material(H200 / "torch-2.11-long"), material(TWO_CORES)
    ranked = [_one(material(*folders), "library") for folders in (SHORT, LONG)]
    alike = _one(material(*LONG), "plain", FUSED)
    decoding = _one(material(*DECODING), "plain")
    answers = [advice for folder in TORCH for advice in _one(material(folder), "library").advice]
    (training,) = material(H200 / "gpt2-training").verdicts[0].advice
    slow = next(p for p in old.points.measured if p["batch_size"] == 64 and not comparable(p))
    lines = [
        *(f"- **{title}: {_finding(advice)}" for title, advice in zip(TITLES, answers, strict=True)),
        f"- **Compare milliseconds, not speedups, between frameworks.** {MASKS}",
        *(f"  - {_ranking(fastest)}" for verdict in ranked for fastest in verdict.fastest.values()),
        f"  - {ALIKE} {' '.join(map(_ranking, alike.fastest.values()))}",
        f"- **{ratio(slow['speedup_vs_eager'])}×, and no finding.** {_differs(slow)}",
        f"- **Training a GPT-2 (124M): {_gain(training)}** On an H200, bf16, the suite's own model, "
        f"{wording.sentence(training)} {_checked(training)} {wording.cautions(training)}".rstrip(),
        f"- **{_small_training()}",
        *_decoding(decoding),
        f"- **{_average()}",
        f"- **On two virtual cores of an AMD EPYC**, fp32, {versions(cpu.points.measured)}. {' '.join(_on_cpu(cpu))}",
    ]
    return "\n".join([BEGIN, *lines, "", *_table(), "", _caption([*ranked, alike, decoding]), END])


def _finding(advice: Advice) -> str:
    """What torch's users should take, and what it brought elsewhere."""
    told = [wording.sentence(advice), _repeated(advice), _checked(advice), wording.cautions(advice)]
    return f"{_gain(advice, *_again(advice))}** On an H200, bf16, {' '.join(filter(None, told))}"


def _checked(advice: Advice) -> str:
    """What eager mode's outputs were not compared with; empty where they were."""
    unchecked = any(not judged.eager["parity_reference"] for judged in advice.judged)
    return "No reference was computed at this size: graphs agree with eager mode." if unchecked else ""


def _ranking(fastest: Fastest) -> str:
    """Who is fastest at a shape, and whether the frameworks' outputs were compared with each other's there."""
    own = any(rank.point["parity_reference"] != "numpy" for rank in fastest.ranks)
    return fastest.sentence + (" Outputs were compared with each framework's own eager mode alone." if own else "")


def _differs(point: Point) -> str:
    """Why a compiled mode that looks slow says nothing of compiling."""
    return (
        f"On an H200, bf16, torch {point['framework_version']} and transformers "
        f"{json.loads(point['versions'])['transformers']}, the library's model takes "
        f"{text_of(point['latency_ms_median'])} ms compiled at batch 64, 512 tokens: it then makes an attention mask "
        "that eager mode does not. Such cells are marked `program_differs` and left out of every answer ([the "
        "story](docs/experiments.md#a-mask-that-only-a-graph-sees))."
    )


def _one(content: Material, implementation: str, parameters: str = "") -> Verdict:
    """The verdict on the bf16 setting of an implementation that most was measured of, or on that with `parameters`."""
    firsts = ((one, one.setting.points[0]) for one in content.verdicts)
    return next(
        one
        for one, first in firsts
        if (first["implementation"], first["dtype"]) == (implementation, "bf16")
        and parameters in ("", first["parameters"])
    )


def _gain(advice: Advice, *others: Point) -> str:
    return f"{wording.ratios([one.value for one in (*advice.speedups, *(other.speedup for other in others))])}."


def _again(advice: Advice) -> list[Point]:
    """What the recommended mode brought on other machines, where they ran the same shapes."""
    shapes = {(judged.shape.batch, judged.shape.length) for judged in advice.judged}
    points = material(*TORCH_AGAIN).points.measured
    same = [p for p in points if (p["implementation"], p["mode"]) == ("library", advice.mode)]
    return [p for p in same if (p["batch_size"], p["seq_len"]) in shapes]


def _repeated(advice: Advice) -> str:
    points = sorted(_again(advice), key=lambda p: (p["batch_size"], p["speedup_vs_eager"]))
    places = [f" at batch {p['batch_size']}" if len(advice.judged) > 1 else "" for p in points]
    again = [
        f"{ratio(p.speedup.value)}×{place} "
        f"({text_of(p['latency_ms_median'])} ms, {p['launches']} processes; {wording.certain(p.speedup)})"
        for p, place in zip(points, places, strict=True)
    ]
    return f"On other H200s it was {', '.join(again)}."


def _decoding(verdict: Verdict) -> list[str]:
    """What torch's users should take to generate tokens, and who is fastest at each batch."""
    advice = next(one for one in verdict.advice if one.framework == "torch")
    told = f"On an H200, bf16, a context of 1024 tokens, the suite's own model, {wording.sentence(advice)}"
    again = next(
        fastest.sentence
        for one in material(*DECODING_AGAIN).verdicts
        if (one.setting.points[0]["workload"], one.setting.points[0]["pass"]) == ("llama-1b", "decode")
        for shape, fastest in one.fastest.items()
        if shape.batch == 1
    )
    return [
        f"- **Decoding with a Llama of 1.2B, a token of each sequence a call: {_gain(advice)}** {told} "
        f"{wording.cautions(advice)}",
        f"  - On different GPUs of one host: {' '.join(one.sentence for one in verdict.fastest.values())} "
        f"A second pair of runs: {again[0].lower()}{again[1:]}",
    ]


def _small_training() -> str:
    """What training at a small batch gains, over the models that were measured."""
    points = material(SMALL_TRAINING).points.measured
    ends = {mode: _ends(points, mode) for mode in AVERAGED}
    gains = [
        f"{ratio(low.value)} to {ratio(high.value)}× {AVERAGED[mode]}" for mode, ((_, low), (_, high)) in ends.items()
    ]
    parts = [
        f"{mode} {', '.join(f'{ratio(gain.value)}× ({name}; {wording.certain(gain)})' for name, gain in both)}"
        for mode, both in ends.items()
    ]
    models = ", ".join(dict.fromkeys(point["workload"] for point in points))
    unsure = sum(point["status"] != "ok" for point in points)
    return (
        f"Training at batch 8: {' and '.join(gains)}.** On {_gpus(points)}, bf16, torch, the suite's own models, "
        f"{_sizes(points)}: {models}; planned were {len(planned('training'))}. The least and the most: "
        f"{'; '.join(parts)} ([each](docs/experiments.md#geometric-mean)). "
        f"Careful: {unsure} of the {len(points)} figures are noisy or disturbed."
    )


def _gpus(points: list[Point]) -> str:
    """One H200, or how many of them share the models."""
    machines = len({point["machine_id"] for point in points})
    return "an H200" if machines == 1 else f"{machines} H200s, each model on one of them"


def _sizes(points: list[Point]) -> str:
    """The lengths and the image sizes that the workloads have: `64 or 128 tokens or 224 pixels`."""
    lengths = sorted({point["seq_len"] for point in points} - {None})
    images = sorted({image for point in points for image in re.findall(r"image=(\d+)", point["parameters"] or "")})
    return f"{' or '.join(map(str, lengths))} tokens or {' or '.join(images)} pixels"


def _ends(points: list[Point], mode: str) -> tuple[tuple[str, Interval], tuple[str, Interval]]:
    """The models that gain least and most in a mode, with their speedups."""
    gains = sorted(((p["workload"], p.speedup) for p in points if p["mode"] == mode), key=lambda pair: pair[1].value)
    return gains[0], gains[-1]


def _average() -> str:
    """The mean over models beside its parts' range, in the default mode and replayed."""
    points = material(AVERAGE).points.measured
    parts = {mode: [p.speedup for p in points if p["mode"] == mode and p.speedup] for mode in AVERAGED}
    means = {mode: geometric_mean(of_mode) for mode, of_mode in parts.items()}
    told = [f"{ratio(mean.value)}× {words}" for mean, words in zip(means.values(), AVERAGED.values(), strict=True)]
    ranges = []
    for mode, mean in means.items():
        ends = " to ".join(f"{ratio(gain.value)}× ({name})" for name, gain in _ends(points, mode))
        ranges.append(f"{mode} {ends}, {wording.certain(mean)} of the mean")
    unsure = sum(point["status"] != "ok" for point in points)
    return (
        f"{len(parts['inductor'])} models on average: {' and '.join(told)}.** The geometric mean of inference in torch "
        f"on an H200, bf16, batch 8, {_sizes(points)}, the suite's own models. By model: {'; '.join(ranges)}. "
        "PyTorch's authors published 2.27× (ASPLOS 2024), of 180 other models, an A100 and another mode: max-autotune "
        "with frozen weights in CUDA graphs "
        f"([the parts](docs/experiments.md#geometric-mean)). Careful: {unsure} of the {len(points)} "
        "figures are noisy or disturbed."
    )


def _on_cpu(content: Material) -> list[str]:
    """Who is fastest with BERT-base, and what torch's and Paddle's users should take there and with the MLP."""
    by_workload = {one.setting.points[0]["workload"]: one for one in content.verdicts}
    told = [one.sentence for one in by_workload["bert-base"].fastest.values()]
    for workload, verdict in by_workload.items():
        advice = [one for one in verdict.advice if one.framework in ("torch", "paddle")]
        told += [f"{workload}: {wording.sentence(one)} {wording.cautions(one)}".rstrip() for one in advice]
    return told


def _table() -> list[str]:
    """The first framework's modes alone: all of them would not fit."""
    contents = [material(folder) for folder in TORCH]
    (head, *rows), (_, _, *more) = (brief.table(_one(content, "library"), content) for content in contents)
    return [head, *rows, *more]


def _caption(verdicts: list[Verdict]) -> str:
    points = [point for verdict in verdicts for point in verdict.setting.points]
    fewest = min(point["launches"] for point in points)
    unsure = sum(point["status"] != "ok" for point in points)
    return (
        "Milliseconds per call · times as fast as eager, from samples taken in turn in each process, so not the "
        "quotient of the two medians; `~` and *noisy*: the interval is wider than the run's settings promise; "
        "*disturbed*: the machine was not steady. A mode *pays for itself* "
        "after so many calls that they, its first one included, take less time than eager mode's. "
        "The H200's figures are of "
        f"{versions(points)} (the 0.43×: torch 2.11). Frameworks are ranked on one machine for each length, and in "
        f"decoding, {fewest} processes or more each; an interval of two holds for these two alone. "
        f"{unsure} of the {len(points)} figures behind the rankings are noisy or disturbed ([records with "
        "all intervals, other machines](results/h200/README.md))."
    )


def sample() -> str:
    """The page of the committed CPU run."""
    content = material(TWO_CORES)
    title = "Is compiling worth it? A sample on two CPU cores"
    return page.html(title, content, sections.build(content), "results/cpu/two-cores")


def with_figures(text: str) -> str:
    """The README with its figures made anew."""
    before, _, rest = text.partition(BEGIN)
    return before + figures() + rest.partition(END)[2]


if __name__ == "__main__":
    readme = ROOT / "README.md"
    readme.write_text(with_figures(readme.read_text(encoding="utf-8")), encoding="utf-8")
    drawn = material(*LONG)
    for theme, path in PICTURES.items():
        path.write_text(picture.svg(theme, drawn), encoding="utf-8")
    SAMPLE.write_text(sample(), encoding="utf-8")
