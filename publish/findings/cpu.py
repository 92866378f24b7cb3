"""What was found on CPUs: four frameworks on two virtual cores, and constant weights in torch."""

from __future__ import annotations

from analysis.modes import words
from publish.findings.evidence import CPU, material, one, path, processes, unsure
from publish.picture import versions
from reports.content import ratio
from reports.verdict import wording

TWO_CORES, OWN = CPU / "two-cores", CPU / "own-models"
FROZEN = {
    "timm-resnet50": "timm's ResNet-50",
    "timm-vit": "its ViT-B/16",
    "lstm-tagger": "an LSTM",
    "distilbert": "DistilBERT",
}
DEFAULT, CONSTANT = "inductor", "inductor-freezing"


def two_cores() -> str:
    """Who is fastest with BERT-base, and what torch's and Paddle's users should take there and with the MLP."""
    content = material(TWO_CORES)
    by_workload = {one.setting.points[0]["workload"]: one for one in content.verdicts}
    told = [fastest.sentence for fastest in by_workload["bert-base"].fastest.values()]
    for workload, verdict in by_workload.items():
        advice = [one for one in verdict.advice if one.framework in ("torch", "paddle")]
        told += [f"{workload}: {wording.sentence(one)} {wording.cautions(one)}".rstrip() for one in advice]
    measured = content.points.measured
    return (
        f"- **On two virtual cores of an AMD EPYC** ([records]({path(TWO_CORES)}), {processes(measured)}), fp32, "
        f"{versions(measured)}. {' '.join(told)}"
    )


def constant_weights() -> str:
    """What Inductor's freezing brings beside the default, model by model."""
    runs = {OWN / folder: said for folder, said in FROZEN.items()}
    both = {said: [one(folder, mode=mode) for mode in (CONSTANT, DEFAULT)] for folder, said in runs.items()}
    parts = [
        f"{said} {ratio(frozen.speedup.value)}× ({wording.certain(frozen.speedup)}; by default "
        f"{ratio(plain.speedup.value)}×, {wording.certain(plain.speedup)})"
        for said, (frozen, plain) in both.items()
    ]
    measured = [point for pair in both.values() for point in pair]
    return (
        f"- **On a CPU try constant weights**, `{words()['torch', CONSTANT].call}`: over eager mode "
        f"{'; '.join(parts)}. fp32, batch 1, {processes(measured)}; timm's on four virtual cores of an Intel Xeon, the "
        f"others on two of an AMD EPYC ([records]({path(OWN)}/README.md)). Careful: {unsure(measured)}."
    )
