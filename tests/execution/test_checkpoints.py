"""Weights from safetensors checkpoints: every spelling and type, and one sentence for what cannot be used."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from doubles.environment import bench, interpreter
from safetensors.numpy import save_file

import workloads
from execution.checkpoints import CheckpointError, open_checkpoint
from execution.reference_data import ensure
from measurement.parity import difference
from measurement.refusals import UsageError
from records.statuses import MEASURED

MLP, SMALL = workloads.get("mlp"), {"width": 4, "depth": 1}


@pytest.fixture
def weights():
    return MLP.seeded_weights(SMALL, 0)


def bfloat16_file(halves: dict[str, np.ndarray]) -> bytes:
    """A safetensors file of bfloat16 tensors, which NumPy has no type for: header length, header, data."""
    header, data = {}, b""
    for name, bits in halves.items():
        header[name] = {
            "dtype": "BF16",
            "shape": list(bits.shape),
            "data_offsets": [len(data), len(data) + bits.nbytes],
        }
        data += bits.tobytes()
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def load(folder, workload=MLP, parameters=SMALL):
    return open_checkpoint(str(folder)).tensors(workload, parameters)


def test_fp32_comes_back_exactly(tmp_path, weights):
    save_file({**weights, "classifier.weight": np.ones((2, 4), np.float32)}, tmp_path / "model.safetensors")
    tensors = load(tmp_path)
    assert list(tensors) == list(weights)
    assert all(np.array_equal(tensors[name], weights[name]) for name in weights)
    assert open_checkpoint(str(tmp_path)).name == open_checkpoint(str(tmp_path)).name
    before = open_checkpoint(str(tmp_path)).name
    save_file({name: value + 1 for name, value in weights.items()}, tmp_path / "model.safetensors")
    assert open_checkpoint(str(tmp_path)).name != before


def test_half_types_are_widened(tmp_path, weights):
    save_file({name: value.astype(np.float16) for name, value in weights.items()}, tmp_path / "model.safetensors")
    assert all(np.array_equal(load(tmp_path)[n], v.astype(np.float16)) for n, v in weights.items())
    halves = {name: (value.view(np.uint32) >> 16).astype(np.uint16) for name, value in weights.items()}
    (tmp_path / "model.safetensors").write_bytes(bfloat16_file(halves))
    for name, value in halves.items():
        assert np.array_equal(load(tmp_path)[name].view(np.uint32) >> 16, value)


def test_shards_are_put_together(tmp_path, weights):
    names = list(weights)
    save_file({names[0]: weights[names[0]]}, tmp_path / "a.safetensors")
    save_file({name: weights[name] for name in names[1:]}, tmp_path / "b.safetensors")
    index = {name: "a.safetensors" if name == names[0] else "b.safetensors" for name in names}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    assert np.array_equal(load(tmp_path)[names[-1]], weights[names[-1]])


def test_a_tensor_that_the_workload_lacks_may_be_of_any_type(tmp_path, weights):
    save_file({**weights, "embeddings.position_ids": np.arange(4)}, tmp_path / "model.safetensors")
    assert list(load(tmp_path)) == list(weights)


def test_a_file_may_be_named_itself(tmp_path, weights):
    save_file(weights, tmp_path / "one.safetensors")
    save_file({"broken": np.ones(1, np.float32)}, tmp_path / "other.safetensors")
    assert list(load(tmp_path / "one.safetensors")) == list(weights)


def test_historical_names_of_bert(tmp_path, small_bert):
    weights = small_bert.seeded_weights({}, 0)
    old = {
        "bert." + n.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): v
        for n, v in weights.items()
    }
    save_file({**old, "cls.predictions.bias": np.ones(3, np.float32)}, tmp_path / "model.safetensors")
    tensors = load(tmp_path, small_bert, {})
    assert all(np.array_equal(tensors[name], weights[name]) for name in weights)


def refusal(source, workload=MLP) -> str:
    with pytest.raises(CheckpointError) as error:
        open_checkpoint(str(source)).tensors(workload, SMALL)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_what_cannot_be_used_is_one_sentence(tmp_path, weights):
    path = tmp_path / "model.safetensors"
    assert "There is no checkpoint at" in refusal(tmp_path / "nowhere")
    assert "holds no .safetensors file" in refusal(tmp_path)
    index = tmp_path / "model.safetensors.index.json"
    for content in ("torn {", "[]", '{"weight_map": []}', "{}"):
        index.write_text(content)
        assert "index.json cannot be read" in refusal(tmp_path)
    index.write_text('{"weight_map": {"layers.0.linear.weight": "lost.safetensors"}}')
    assert "lost.safetensors cannot be read: No such file" in refusal(tmp_path)
    index.unlink()
    path.write_bytes(b"not a checkpoint")
    assert "cannot be read as safetensors" in refusal(tmp_path)
    save_file(weights, path)
    path.write_bytes(path.read_bytes()[:-8])
    assert "cannot be read as safetensors" in refusal(tmp_path)
    save_file({n: v for n, v in weights.items() if n != "layers.0.norm.bias"}, path)
    assert "has no tensor layers.0.norm.bias, which mlp needs." in refusal(tmp_path)
    save_file({**weights, "layers.0.norm.bias": np.ones(5, np.float32)}, path)
    assert "layers.0.norm.bias has shape (5,); mlp needs (4,)." in refusal(tmp_path)
    save_file({**weights, "layers.0.norm.bias": np.ones(4, np.int64)}, path)
    assert "has type I64, which is not a floating-point type" in refusal(tmp_path)


def test_a_hub_name_without_the_hub(monkeypatch):
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    assert "cannot be reached" in refusal("no-such-owner/no-such-model")
    assert "neither a folder nor the name of a model" in refusal("what is this//model")


INDEXES = {
    "../../etc/passwd": "is not a file in the same folder",
    "/etc/passwd": "is not a file in the same folder",
    "..": "is a device, a pipe or a folder",
    "pipe": "is a device, a pipe or a folder",
    "zero": "is a device, a pipe or a folder",
    3: "should map tensors to files",
}


@pytest.mark.parametrize("shard", INDEXES)
def test_an_index_names_files_beside_it_and_nothing_else(tmp_path, shard):
    os.mkfifo(tmp_path / "pipe")  # which is waited for
    (tmp_path / "zero").symlink_to("/dev/zero")  # which never ends
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": shard}}))
    with pytest.raises(CheckpointError, match=INDEXES[shard]):
        open_checkpoint(str(tmp_path))


def test_a_pipe_or_a_deep_index_is_a_sentence(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CheckpointError, match="is a device, a pipe or a folder"):
        open_checkpoint(str(tmp_path / "pipe"))
    index = tmp_path / "model.safetensors.index.json"
    for content, why in (("[" * 100_000, "should map"), ("[]", "should map"), (b"\xff", "is not UTF-8")):
        index.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(UsageError, match=why):
            open_checkpoint(str(tmp_path))
    index.unlink()
    os.mkfifo(index)
    with pytest.raises(UsageError, match="a device, a pipe or a folder"):
        open_checkpoint(str(tmp_path))


# Llamas of transformers as `save_pretrained` leaves them, in several files; norms that are not all ones, as trained
# ones are not, and matrices so large that attention is no mean. Beside each its own logits after a prompt.
LLAMAS = """
import json, sys
import numpy as np, torch
from transformers import LlamaConfig, LlamaForCausalLM
for folder, told in json.load(sys.stdin).items():
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**told["config"])).eval()
    with torch.inference_mode():
        for parameter in model.parameters():
            parameter.normal_(*((1.0, 0.1) if parameter.dim() == 1 else (0.0, 0.2)))
        model.save_pretrained(folder, max_shard_size="100KB")
        logits = model.double()(torch.tensor(told["input_ids"])).logits
    np.save(folder + "/logits.npy", logits[:, -1].numpy())
"""
PROMPT = {"batch_size": 2, "prompt": 100, "attention": "explicit"}  # beyond what its wavelengths are stretched from


@pytest.fixture(scope="module")
def llamas(tmp_path_factory) -> dict[str, tuple]:
    """The small Llama with and without an output layer of its own: model, folder, transformers' logits (B, V)."""
    made, folder = {}, tmp_path_factory.mktemp("llamas")
    for name in ("tied", "own"):
        model = replace(workloads.get("llama-tiny", "prefill"), tied=name == "tied")
        told = {"config": model.library_config(), "input_ids": model.sets(PROMPT, 0)[0]["input_ids"].tolist()}
        made[name] = model, folder / name, told
    request = json.dumps({str(folder): told for _, folder, told in made.values()})
    command = [str(interpreter("torch")), "-c", LLAMAS]
    subprocess.run(command, input=request, text=True, check=True, capture_output=True)
    return {name: (model, folder, np.load(folder / "logits.npy")) for name, (model, folder, _) in made.items()}


@pytest.mark.slow
@pytest.mark.parametrize("head", ["tied", "own"])
def test_the_oracle_with_a_llama_s_checkpoint_gives_transformers_logits(llamas, head):
    model, folder, expected = llamas[head]
    assert len(list(folder.glob("*.safetensors"))) > 1
    tensors = load(folder, model, PROMPT)
    assert ("lm_head.weight" in tensors) == (head == "own")
    wide = {name: value.astype(np.float64) for name, value in tensors.items()}
    outputs = model.reference(PROMPT, wide, model.sets(PROMPT, 0)[0])
    off = difference({"logits": outputs["logits"]}, {"logits": expected})
    assert off.within(1e-6), off  # transformers' angles are in float32


@pytest.mark.slow
def test_a_llama_s_checkpoint_is_what_is_measured(llamas, tmp_path):
    """The reference of a run is transformers' logits, and the suite's model and the library's agree with it."""
    _, folder, expected = llamas["tied"]
    words = ["--framework", "torch", "--workload", "llama-tiny", "--impl", "plain,library", "--pass", "prefill,decode"]
    words += ["--mode", "eager", "--batch", "2", "--prompt", "100", "--context", "9", "--attention", "explicit"]
    words += ["--threads", "1", "--budget", "0.05", "--weights", str(folder)]
    done = bench(tmp_path / "run", *words)
    assert done.code == 0, done.output
    assert len(done.records) == 4
    for record in done.records:
        assert record["status"] in MEASURED, (record["cell"], record["reason"])
        assert record["weights"].startswith("tied#")
    request = {"workload": "llama-tiny", "pass": "prefill", "parameters": PROMPT, "storage": "fp32"}
    (kept,) = ensure([request | {"seed": 0, "source": str(folder), "own": None}], {})  # as the run has it
    assert kept.weights_name == done.records[0]["weights"]
    with np.load(kept.reference) as reference:
        logits = reference["0.logits"].reshape(expected.shape)
    assert difference({"logits": logits}, {"logits": expected}).within(1e-6)
