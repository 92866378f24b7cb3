"""Settings in which the suite might differ from its users: the users' choice, the alternatives, and the suite's.

One table. `bench --policy torch-openmp-idle=sleep` makes another choice for a run, `--policy users` the users' of every
policy; `studies/ablations.py` at b6bb94c measures all. To change the suite's choice, change `suite`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

USERS = "users"  # in place of a policy's name: the users' choice of every policy


@dataclass(frozen=True)
class Choice:
    """One choice: variables of a worker's environment, or exactly as many CPUs as threads."""

    variables: Mapping[str, str] = field(default_factory=dict)
    pinned: bool = False


@dataclass(frozen=True)
class Policy:
    """One setting of one framework. `choices` has the users' default first; `suite` names the choice that is taken."""

    name: str
    framework: str
    choices: Mapping[str, Choice]
    suite: str
    reason: str
    devices: tuple[str, ...] = ("cpu",)
    of_new_shapes: str = ""  # why the users' choice makes first calls of shapes slow, in 16 bits

    @property
    def users(self) -> str:
        """The setting of users who set nothing."""
        return next(iter(self.choices))

    @property
    def others(self) -> list[str]:
        """The choices other than the users'."""
        return [choice for choice in self.choices if choice != self.users]


DEFAULT, PINNED = Choice(), Choice(pinned=True)
SLEEP = Choice({"OMP_WAIT_POLICY": "PASSIVE", "KMP_BLOCKTIME": "0"})

POLICIES = (
    Policy(
        name="torch-openmp-idle",
        framework="torch",
        choices={"spin": DEFAULT, "sleep": SLEEP},
        suite="spin",
        reason="All modes share the same OpenMP threads, so a spinning thread takes no core from another mode. With "
        "sleeping threads, bert-tiny at two threads is 3.3 times (eager) and 5.4 times (inductor) slower.",
        devices=("cpu", "gpu"),
    ),
    Policy(
        name="torch-cudnn-attention",
        framework="torch",
        choices={"preferred": DEFAULT, "last": Choice({"TORCH_CUDNN_SDPA_DEPRIORITIZED": "1"})},
        suite="preferred",
        reason="torch's default on H100 and H200. cuDNN plans attention for each shape: 74 new lengths cost BERT-base "
        "3.6 s of a stream on an H200. With `last` they cost 0.15 s on another, where replayed calls took 1.24 times "
        "as long.",
        devices=("gpu",),
        of_new_shapes="On an H100 or H200 cuDNN's attention plans each shape",
    ),
    Policy(
        name="paddle-openmp-idle",
        framework="paddle",
        choices={"spin": DEFAULT, "sleep": SLEEP, "spin-briefly": Choice({"KMP_BLOCKTIME": "20"})},
        suite="spin-briefly",
        reason="By default OpenMP threads spin for 200 ms after their last work, which is longer than the next "
        "mode's sample. With 20 ms the interval of eager mode is three to five times narrower, and to_static is not "
        "shown to change. Without spinning, bert-tiny at two threads is 5 (eager) and 2.7 times (to_static) slower.",
        devices=("cpu", "gpu"),
    ),
    Policy(
        name="paddle-executor",
        framework="paddle",
        choices={"parallel": DEFAULT, "serial": Choice({"FLAGS_new_executor_serial_run": "1"})},
        suite="parallel",
        reason="Paddle's default. With several threads (OMP_NUM_THREADS), the executor's threads multiply with "
        "OpenMP's: to_static of BERT-base takes 2.2 (two threads) and 2.3 times (four) as long as with the serial "
        "executor.",
    ),
    Policy(
        name="paddle-cpus",
        framework="paddle",
        choices={"any": DEFAULT, "pinned": PINNED},
        suite="pinned",
        reason="Pinning gives N threads exactly N CPUs. Unpinned, to_static of bert-tiny keeps 1.25 cores busy at "
        "one thread, and its speedup over eager mode is 1.10 instead of 0.76.",
        devices=("cpu", "gpu"),
    ),
    Policy(
        name="paddle-multiply",
        framework="paddle",
        choices={"operator": DEFAULT, "scale": Choice({"SUITE_PADDLE_MULTIPLY": "scale"})},
        suite="operator",
        reason="Users write `x * factor`. It broadcasts the factor and takes 1.27 times as long as `paddle.scale`.",
        devices=("cpu", "gpu"),
    ),
    Policy(
        name="paddle-stride",
        framework="paddle",
        choices={"on": DEFAULT, "off": Choice({"FLAGS_use_stride_kernel": "0"})},
        suite="on",
        reason="Eager mode's transposes are views that the next operator copies. With strides off, bert-tiny is 3 % "
        "faster at one thread; at two threads the effect is inconclusive.",
    ),
    Policy(
        name="jax-cpus",
        framework="jax",
        choices={"any": DEFAULT, "pinned": PINNED},
        suite="pinned",
        reason="Pinning gives N threads exactly N CPUs, because no setting limits XLA's dispatch threads. Unpinned, "
        "jit takes 1.29 times as long on bert-tiny at one thread.",
        devices=("cpu", "gpu"),
    ),
    Policy(
        name="tensorflow-inter-op",
        framework="tensorflow",
        choices={"default": DEFAULT, "one": Choice({"TF_NUM_INTEROP_THREADS": "1"})},
        suite="one",
        reason="One thread walks the graph, and the intra-op pool works inside its nodes. With the default of one "
        "thread per core, independent nodes run concurrently and exceed the requested threads; bert-tiny's function "
        "then takes 0.92 times as long at two threads.",
    ),
)  # fmt: skip


def parse(words: str | None) -> dict[str, str]:
    """Return choices by policy from `name=choice,...`, where `users` stands for every policy. Raises ValueError."""
    chosen: dict[str, str] = {}
    known = {policy.name: policy for policy in POLICIES}
    for word in filter(None, (part.strip() for part in (words or "").split(","))):
        name, _, choice = word.partition("=")
        if word == USERS:
            chosen |= {policy.name: policy.users for policy in POLICIES}
        elif name not in known:
            raise ValueError(f"There is no policy {name!r}; choose {USERS} or one of {', '.join(known)}.")
        elif choice not in known[name].choices:
            raise ValueError(f"POLICY {name} must be {' or '.join(known[name].choices)}, not {choice!r}.")
        else:
            chosen[name] = choice
    return chosen


def resolve(framework: str, device_kind: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the choice of each policy that a worker of this framework follows; `given` overrides the suite's."""
    return {policy.name: given.get(policy.name, policy.suite) for policy in _of(framework, device_kind)}


def differing(framework: str, device_kind: str, given: Mapping[str, str]) -> str:
    """Return the choices that differ from the suite's, as `name=choice,...`; empty without any."""
    taken, usual = (resolve(framework, device_kind, choices) for choices in (given, {}))
    return ",".join(f"{name}={choice}" for name, choice in taken.items() if choice != usual[name])


def of_new_shapes(framework: str, device_kind: str, dtype: str) -> list[Policy]:
    """Return the policies whose default makes first calls of shapes slow."""
    return [one for one in _of(framework, device_kind) if one.of_new_shapes and dtype in ("bf16", "fp16")]


def variables(framework: str, device_kind: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that those choices add to a worker's environment."""
    return {key: value for choice in _chosen(framework, device_kind, given) for key, value in choice.variables.items()}


def pinned(framework: str, device_kind: str, given: Mapping[str, str]) -> bool:
    """Return whether those choices give a worker exactly as many CPUs as threads."""
    return any(choice.pinned for choice in _chosen(framework, device_kind, given))


def _of(framework: str, device_kind: str) -> list[Policy]:
    return [policy for policy in POLICIES if policy.framework == framework and device_kind in policy.devices]


def _chosen(framework: str, device_kind: str, given: Mapping[str, str]) -> list[Choice]:
    known = {policy.name: policy for policy in POLICIES}
    return [known[name].choices[choice] for name, choice in resolve(framework, device_kind, given).items()]
