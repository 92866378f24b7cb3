"""Other models on H200s: training, decoding, means, ResNet-50 and its layout, and how long the first call takes."""

from __future__ import annotations

import re
from pathlib import Path

from experiments.geometric_mean import geometric_mean
from measurement.statistics import Interval
from publish.findings.bert import UNCHECKED, span
from publish.findings.evidence import EXPERIMENTS, H200, excluded, material, ms, one, place, points, unsure, verdict
from reports import facts
from reports.content import ratio, text_of
from reports.points import Point
from reports.verdict import Fastest, Verdict, wording

# Torch and JAX on the two GPUs of one host, and at batch 1 a second time.
DECODING = tuple(H200 / name for name in ("ladder-i-torch-1b", "decode-i-torch-1b", "decode-i-jax-1b"))
SUMMED = H200 / "decode-n-jax-7b"
DECODING_AGAIN = tuple(EXPERIMENTS / f"decode-claims-h200/{name}" for name in ("gpu-graphs", "gpu-jax"))
AVERAGE, SMALL_TRAINING = (EXPERIMENTS / f"geometric-mean-h200/gpu-{name}" for name in ("inference", "training"))
AVERAGED = {"inductor": "by default", "inductor-reduce-overhead": 'with mode="reduce-overhead"'}
RESNET, RESNET_TRAINING = H200 / "vision-h-torch-resnet", EXPERIMENTS / "cnn-training-h200/gpu-resnet"
STRICT, TF32 = (EXPERIMENTS / f"vision-docs-h200/{name}" for name in ("gpu", "gpu-tf32"))
TUNED = H200 / "decode-e-torch-1b-tuned"
UNROLLED = tuple(H200 / f"lstm-p-torch-training{form}" for form in ("", "-replayed"))
PARTS, LOSS = "experiments.md#geometric-mean", "experiments.md#vision-docs"


def training() -> str:
    """What a GPT-2's training gains."""
    folder = H200 / "gpt2-training"
    (advice,) = material(folder).verdicts[0].advice
    told = (
        f"- **Training a GPT-2 (124M): {wording.spread(advice.speedups)}** with `{advice.words.call}`, "
        f"{wording.milliseconds(advice.chosen)} at {wording.where([judged.shape for judged in advice.judged])} "
        f"({place(advice.chosen, folder)}). {UNCHECKED} {wording.cautions(advice)}"
    )
    return told.rstrip()


def small_training() -> str:
    """What training at a small batch gains, model by model and on average."""
    said = "published 1.41× (ASPLOS 2024), of over 180 models on an A100, without the optimizer, which is counted here"
    return _average(SMALL_TRAINING, "Training {count} models at batch 8, on average", said)


def average() -> str:
    """What inference at a small batch gains, model by model and on average."""
    said = (
        "published 2.27× (ASPLOS 2024), of over 180 models, an A100 and another mode: max-autotune with frozen "
        "weights in CUDA graphs"
    )
    return _average(AVERAGE, "Inference of {count} models at batch 8, on average", said)


def _average(folder: Path, title: str, published: str) -> str:
    """The geometric mean over a folder's models beside its parts' range, in the default mode and replayed."""
    measured = points(folder)
    gains = {mode: _gains(measured, mode) for mode in AVERAGED}
    means = [f"{_with_interval(geometric_mean(gains[mode].values()))} {said}" for mode, said in AVERAGED.items()]
    ranges = [f"{mode} {_ends(gains[mode])}{_without_losers(gains[mode])}" for mode in AVERAGED]
    return (
        f"- **{title.format(count=len(gains['inductor']))}: {' and '.join(means)}.** Geometric means, "
        f"{_sizes(measured)} ({place(measured, folder)}; [the parts]({PARTS})). Single models: {'; '.join(ranges)}. "
        f"{_excluded(folder)}PyTorch's authors {published}. Careful: {unsure(measured)}."
    )


def _excluded(folder: Path) -> str:
    """The models that the mean does not have, and why."""
    return "".join(f"Excluded: {workload} (`{reason}`). " for workload, reason in excluded(folder).items())


def _gains(measured: list[Point], mode: str) -> dict[str, Interval]:
    """A mode's speedup of each model, the least first."""
    gains = [(point["workload"], point.speedup) for point in measured if point["mode"] == mode and point.speedup]
    return dict(sorted(gains, key=lambda pair: pair[1].value))


def _with_interval(gain: Interval, name: str = "") -> str:
    return f"{ratio(gain.value)}× ({f'{name}; ' if name else ''}{wording.certain(gain)})"


def _ends(gains: dict[str, Interval]) -> str:
    (least, low), *_, (most, high) = gains.items()
    return f"from {_with_interval(low, least)} to {_with_interval(high, most)}"


def _without_losers(gains: dict[str, Interval]) -> str:
    """The mean of the others, where some models are shown to be slower."""
    losers = [name for name, gain in gains.items() if facts.verdict(gain) == facts.SLOWER]
    others = [gain for name, gain in gains.items() if name not in losers]
    named = " and ".join(losers)
    return f", without {named} on average {_with_interval(geometric_mean(others))}" if losers else ""


def _sizes(measured: list[Point]) -> str:
    """The lengths and the image sizes that the workloads have: `64 or 128 tokens or 224 pixels`."""
    lengths = sorted({point["seq_len"] for point in measured} - {None})
    images = sorted({image for point in measured for image in re.findall(r"image=(\d+)", point["parameters"] or "")})
    return f"{' or '.join(map(str, lengths))} tokens or {' or '.join(images)} pixels"


def decoding() -> list[str]:
    """What torch's users should take to generate tokens, and who is fastest at each batch."""
    told = verdict(material(*DECODING), "plain")
    advice = next(one for one in told.advice if one.framework == "torch")
    again, found = decoding_again()
    ranked = " ".join(one.sentence for one in told.fastest.values())
    return [
        f"- **Decoding with a Llama of 1.2B, a token of each sequence a call: {span(advice.chosen)}.** A context of "
        f"1024 tokens ({place(advice.chosen, *DECODING[:2])}): {wording.sentence(advice)} {wording.cautions(advice)}",
        f"  - On different GPUs of {place(told.setting.points, *DECODING)}: {ranked} A second pair of runs, of "
        f"{place(again.setting.points, *DECODING_AGAIN)}: {found.sentence[0].lower()}{found.sentence[1:]}",
        f"  - {_summed()}",
    ]


def decoding_again() -> tuple[Verdict, Fastest]:
    """The second pair of runs at batch 1: its verdict, and who is fastest."""
    return next(
        (one, fastest)
        for one in material(*DECODING_AGAIN).verdicts
        if (one.setting.points[0]["workload"], one.setting.points[0]["pass"]) == ("llama-1b", "decode")
        for shape, fastest in one.fastest.items()
        if shape.batch == 1
    )


def _summed() -> str:
    """How fast a larger Llama decodes in JAX, its products written either way."""
    product, total = (
        next(p for p in points(SUMMED) if f"product={form}" in p["parameters"]) for form in ("matmul", "sum")
    )
    (rate, share), (summed, most) = (
        (text_of(round(point["tokens_per_s"])), round(point["datasheet_bandwidth_pct"])) for point in (product, total)
    )
    context = re.search(r"context=(\d+)", total["parameters"])[1]
    return (
        f"A Llama of 6.7B at batch 1 and {context} positions, `jax.jit`: {ms(product)} ms a token, {rate} tokens "
        f"a second, {share} % of the data sheet's bandwidth; with its products [written as sums](methodology.md"
        f"#products-written-as-sums) {ms(total)} ms, {summed} a second, {most} % ({place([product, total], SUMMED)}). "
        f"Careful: {unsure([product, total])}."
    )


def resnet() -> str:
    """What ResNet-50 gains with each layout, where the baseline is eager mode in the same one."""
    layouts = ("nchw", "nhwc")
    first, last = (pair(RESNET, layout, batch_size=64) for layout in layouts)
    trained_first, trained_last = (pair(RESNET_TRAINING, layout, batch_size=256) for layout in layouts)
    strict, tf32 = (pair(folder, "nchw", batch_size=16) for folder in (STRICT, TF32))
    exact, rounded = (wording.spread([graph.speedup]) for _, graph in (strict, tf32))
    every = [point for pair in (first, last, trained_first, trained_last, strict, tf32) for point in pair]
    return (
        "- **ResNet-50: channels last first, then compile.** Each gain is over eager mode in the same layout, compiled "
        f"by default. Inference at batch 64 ({place([*first, *last], RESNET)}): channels first {_told(first)}; "
        f"channels last {_told(last)}. Training at batch 256, no reference computed: channels first "
        f"{_told(trained_first)} ({place(trained_first, RESNET_TRAINING)}); channels last {_told(trained_last)} "
        f"({place(trained_last, RESNET_TRAINING)}). Inference at batch 16, channels first: {exact} in strict "
        f"float32 ({place(strict, STRICT)}), {rounded} in TF32, torch's default for convolutions ({place(tf32, TF32)}; "
        f"another GPU and revision of the suite); [why, and what helps]({LOSS}). Careful: {unsure(every)}."
    )


def pair(folder: Path, layout: str, batch_size: int) -> list[Point]:
    """ResNet-50 in a layout: eager mode's point and that of compiling by default."""
    alike = points(folder, workload="resnet50", batch_size=batch_size)
    here = {point["mode"]: point for point in alike if f"layout={layout}" in point["parameters"]}
    return [here["eager"], here["inductor"]]


def _told(pair: list[Point]) -> str:
    eager, graph = pair
    return f"eager {ms(eager)} ms, compiled {wording.spread([graph.speedup])}"


def first_calls() -> str:
    """How long the first call takes in torch, the caches empty."""
    small, trained = (
        [point for point in points(folder, compile_cache="cold") if point["mode"] in AVERAGED]
        for folder in (AVERAGE, SMALL_TRAINING)
    )
    unrolled = [point for folder in UNROLLED for point in points(folder)]
    whole, tuned = one(RESNET_TRAINING, mode="inductor-whole-iteration"), one(TUNED, mode="inductor-max-autotune")
    seconds = [text_of(facts.first_s(point)) for point in (whole, tuned)]
    return (
        "- **The first call compiles.** In torch, the compiler's caches empty, by default or with "
        f'mode="reduce-overhead" at batch 8: {_longest(small)} in inference ({place(small, AVERAGE)}), '
        f"{_longest(trained)} in training ({place(trained, SMALL_TRAINING)}), but for the LSTM, whose training takes "
        f"{_longest(unrolled)} on two cores ({place(unrolled, *UNROLLED)}). A ResNet-50's training "
        f"with its optimizer in the graph, `{whole['mode']}`: {seconds[0]} s ({place([whole], RESNET_TRAINING)}). "
        f"Decoding by `{tuned['mode']}`: {seconds[1]} s ({place([tuned], TUNED)}, torch {tuned['framework_version']}). "
        "These are of the processes that compiled; a run's later ones load that from the cache."
    )


def _longest(measured: list[Point]) -> str:
    """The shortest and the longest first call: `0.769 s (mlp) to 62.1 s (lstm)`, of one workload `415 s to 423 s`."""
    ends = [f(measured, key=facts.first_s) for f in (min, max)]
    several = len({point["workload"] for point in measured}) > 1
    names = [f" ({point['workload']})" if several else "" for point in ends]
    return " to ".join(f"{text_of(facts.first_s(point))} s{name}" for point, name in zip(ends, names, strict=True))
