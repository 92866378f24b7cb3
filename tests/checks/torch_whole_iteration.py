"""Torch's mode `inductor-whole-iteration`: one graph holds the update as well, and its losses are the oracle's.

python tests/checks/torch_whole_iteration.py --device gpu:0
"""

from __future__ import annotations

from prepared import TRAINED, Prepared, arguments, largest_difference, run_checks

MODE = "inductor-whole-iteration"


def trained(device: str, name: str, accumulate: int, dtype: str = "fp32", **parameters) -> str:
    """Losses of three iterations from the first weights, twice, against the oracle's; the update is in the graph."""
    cell = Prepared(device, name, {**TRAINED[name], **parameters, "accumulate": accumulate}, "training", dtype)
    step = cell.of(MODE)
    losses = cell.workload.references(cell.parameters, cell.weights, cell.sets)
    for _ in range(2):
        difference = largest_difference(cell.outputs(step, 3), losses)
        assert difference <= cell.workload.tolerance[dtype], difference
    trainer = step.call
    step.rewind()
    before = {key: tensor.detach().clone() for key, tensor in trainer._weights.items()}
    step()
    assert all((tensor != before[key]).any() for key, tensor in trainer._weights.items())
    assert {float(steps) for steps in trainer._state[2]} == {1.0}
    captured = step.capture()
    assert captured.whole and captured.graphs == captured.compilations == 1, captured
    return f"{difference:.1e} from the oracle's losses, {captured.backend}"


def check_mlp_and_accumulation(device: str) -> str:
    return trained(device, "mlp", 2)


def check_gpt_with_fused_attention_in_bf16(device: str) -> str:
    return trained(device, "gpt-tiny", 1, "bf16", attention="fused")


if __name__ == "__main__":
    run_checks(globals(), arguments(__doc__).parse_args().device)
