"""Weights from a `safetensors` checkpoint: a folder, a file, or the name of a model on the Hugging Face hub."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors

from measurement.refusals import UsageError, read_text
from workloads.spec import Parameters, Workload

_INDEX = "model.safetensors.index.json"
_TYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16}


class CheckpointError(UsageError):
    """The checkpoint cannot be used; the message is one clear sentence."""


@dataclass(frozen=True)
class Checkpoint:
    """The files of one checkpoint. `name` identifies its origin and changes with its content."""

    name: str
    files: tuple[Path, ...]

    def tensors(self, workload: Workload, parameters: Parameters) -> dict[str, np.ndarray]:
        """Return the workload's weights, float32, under their canonical names. Raises CheckpointError.

        Tensors that the workload does not have (a classifier's head, say) are dropped.
        """
        tensors: dict[str, np.ndarray] = {}
        shapes = workload.weight_shapes(parameters)
        for path in self.files:
            for stored, content in _read(path):
                canonical = workload.canonical_name(stored)
                if canonical in shapes:
                    tensors[canonical] = _array(content, stored, path)
        for name, shape in shapes.items():
            if name not in tensors:
                raise CheckpointError(f"The checkpoint {self.name} has no tensor {name}, which {workload.name} needs.")
            if tensors[name].shape != tuple(shape):
                raise CheckpointError(
                    f"In the checkpoint {self.name} the tensor {name} has shape {tensors[name].shape}; "
                    f"{workload.name} needs {tuple(shape)}."
                )
        return {name: tensors[name] for name in shapes}


def check_place(source: str) -> None:
    """Raise CheckpointError for a path that does not exist; any other word may be a hub name."""
    path = Path(source).expanduser()
    if not path.exists() and (path.is_absolute() or source.startswith((".", "~"))):
        raise CheckpointError(f"There is no checkpoint at {source}.")


def open_checkpoint(source: str) -> Checkpoint:
    """Return the checkpoint at a path or with a hub name (`google-bert/bert-base-uncased`). Raises CheckpointError."""
    check_place(source)
    path = Path(source).expanduser()
    if not path.exists():
        path = _download(source)
    files = _files(path) if path.is_dir() else (path,)
    digest = hashlib.sha256()
    for file in files:
        if file.exists() and not file.is_file():  # reading it may never end
            raise CheckpointError(f"The checkpoint {file} cannot be read: it is a device, a pipe or a folder.")
        try:
            with open(file, "rb") as content:
                digest.update(hashlib.file_digest(content, "sha256").digest())
        except OSError as error:
            raise CheckpointError(f"The checkpoint {file} cannot be read: {error.strerror}.") from None
    return Checkpoint(f"{Path(source).name or source}#{digest.hexdigest()[:12]}", files)


def _files(folder: Path) -> tuple[Path, ...]:
    index = folder / _INDEX
    if index.exists():
        text = read_text(index, "The index")
        try:
            shards = sorted(set(json.loads(text)["weight_map"].values()))
            outside = [shard for shard in shards if Path(shard).name != shard]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise CheckpointError(f"The index {index} cannot be read; it should map tensors to files.") from None
        if outside:
            raise CheckpointError(f"The index {index} names {outside[0]!r}, which is not a file in the same folder.")
        return tuple(folder / shard for shard in shards)
    files = tuple(sorted(folder.glob("*.safetensors")))
    if not files:
        raise CheckpointError(
            f"The folder {folder} holds no .safetensors file; save the model with safe serialization."
        )
    return files


def _download(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, allow_patterns=["*.safetensors", "*.safetensors.index.json"]))
    except HFValidationError:
        raise CheckpointError(f"{name!r} is neither a folder nor the name of a model on the hub.") from None
    except LocalEntryNotFoundError:
        raise CheckpointError(
            f"The model hub cannot be reached, and {name} is not in the local cache; pass WEIGHTS=<folder> instead."
        ) from None
    except HfHubHTTPError as error:
        raise CheckpointError(f"The model hub refused {name}: {str(error).splitlines()[0]}") from None
    except OSError as error:  # no network
        raise CheckpointError(f"The model hub cannot be reached ({error}); pass WEIGHTS=<folder> instead.") from None


def _read(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (name, {dtype, shape, data}) of each tensor of a file."""
    try:
        yield from safetensors.deserialize(path.read_bytes())
    except (safetensors.SafetensorError, OSError) as error:
        raise CheckpointError(f"The checkpoint {path} cannot be read as safetensors: {error}.") from None


def _array(content: dict[str, Any], name: str, path: Path) -> np.ndarray:
    kind, data = content["dtype"], content["data"]
    if kind == "BF16":  # the upper half of a float32
        values = (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)
    elif kind in _TYPES:
        values = np.frombuffer(data, _TYPES[kind]).astype(np.float32)
    else:
        raise CheckpointError(f"The tensor {name} in {path} has type {kind}, which is not a floating-point type.")
    return values.reshape(content["shape"])
