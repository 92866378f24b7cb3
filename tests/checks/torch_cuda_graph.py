"""Torch's mode `cuda-graph` through its adapter: on a GPU as it is, on the CPU with a double of the recorder.

    python tests/checks/torch_cuda_graph.py --device gpu:0

needs torch and NumPy alone, prints a line for each check and ends with exit code 0 if all hold.
"""

from __future__ import annotations

import torch
from prepared import BERT, TRAINED, Prepared, arguments, largest_difference, run_checks

from frameworks.adapter import Unsupported
from frameworks.torch.modes import cuda_graph


def prepared(device: str, *cell) -> Prepared:
    """The cell with its step in this mode as `step`."""
    made = Prepared(device, *cell)
    made.step = made.of(cuda_graph.MODE)
    return made


def check_outputs_are_those_of_eager(device: str) -> str:
    bert = prepared(device, "bert-tiny", BERT)
    difference = largest_difference(bert.outputs(bert.step, 5), bert.outputs(bert.of("eager"), 5))
    assert difference <= 1e-5, difference
    captured = bert.step.capture()
    assert captured.whole and captured.graphs == captured.compilations == 1, captured
    if device != "cpu":
        assert int(captured.detail.split()[0]) > 20, captured.detail
    return f"{difference:.1e} apart; {captured.detail}"


def check_an_output_is_the_graph_s_memory(device: str) -> str:
    bert = prepared(device, "bert-tiny", BERT)
    first, second = bert.step(), bert.step()
    assert [t.data_ptr() for t in first.values()] == [t.data_ptr() for t in second.values()]
    return "each call writes where the one before wrote"


def check_weights_are_used_where_they_lie(device: str) -> str:
    mlp = prepared(device, "mlp", TRAINED["mlp"])
    before = mlp.outputs(mlp.step, 1)
    (model,) = mlp.adapter.models.values()
    with torch.no_grad():
        model.layers[0].linear.weight.zero_()
    difference = largest_difference(mlp.outputs(mlp.step, 1), before)
    assert difference > 1e-3, "the graph computed with weights of its own"
    return "a weight that is changed in place changes the next replay's output"


def check_another_shape_is_recorded_once(device: str) -> str:
    bert = prepared(device, "bert-tiny", BERT)
    bert.step()
    longer = {**BERT, "seq_len": 24}
    inputs = bert.workload.inputs(longer, 1)
    rebound = bert.step.rebound([bert.adapter.place(bert.cell("cuda-graph"), inputs)])
    output = bert.read(rebound())
    reference = bert.workload.reference(longer, bert.weights, inputs)
    assert largest_difference([output], [reference]) <= 1e-4
    bert.step()
    rebound()
    assert bert.step.capture().compilations == 2
    return "two shapes, two recordings"


def check_losses_are_the_oracle_s(device: str) -> str:
    worst = 0.0
    for name, parameters in TRAINED.items():
        for accumulate in (1, 2):
            for dtype in ("fp32",) if device == "cpu" else ("fp32", "bf16"):
                trained = prepared(device, name, {**parameters, "accumulate": accumulate}, "training", dtype)
                losses = trained.workload.references(trained.parameters, trained.weights, trained.sets)
                first = trained.read(trained.step())  # the calls before the capture must have left nothing
                tolerance = trained.workload.tolerance[dtype]
                assert largest_difference([first], losses[:1]) <= tolerance, (name, accumulate, dtype)
                for _ in range(5):
                    trained.step()
                for _ in range(2):  # restored in place, the same graph begins anew
                    difference = largest_difference(trained.outputs(trained.step, 3), losses)
                    assert difference <= tolerance, (name, accumulate, dtype, difference)
                    worst = max(worst, difference if dtype == "fp32" else 0.0)
                assert trained.step.capture().compilations == 1
    return f"within {worst:.1e} in fp32, from the first call and after two restores"


def check_what_cannot_be_captured_is_refused(device: str) -> str:
    if device == "cpu":
        return "left out: needs a GPU"
    recorder = cuda_graph.Recorder(torch.device("cuda", int(device.partition(":")[2])))
    ones = torch.ones(4, device="cuda")
    try:
        cuda_graph.Replayed(lambda x: x * x.sum().item(), recorder)(ones)
    except Unsupported as refusal:
        assert (ones + ones).sum().item() == 8  # the device is as before
        return str(refusal)
    raise AssertionError("a call that waits for the device was captured")


if __name__ == "__main__":
    parser = arguments(__doc__)
    parser.add_argument("--double", default="Recorder", help="on the CPU: which of doubles/recorder.py")
    options = parser.parse_args()
    if options.device == "cpu":
        from doubles import recorder

        cuda_graph.Recorder = getattr(recorder, options.double)
    run_checks(globals(), options.device)
