"""User models in torch: breaks, state, references, what a call is given and what a CUDA graph would replay.

python tests/checks/torch_user_models.py
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
import tempfile
import types
from functools import partial
from pathlib import Path

import numpy as np
import torch
from prepared import ROOT, arguments, largest_difference, run_checks
from torch._inductor import codecache, config
from torch._inductor.utils import fresh_cache
from torch.utils import _pytree as pytree

import workloads
from frameworks.adapter import Unsupported
from frameworks.torch import start
from frameworks.torch.adapter import Adapter
from frameworks.torch.inspect import counting
from frameworks.torch.modes import cuda_graph, graphs
from frameworks.torch.modes.state import State
from frameworks.torch.user_model import graph_breaks, hubs, training
from frameworks.torch.user_model import model as user_model
from frameworks.user_model import Uncounted
from frameworks.values import Rules, Values, read
from measurement.cells import Cell
from measurement.sampling import Clocks
from worker import user_model_reference as examining
from worker.channel import classify

FIELD = ROOT / "tests/field/torch"
BREAKS = {14: "`print`", 16: "branching", 18: "item()", 19: "nonzero", 21: "putenv"}  # of broken.py
FLOAT64 = "its own eager mode in float64"
ADAPTER = Adapter()
for mode in ("inductor", "inductor-whole-iteration", "inductor-freezing"):
    graphs.BACKENDS[mode] = ("eager", None)  # what is captured does not depend on what compiles it


def prepared(source: str, mode: str = "eager", dtype: str = "fp32", pass_name: str = "inference"):
    """Return the step of a user model: a file of `tests/field/torch`, a path or a library's name."""
    path = FIELD / f"{source}.py"
    source = str(path) if path.exists() else source
    name = Path(source).name
    workloads.add({name: source})
    workload = workloads.get(name, pass_name)
    shape = {parameter.name: parameter.default or 4 for parameter in workload.parameters}
    cell = Cell("torch", name, "own", pass_name, "cpu", dtype, 1, tuple(shape.items()), mode)
    ADAPTER.configure(cell)
    sets = [workload.inputs(shape, seed) for seed in (1, 2, 3)]
    return ADAPTER.prepare(workload, cell, workload.seeded_weights(shape, 0), sets)


def outputs(step, calls: int) -> list[dict[str, np.ndarray]]:
    """Return the outputs of the first calls, copied."""
    step.rewind()
    return [{name: array.copy() for name, array in step.user_model.values(step()).arrays.items()} for _ in range(calls)]


def reference(step, calls: int) -> tuple[str, list[dict[str, np.ndarray]]]:
    """Return the name and the values of what a step's outputs are compared with."""
    examining.refuse_what_changes(step.user_model, 1e-4)
    name, found = examining.reference(step.user_model, step.user_model.eager(calls), calls, 1e-4)
    return name, [call.arrays for call in found]


def check_every_break_is_found_at_its_line_and_has_a_price(device: str) -> int:
    step, eager = prepared("broken", "inductor"), prepared("broken")
    ours, theirs = outputs(step, 4), outputs(eager, 4)  # each input set, since each may have guards of its own
    assert largest_difference(ours, theirs) < 1e-6 and sorted(ours[0]) == ["both.0", "both.1", "x"]
    captured = step.capture()
    assert [place for place, _ in captured.breaks] == [f"broken.py:{line}" for line in BREAKS], captured
    assert all(word in reason for word, (_, reason) in zip(BREAKS.values(), captured.breaks, strict=True)), captured
    assert (captured.graph_breaks, captured.graphs, captured.whole) == (5, 6, False)
    inside, whole = examining.priced(step, ADAPTER.synchronize, Clocks())
    assert 0 < inside < whole and step.capture() == captured
    ADAPTER.release()
    with tempfile.TemporaryDirectory() as folder:  # the last break is in Python's library, as the first file's was
        again = prepared(shutil.copy(FIELD / "broken.py", f"{folder}/again.py"), "inductor")
        again()
        assert [place for place, _ in again.capture().breaks] == [f"again.py:{line}" for line in BREAKS]
    return len(captured.breaks)


def check_what_dynamo_leaves_alone_is_named(device: str) -> str:
    for mode in ("inductor", "dynamo"):  # of the second one torch says nothing
        step = prepared("lstm", mode)
        step()
        detail = step.capture().detail
        assert "no part of it is compiled, lstm.py:10: Dynamo does not support RNN, GRU, or LSTM" in detail, detail
    assert step.user_model.cost().flops == 2 * 3 * 2 * (16 * 4 + 16 * 4)
    return detail


def check_breaks_that_are_not_logged_are_counted(device: str) -> str:
    step = prepared("logging_configured", "inductor")
    graph_breaks._journal.emit = lambda record: None
    try:
        step()
    finally:
        del graph_breaks._journal.emit
    captured = step.capture()
    assert (captured.whole, captured.graphs, captured.detail) == (False, 1, graph_breaks.UNSEEN), captured
    return captured.detail


def check_a_graph_that_fails_to_compile_is_a_break(device: str) -> int:
    given: list = []

    @torch._dynamo.register_backend
    def compiles_one(graph, inputs):
        given.append(graph)
        if len(given) > 1:
            raise NotImplementedError("no kernel")
        return graph.forward

    before, graphs.BACKENDS["inductor"] = graphs.BACKENDS["inductor"], ("compiles_one", None)
    try:
        with torch._dynamo.config.patch(suppress_errors=True):
            step = prepared("broken", "inductor")
            step()
    finally:
        graphs.BACKENDS["inductor"] = before
    captured = step.capture()
    failed = [place for place, reason in captured.breaks if reason == graph_breaks.FAILED]
    assert (captured.whole, captured.graphs) == (False, 1) and len(given) > 1, captured
    assert failed and all(place.startswith("broken.py:") for place in failed), captured
    return len(failed)


def check_packages_of_aotinductor_are_refused(device: str) -> str:
    """Without one, whose compilation takes 30 s."""
    loader = torch._C._aoti.AOTIModelPackageLoader
    own = loader.run, loader.boxed_run
    try:
        with prepared("forces").user_model.refusing():
            loader.boxed_run(None, [])
    except Unsupported as refusal:
        assert "forces.py calls a package of AOTInductor" in str(refusal), refusal
        assert (loader.run, loader.boxed_run) == own
        return str(refusal)
    raise AssertionError(own)


def check_outputs_are_compared_with_eager_mode_in_float64_from_the_same_state(device: str) -> str:
    step = prepared("extra_state")
    assert largest_difference(outputs(step, 2), outputs(step, 2)) == 0
    name, expected = reference(step, 2)
    assert name == FLOAT64 == reference(prepared("extra_state", dtype="bf16"), 1)[0]
    assert expected[0]["output"].dtype == np.float64
    cost = step.user_model.cost()
    # The parameters, the buffer, x and the output; operators read and write more than that.
    assert cost.bytes == 4 * (8 * 8 + 8 + 1 + 4 * 8 + 4 * 8) < cost.unfused_bytes, cost
    return name


def check_a_copy_that_does_not_fit_is_left_and_named(device: str) -> str:
    model = prepared("parametrized", dtype="bf16").user_model
    model.memory = lambda dtype: (2_000_000_000 if dtype == "float64" else 1, 1_000_000_000)
    name = examining.reference(model, model.eager(1), 1, 1e-4)[0]
    assert name.startswith("its own eager mode in float32 (float64 failed: MemoryError: a copy takes 2 GB"), name
    return name


def check_training_is_eager_mode_s(device: str) -> float:
    """Three iterations, begun again after one."""
    for mode in ("eager", "inductor", "inductor-whole-iteration"):
        step = prepared("trained", mode, pass_name="training")
        step()
        taken = outputs(step, 3)
        name, expected = reference(step, 3)
        assert name == FLOAT64 and largest_difference(taken, expected) < 1e-5, mode
        assert sorted(taken[0]) == ["1.running_mean", "1.running_var", "loss"]
        assert [place for place, _ in step.capture().breaks] == ([] if mode == "eager" else ["trained.py:29"])
        # Forward and backward: two products of each layer again, but none for the gradient of the input.
        assert step.user_model.cost().flops == 2 * 8 * (16 * 8 * 2 + 8 * 4 * 3)
    moved = float(taken[0]["loss"][0] - taken[2]["loss"][0])
    assert moved > 0
    return moved


def check_a_whole_iteration_leaves_parameters_without_a_gradient(device: str) -> list[str]:
    step = prepared("unused_head", "inductor-whole-iteration", pass_name="training")
    step()
    first, now = (dict(one.named_parameters()) for one in (step.user_model.model.module, step.call._objective.model))
    same = [name for name, parameter in first.items() if torch.equal(parameter, now[name])]
    assert same == ["auxiliary.weight", "auxiliary.bias"], same
    return same


def check_a_whole_iteration_begins_with_the_model_s_own_python_state(device: str) -> int:
    step = prepared("annealed", "inductor-whole-iteration", pass_name="training")
    first, now = step.user_model.model.module.step, step.call._objective.model.step
    assert now == first, (now, first)
    return now


def check_a_base_of_whole_numbers_is_trained_in_bf16(device: str) -> float:
    losses = [outputs(prepared("integer_base", dtype=dtype, pass_name="training"), 1) for dtype in ("fp32", "bf16")]
    rounded = largest_difference(*losses)
    assert rounded > 1e-6
    return rounded


def check_libraries_become_models(device: str) -> list[str]:
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 32, "vocab_size": 100}
    config |= {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 64}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(config))
        step = prepared(f"transformers:{folder}")
        assert reference(step, 1)[0] == FLOAT64
        assert step.user_model.cost().flops > 2 * 128 * 32 * 100  # the last product alone
        names = list(outputs(step, 1)[0])
        other = Path(folder, "other")
        other.mkdir()
        (other / "config.json").write_text(json.dumps(config | {"architectures": ["TrainingArguments"]}))
        try:
            prepared(f"transformers:{other}")
        except TypeError as error:  # the library's own
            assert "LlamaConfig" in str(error), error
        else:
            raise AssertionError("a class that takes no configuration makes no model")
    assert names == ["logits"]
    try:
        prepared("torchvision:resnet18")()
    except Exception as error:
        status, reason = classify(error)
        assert status == "unsupported" and "REQUIREMENTS=" in reason, reason
    return names


def check_a_library_s_classifier_of_zeros_has_other_numbers(device: str) -> None:
    """The weights alone: a norm's are not drawn."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    library = types.ModuleType("torchvision")
    library.models = types.ModuleType("torchvision.models")
    library.models.get_model = lambda name, weights: model
    sys.modules["torchvision"] = library
    made = hubs.Library("torchvision:vit").call("model")
    del sys.modules["torchvision"]
    assert [bool(parameter.any()) for parameter in made.parameters()] == [True, False] * 2


def check_a_replay_of_a_cuda_graph_is_no_eager_mode(device: str) -> None:
    own = torch.cuda.CUDAGraph.replay
    try:
        with user_model._refusing_graphs("net.py"):
            torch.cuda.CUDAGraph.replay(None)
    except Unsupported as error:
        assert "net.py replays a CUDA graph" in str(error), error
    else:
        raise AssertionError("not refused")
    assert torch.cuda.CUDAGraph.replay is own


def check_costs_of_fused_paths_and_norms(device: str) -> None:
    attention, x = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval(), torch.randn(2, 4, 8)
    with torch.inference_mode():
        counted = counting.counted(lambda x: attention(x, x, x, need_weights=False), attention, lambda: [x])
        # Norms read what they sum up, and are no products: x twice, the norm twice, and the quotient; no copy of x.
        norm = counting.counted(
            lambda x: x / torch.linalg.norm(x, dim=-1, keepdim=True), attention, lambda: [x[0, :, :3]]
        )
    assert counted.flops == 2 * 2 * (4 * 8 * 4 * 8 + 2 * 4 * 4 * 8)  # four projections, scores and their sums
    assert (norm.flops, norm.unfused_bytes) == (0, 4 * (12 + 4 + 12 + 4 + 12))


class Logged(torch.Tensor):
    """Runs operators past every mode, as `super().__torch_dispatch__` does, after statistics."""

    statistics = False

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if cls.statistics:
            torch.ones(2).norm()
        return super().__torch_dispatch__(func, types, args, kwargs or {})


def check_products_of_a_subclass_that_passes_modes_are_counted_or_named(device: str) -> list[str]:
    nothing, named = torch.nn.Identity(), []
    for product, matrix in ((torch.mm, torch.ones(4, 2)), (torch.nn.functional.linear, torch.ones(2, 4))):
        for Logged.statistics in (False, True):
            call = partial(lambda product, matrix, x: product(x.as_subclass(Logged), matrix), product, matrix)
            with torch.inference_mode():
                try:
                    counted = counting.counted(call, nothing, lambda: [torch.ones(3, 4)])
                    assert (counted.flops, counted.unfused_bytes) == (2 * 3 * 4 * 2, 4 * (3 * 4 + 4 * 2 + 3 * 2))
                except Uncounted as error:
                    named.append(str(error))
    assert named == [f"no rule for aten::{name}" for name in ("mm of a subclass", "linear", "linear of a subclass")]
    return named


def check_rules_of_operators_that_this_torch_lacks_do_nothing(device: str) -> None:
    layer = torch.nn.Linear(4, 2)
    counting.PRODUCTS["_of_another_torch"] = counting.product
    with torch.inference_mode():
        assert counting.counted(layer, layer, lambda: [torch.ones(3, 4)]).flops == 2 * 3 * 4 * 2
    del counting.PRODUCTS["_of_another_torch"]


def check_targets_of_cpp_are_noted_in_each_version(device: str) -> None:
    builder = types.SimpleNamespace(get_target_file_path=lambda: "/of/no/file")
    own = codecache._worker_compile_cpp
    for given in (("lock", (builder,)), ("lock", builder), ("lock", builder, "input", "output")):  # 2.13, 2.7, 2.6
        called: list[tuple] = []
        codecache._worker_compile_cpp = lambda *given, called=called: called.append(given)
        built = start.built_targets()
        codecache._worker_compile_cpp(*given)
        assert (built, called) == (["/of/no/file"], [given])
    codecache._worker_compile_cpp = own


def check_a_start_whose_file_turns_caches_off_loads_nothing(device: str) -> None:
    counters, layer, strategy = (
        graphs.internal("torch._dynamo.utils", "counters"),
        torch.nn.Linear(4, 2),
        start.Cached(),
    )
    strategy.imports()
    strategy.backend, found = types.SimpleNamespace(compiled=1), []
    with fresh_cache(), torch.inference_mode():
        for off in (False, False, True):  # the first call fills the caches
            torch.compiler.reset()
            counters.clear()
            with config.patch(force_disable_caches=off):
                torch.compile(layer, backend="inductor")(torch.ones(3, 4))
                strategy.within_first_call()
            found.append(strategy.loaded)
    assert found == [False, True, False]


def check_state_and_inputs_are_new_for_each_mode(device: str) -> None:
    for file, writes, same in (("writes_to_input", ("argument 1",), True), ("buffer_rebound", (), False)):
        step = prepared(file)
        first, again = outputs(step, 4), outputs(step, 4)
        assert step.user_model.writes == writes and largest_difference(first, again) == 0, file
        assert (largest_difference(first[:1], first[3:]) == 0) == same, file  # three input sets
    assert prepared("fills_gaps").user_model.writes == ("argument 1",)  # only in the third set
    ours, theirs = (outputs(prepared("scalar", mode), 3) for mode in ("inductor", "eager"))
    assert largest_difference(ours, theirs) == 0 < min(largest_difference(theirs[:1], [call]) for call in theirs[1:])


def check_no_break_is_priced_where_forward_records_gradients(device: str) -> list:
    step = prepared("forces", "inductor")
    step()
    assert step.watch is None
    return step.capture().breaks


def check_weights_are_constants_at_every_shape(device: str) -> None:
    step = prepared("lengths", "inductor-freezing")
    for _ in range(3):  # each call's inputs have other lengths
        step()
        assert step.capture().whole


class Recorder:
    """Records a call as a CUDA graph does: what it wrote stays in the buffers, and a replay runs it on them again."""

    def warm_up(self, call) -> None:
        call()

    def capture(self, call):
        output = call()

        def replay() -> None:
            with torch.inference_mode():
                for old, new in zip(*map(pytree.tree_leaves, (output, call())), strict=True):
                    old.copy_(new)

        return cuda_graph.Recording(replay, output, 1)


def check_a_recording_takes_each_input_set_or_is_refused(device: str) -> None:
    for file, refusal in {
        "keywords": "", "writes_to_input": "", "passed_twice": "", "func_grad": "", "scalar": "other scalars",
        "cache_argument": "Cache in the inputs",
    }.items():  # fmt: skip
        step = prepared(file)
        model, expected = step.user_model, outputs(step, 3)
        try:
            call = user_model.Replayed(model, model.call, Recorder(), model.restore)
            sets = [*model.sets, *map(model.fresh, model.sets)]
            found = [{k: v.copy() for k, v in model.values(call(*given)).arrays.items()} for given in sets]
        except Unsupported as error:
            assert refusal and refusal in str(error), (file, error)
        else:
            assert not refusal and largest_difference(found, expected * 2) == 0, file


class Placed:
    """Stands in for an adapter on a GPU."""

    device, starts = torch.device("meta"), False


class OnMeta(user_model.Model):
    """A model on a GPU: tensors of device `meta` refuse those of the CPU, and have no values."""

    def values(self, output) -> Values:
        return Values({"": np.zeros(1)})


def check_a_model_for_training_is_called_where_its_inputs_are(device: str) -> None:
    prepared("weight_norm")
    workload = workloads.get("weight_norm.py")
    sets = [workload.inputs({"batch_size": 2}, 1)]
    model = OnMeta(Placed(), workload, {"seed": np.array(0)}, sets, "float32", True)
    model.repeated(1)
    assert next(model.module.parameters()).device == Placed.device


class Frozen(dict):
    """Like the configurations of diffusers."""

    def update(self, *given, **named):
        raise TypeError("frozen")


class Hooked(torch.nn.Module):
    """Functions that reach the model: hooks, one in a decorator, one that is not complete, and a `forward`."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c, self.d = (torch.nn.Linear(2, 2) for _ in range(4))
        self.seen, kept, latest = {}, [], None
        self.config = Frozen(width=2)

        def remember(_, __, out):
            nonlocal latest
            latest = self.d.weight * 0 + out

        self.d.register_forward_hook(remember)
        self.latest = lambda: latest
        self.kept, forward = kept, self.d.forward
        self.a.register_forward_hook(lambda _, __, out: self.seen.update(a=out))
        self.b.register_forward_hook(lambda _, __, out: kept.append(out))
        self.c.register_forward_hook(torch.no_grad()(lambda _, __, out, seen=self.seen: seen.update(c=out)))
        self.a.register_forward_pre_hook(lambda _, x, *, seen=self.seen: seen.update(x=x[0]))
        self.d.register_forward_pre_hook(lambda *_: None if True else later)
        self.d.forward = lambda x: 2 * forward(x)
        if not self.seen:
            return
        later = 1

    def forward(self, x):
        return self.d(self.c(self.b(self.a(x))))


def check_functions_of_a_copy_reach_the_copy(device: str) -> None:
    module = Hooked()
    module(torch.ones(1, 2))
    before = {**module.seen, "b": module.kept[0]}
    copied = user_model.deep_copy(module).double()
    output = copied(torch.ones(1, 2).double())
    assert output.dtype == torch.float64 and torch.allclose(output.float(), module(torch.ones(1, 2)))
    seen = copied.seen["a"], copied.seen["c"], copied.seen["x"], copied.kept[-1]
    assert {one.dtype for one in seen} == {torch.float64}
    assert len(copied.kept) == 2 and len(module.kept) == 2 and module.kept[0] is before["b"]
    assert copied.latest().dtype == torch.float64 and module.latest().dtype == torch.float32
    module.activation = torch.nn.functional.relu
    assert user_model.deep_copy(module).activation is module.activation  # it holds no part of the model


class Tied(torch.nn.Module):
    """Weights tied by their memory, views of one buffer, and hooks of a parameter."""

    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
        self.b.weight.data = self.a.weight.data
        self.register_buffer("cache", torch.zeros(2, 4))
        self.register_buffer("first", self.cache[0])
        self.register_buffer("bytes", torch.ones(4).to(torch.float8_e4m3fn))
        self.accumulated = []
        self.a.bias.register_hook(lambda gradient: 0 * gradient)
        self.a.bias.register_post_accumulate_grad_hook(lambda one: self.accumulated.append(one.shape))

    def forward(self, x):
        self.cache.copy_(x.detach()[:2])
        return self.b(self.a(x)) + self.first


def check_copies_share_memory_and_run_the_hooks_of_parameters(device: str) -> None:
    module = Tied()
    for copied in (user_model.deep_copy(module), user_model._cast_module(user_model.deep_copy(module), torch.float64)):
        assert copied.a.weight.data_ptr() == copied.b.weight.data_ptr() != module.a.weight.data_ptr()
        assert copied.cache.data_ptr() == copied.first.data_ptr() != module.cache.data_ptr()
        assert copied.bytes.dtype == torch.float8_e4m3fn
        x = torch.randn(3, 4, dtype=copied.a.bias.dtype)
        copied(x).sum().backward()
        assert torch.equal(copied.first, x[0]) and torch.equal(copied.b.weight, copied.a.weight)
        assert not copied.a.bias.grad.any() and copied.b.bias.grad.all()
        assert len(copied.accumulated) == 1 and not module.accumulated and module.a.weight.grad is None
    assert torch.equal(user_model.deep_copy(module).a.weight, module.a.weight)


class Partly(torch.nn.Module):
    """Copies leave a parameter out; there are a sparse buffer, and an attribute that is a view of whole numbers."""

    def __init__(self):
        super().__init__()
        self.a, self.left_out = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
        self.register_buffer("adjacency", torch.eye(2).to_sparse())
        self.register_buffer("places", torch.zeros(4, dtype=torch.int64))
        self.register_buffer("first", self.places[:2])
        self.alias = self.places[2:]

    def __deepcopy__(self, memo):
        made = type(self)()
        del made.left_out
        made.load_state_dict({k: v for k, v in self.state_dict().items() if not k.startswith("left_out")})
        return made


def check_what_a_cast_leaves_keeps_its_memory_and_copies_may_lack_parameters(device: str) -> None:
    module = user_model._cast_module(Partly(), torch.bfloat16)
    module.places.fill_(7)
    assert module.first.tolist() == module.alias.tolist() == [7, 7] and module.a.weight.dtype == torch.bfloat16
    assert not hasattr(user_model.deep_copy(module), "left_out")


def check_dicts_whose_keys_are_attributes_are_copied_once(device: str) -> None:
    bunch = type("Bunch", (dict,), {"__getattr__": dict.__getitem__})
    module = torch.nn.Linear(1, 1)
    module.first = module.second = first = bunch(scale=torch.ones(1), module=module)
    first["itself"], first.kept = first, 1
    copied = user_model.deep_copy(module)
    assert copied.first is copied.second is copied.first.itself and copied.first.module is copied is not module
    assert type(copied.first) is bunch and vars(copied.first) == {"kept": 1}
    assert copied.first is not first and copied.first.scale is not first.scale


def check_gradients_are_compared_with_the_largest_one(device: str) -> None:
    nan, inf, noise = torch.tensor([float("nan"), 1.0]), torch.tensor([float("inf"), 1.0]), torch.full((2,), 1e-11)
    assert training.alike(nan, nan.clone(), 0.0) and not training.alike(inf, torch.tensor([float("inf"), 9.0]), 0.0)
    assert training.alike(noise, -noise, 1e-8) and not training.alike(noise, -noise, 0.0)
    assert not training.alike(None, noise, 1.0) and training.alike(None, None, 0.0)


def check_tensors_of_one_file_are_no_views_of_each_other(device: str) -> None:
    whole = torch.arange(8.0)
    pieces = [whole[:4], whole[4:], whole.view(2, 4)[:, 0]]
    assert not user_model._overlap(pieces[:2]) and user_model._overlap(pieces) and not user_model._overlap(pieces[:1])


def check_every_kind_of_value_is_compared(device: str) -> list[str]:
    sparse = torch.sparse_coo_tensor([[1, 1, 0]], [1.0, 2.0, 3.0], (3,))
    output = {
        "ids": torch.tensor([2**60 + 1]), "flags": torch.tensor([True]), "turn": torch.tensor([1 + 2j]),
        "half": torch.tensor([1.5], dtype=torch.bfloat16), "sparse": sparse, "word": "yes", "number": 3,
        "nested": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
        "distribution": torch.distributions.Normal(torch.zeros(2), torch.ones(2), validate_args=False),
        "record": dataclasses.make_dataclass("Record", ["x"])(torch.ones(1)), "none": None, "generator": iter([1]),
        "empty": [], "model": torch.nn.Linear(1, 1),
    }  # fmt: skip
    rules: Rules = prepared("forces").user_model.rules
    found = read(output, rules)
    values = {name: [array.dtype.kind, array.reshape(-1).tolist()] for name, array in found.arrays.items()}
    for name, expected in {
        "ids": ["i", [2**60 + 1]], "flags": ["b", [True]], "word": ["U", ["yes"]], "turn": ["f", [1.0, 2.0]],
        "half": ["f", [1.5]], "sparse.values": ["f", [3.0, 3.0]], "nested.1": ["f", [1.0] * 3],
        "distribution.scale": ["f", [1.0, 1.0]], "record.x": ["f", [1.0]],
    }.items():  # fmt: skip
        assert values[name] == expected, (name, values)
    assert values["sparse.indices"][1] == [0, 1] and "none" not in values
    assert found.not_compared == ["generator (list_iterator)", "model (Linear)"]
    return sorted(values)


class Lost(torch.Tensor):
    """A subclass whose values a device cannot return."""

    def cpu(self):
        raise torch.OutOfMemoryError("CUDA out of memory")


def check_an_error_of_a_device_is_no_value_that_is_not_compared(device: str) -> None:
    rules = user_model.TorchRules()
    try:
        read(torch.ones(2).as_subclass(Lost), rules)
    except torch.OutOfMemoryError:
        pass
    else:
        raise AssertionError("not raised")
    masked = torch.masked.masked_tensor(torch.ones(2), torch.tensor([True, False]))
    assert rules.array(masked) is None


def check_a_resized_buffer_has_its_strides_again(device: str) -> None:
    module = torch.nn.Module()
    module.register_buffer("kept", torch.rand(2, 3, 4, 4).to(memory_format=torch.channels_last))
    first, state = module.kept.clone(), State(module)
    module.kept.resize_(1)
    state.restore()
    assert torch.equal(module.kept, first) and module.kept.stride() == first.stride()


if __name__ == "__main__":
    run_checks(globals(), arguments(__doc__).parse_args().device)
