"""Torch's modes whose weights are constants, those of others not, and `inductor-max-autotune` with and without.

python tests/checks/torch_freezing.py --device gpu:0
"""

from __future__ import annotations

import os
import tempfile

import torch
import torch._inductor.config
from prepared import TRAINED, Prepared, arguments, largest_difference, run_checks

from frameworks.adapter import Capture
from frameworks.torch.modes import graphs


def change_of_output(mlp: Prepared, step) -> float:
    """What a weight of zeros, put in place, changes."""
    before = mlp.outputs(step, 1)
    (model,) = mlp.adapter.models.values()
    weight = model.layers[0].linear.weight
    with torch.no_grad():
        kept = weight.clone()
        weight.zero_()
        change = largest_difference(mlp.outputs(step, 1), before)
        weight.copy_(kept)
    return change


def check_weights_are_constants_in_this_mode_alone(device: str) -> str:
    mlp = Prepared(device, "mlp", TRAINED["mlp"])
    steps = {mode: mlp.of(mode) for mode in ("inductor-freezing", "inductor", "eager")}
    reference = mlp.outputs(steps["eager"], 3)
    for step in steps.values():
        assert largest_difference(mlp.outputs(step, 3), reference) <= 1e-5
    changes = {mode: change_of_output(mlp, step) for mode, step in steps.items()}
    frozen_change = changes.pop("inductor-freezing")
    # On a GPU (seen with torch 2.11) a matrix is a constant of the graph without being copied: it is the same memory.
    assert frozen_change == 0 or device != "cpu", frozen_change
    assert min(changes.values()) > 1e-3, changes
    frozen = steps["inductor-freezing"].capture()
    assert frozen.whole and frozen.compilations == 1 and frozen.detail.startswith("8 weights"), frozen
    assert not torch._inductor.config.freezing
    assert mlp.adapter.start_compiler(mlp.cell("inductor-freezing"))["freezing"] is True
    assert mlp.adapter.start_compiler(mlp.cell("inductor"))["freezing"] is False
    return frozen.detail


def check_autotuning_is_the_same_model(device: str) -> str:
    """On a CPU this mode compiles what the one without CUDA graphs does, which the sweeps of all models measure."""
    return of_the_same_model(Prepared(device, "mlp", TRAINED["mlp"]), "inductor-max-autotune").backend


def check_constant_weights_are_tuned_on_a_cpu(device: str) -> str:
    """There Inductor has templates for products with constant weights alone."""
    mlp = Prepared(device, "mlp", TRAINED["mlp"])
    captured = of_the_same_model(mlp, "inductor-max-autotune-freezing")
    assert captured.detail.startswith("8 weights are constants of the graph; "), captured
    assert device != "cpu" or "kinds of matrix product autotuned: " in captured.detail, captured
    step = mlp.of("inductor-max-autotune-freezing")
    assert device != "cpu" or change_of_output(mlp, step) == 0
    return captured.detail


def of_the_same_model(mlp: Prepared, mode: str) -> Capture:
    """What a mode captured whose outputs were found to be eager mode's."""
    step, eager = mlp.of(mode), mlp.of("eager")
    assert largest_difference(mlp.outputs(step, 3), mlp.outputs(eager, 3)) <= 1e-5
    captured = step.capture()
    assert captured.whole and captured.compilations == 1, captured
    return captured


def check_a_graph_that_froze_nothing_is_not_whole(device: str) -> str:
    graphs.under_options = lambda compiled, mode: compiled  # Dynamo is not told
    mlp = Prepared(device, "mlp", TRAINED["mlp"])
    step = mlp.of("inductor-freezing")
    step()
    assert not step.capture().whole
    return step.capture().detail


if __name__ == "__main__":
    # What was tuned before is not tuned again.
    with tempfile.TemporaryDirectory() as os.environ["TORCHINDUCTOR_CACHE_DIR"]:
        run_checks(globals(), arguments(__doc__).parse_args().device)
