"""How a mode calls torch's attention operator, which kernel torch then chooses, and why it refuses the others."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.backends import cuda
from torch.nn.attention import SDPBackend, sdpa_kernel

from frameworks.adapter import Step
from frameworks.torch.inspect import program

CHOICES = {
    "MATH": "math",
    "FLASH_ATTENTION": "flash",
    "EFFICIENT_ATTENTION": "memory-efficient",
    "CUDNN_ATTENTION": "cuDNN",
}
# torch's own checks on a GPU, each of which reports its reason on request.
CHECKS = {
    "flash": "can_use_flash_attention",
    "memory-efficient": "can_use_efficient_attention",
    "cuDNN": "can_use_cudnn_attention",
}
NO_REASON = "torch gives no reason"


@dataclass(frozen=True)
class Tensor:
    """Properties of an argument that decide which kernel can be used; sizes and strides in elements."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    requires_grad: bool = False

    @classmethod
    def described(cls, tensor: torch.Tensor) -> Tensor:
        dtype, kind = tensor.dtype, tensor.device.type
        if dtype == torch.float32 and torch.is_autocast_enabled(kind):
            dtype = torch.get_autocast_dtype(kind)  # autocast casts after the call that is recorded here
        sizes, strides = tuple(map(int, tensor.shape)), tuple(map(int, tensor.stride()))
        return cls(sizes, strides, dtype, tensor.device, tensor.requires_grad)

    def again(self) -> torch.Tensor:
        """Return a tensor of this form with any values: strides of 0 take as little memory as before."""
        made = torch.empty_strided(self.sizes, self.strides, dtype=self.dtype, device=self.device)
        return made.requires_grad_() if self.requires_grad else made

    def __str__(self) -> str:
        sizes, strides = (",".join(map(str, numbers)) for numbers in (self.sizes, self.strides))
        return f"{str(self.dtype).removeprefix('torch.')} ({sizes}) stride ({strides})"


@dataclass(frozen=True)
class Call:
    """The arguments of one call of `scaled_dot_product_attention`."""

    query: Tensor
    key: Tensor
    value: Tensor
    mask: Tensor | None = None
    dropout: float = 0.0
    causal: bool = False
    grouped: bool = False
    grad: bool = False  # whether gradients were recorded

    def __str__(self) -> str:
        parts = [f"{name} {getattr(self, name)}" for name in ("query", "key", "value")]
        parts += [f"mask {self.mask or 'none'}", *["causal"] * self.causal]
        return "; ".join(parts + [f"dropout {self.dropout}"] * bool(self.dropout))


def _call(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, enable_gqa=False, **_: Any) -> Call:
    operands = (Tensor.described(tensor) for tensor in (query, key, value))
    mask = None if attn_mask is None else Tensor.described(attn_mask)
    return Call(*operands, mask, dropout_p, is_causal, enable_gqa, torch.is_grad_enabled())


def calls_of(step: Step, eager: bool) -> dict[Call, int]:
    """Return the calls in one run of the step's program, with their counts.

    An eager step that does not list its program is called instead. A graph that does not list it has no calls: a call
    would show Dynamo's actions, and not the graph's.
    """
    counts: dict[Call, int] = {}

    def count(*args: Any, **kwargs: Any) -> None:
        call = _call(*args, **kwargs)
        counts[call] = counts.get(call, 0) + 1

    with program.watched(count):
        listed = step.program()
        if listed is None and eager:
            program.executed(step, autograd=True)
    return counts


def described(step: Step, eager: bool) -> list[dict]:
    """Return a dictionary per call: its arguments, its count, the kernel that torch chooses, why it refuses others."""
    calls = []
    for call, count in calls_of(step, eager).items():
        chosen, refused = choice(call)
        mask = str(call.mask or "none")
        calls.append({"call": str(call), "mask": mask, "count": count, "chosen": chosen, "refused": refused})
    return calls


def choice(call: Call) -> tuple[str, dict[str, str]]:
    """Return the kernel that torch chooses for a call, and by kernel why a fused one is refused, in torch's words."""
    tensors = [tensor.again() for tensor in (call.query, call.key, call.value)]
    mask = call.mask.again() if call.mask else None
    with torch.set_grad_enabled(call.grad):
        chosen = _chosen(tensors, mask, call)
        if call.query.device.type == "cuda":
            refused = dict(_refused_on_gpu(tensors, mask, call))
        else:
            refused = {} if chosen == "flash" else {"flash": _refused_on_cpu(tensors, mask, call)}
    return chosen, refused


def _chosen(tensors: list[torch.Tensor], mask: torch.Tensor | None, call: Call) -> str:
    options = {"dropout_p": call.dropout, "is_causal": call.causal, "enable_gqa": call.grouped}
    number = torch._fused_sdp_choice(*tensors, attn_mask=mask, **options)
    name = next((name for name in SDPBackend.__members__ if int(getattr(SDPBackend, name)) == number), str(number))
    return CHOICES.get(name, name.lower())


def _refused_on_gpu(tensors: list[torch.Tensor], mask: torch.Tensor | None, call: Call) -> Iterator[tuple[str, str]]:
    parameters = cuda.SDPAParams(*tensors, mask, call.dropout, call.causal, call.grouped)
    for name, check in CHECKS.items():
        usable, reason = _said(lambda check=check: getattr(cuda, check)(parameters, True))
        if not usable:
            yield name, reason


def _refused_on_cpu(tensors: list[torch.Tensor], mask: torch.Tensor | None, call: Call) -> str:
    def choose() -> None:
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):  # torch gives reasons when it has no other choice
            _chosen(tensors, mask, call)

    return _said(choose)[1]


def _said(ask: Callable[[], Any]) -> tuple[Any, str]:
    """Return the value of `ask()`, and its warnings as one line."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            answer = ask()
        except RuntimeError:  # there was no kernel left to choose
            answer = None
    lines = [re.sub(r"\s*\(Triggered internally at .*", "", str(warning.message), flags=re.S) for warning in caught]
    lines = [line for line in lines if not re.search(r"not used because:?\s*$", line)]
    return answer, " ".join(" ".join(lines).split()) or NO_REASON
