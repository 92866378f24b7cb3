"""Torch's mode `inductor-whole-iteration`: one graph holds the update as well, and its losses are the oracle's.

python tests/checks/torch_whole_iteration.py --device gpu:0
"""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

from prepared import TRAINED, Prepared, arguments, largest_difference, run_checks

import workloads
from frameworks.torch.modes import training

MODE = "inductor-whole-iteration"


def check_a_gpt_of_one_layer_in_bf16(device: str) -> str:
    """Losses of three iterations from the first weights, twice, against the oracle's; the update is in the graph.

    `test_passes_and_shapes.py` has an MLP whose gradients accumulate.
    """
    workload, dtype = workloads.get("gpt-tiny", "training"), "bf16"
    workload = replace(workload, model=replace(workload.model, layers=1))
    parameters = {**TRAINED["gpt-tiny"], "accumulate": 1, "attention": "fused"}
    cell = Prepared(device, workload, parameters, "training", dtype)
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


def check_the_suite_s_models_are_not_called_before_their_first_iteration(device: str) -> int:
    """Every parameter is trained, so that no eager call with its activations needs to find those that are."""
    calls = []
    with mock.patch.object(training.Objective, "forward", lambda *given: calls.append(given)):
        step = Prepared(device, "mlp", {**TRAINED["mlp"], "accumulate": 1}, "training").of(MODE)
    weights = [one for one in step.call._objective.parameters() if one.requires_grad]
    assert not calls and len(step.call._weights) == len(weights)
    return len(weights)


if __name__ == "__main__":
    run_checks(globals(), arguments(__doc__).parse_args().device)
