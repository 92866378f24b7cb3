"""Contents of XLA's fusions: its kernels are called `fusion.3`, and only the compiled module names their operations."""

from __future__ import annotations

import re
from pathlib import Path

# Environment that makes XLA write whole models' modules, not single operators', as text into a folder.
DUMPS = {"XLA_FLAGS": "--xla_dump_to={folder} --xla_dump_hlo_as_text --xla_dump_hlo_module_re=whole_model|inference"}

# `  %fusion.3 = f32[64,256]{1,0} fusion(%a, %b), kind=kLoop, calls=%computation.3`, and the head of a computation.
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = .*?[\])}] ([a-z][\w\-]*)\(")
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) \(.*\{$")
_CALLED = re.compile(r"(?:calls|to_apply)=%?([\w.\-]+)")
_TARGET = re.compile(r'custom_call_target="([^"]+)"')
# A product with batch dimensions, in XLA's own words and in those of a call to a library.
_BATCHED = re.compile(r'lhs_batch_dim(?:s=\{\d|ensions":\["?\d)')
_MODULE = re.compile(r"^HloModule ([\w.\-]+)")
# They name values and compute nothing.
_SILENT = {"parameter", "constant", "get-tuple-element", "tuple", "bitcast", "iota"}


def read(folder: Path) -> dict[str, dict[str, str]]:
    """Return module -> instruction -> the operations inside it, for every compiled module in `folder`."""
    return dict(parse(path.read_text(errors="replace")) for path in folder.glob("*after_optimizations.txt"))


def parse(text: str) -> tuple[str, dict[str, str]]:
    """Return the module's name, and for every instruction its operations in order, including those of called functions.

    A matrix product with batch dimensions, such as attention's scores, is `batched-dot`.
    """
    module = _MODULE.match(text)
    bodies: dict[str, list[tuple[str, str, list[str]]]] = {}
    body: list[tuple[str, str, list[str]]] = []
    for line in text.splitlines():
        if computation := _COMPUTATION.match(line):
            body = bodies.setdefault(computation[1], [])
        elif instruction := _INSTRUCTION.match(line):
            name, operation = instruction.groups()
            target = _TARGET.search(line)
            kind = ("batched-" if _BATCHED.search(line) else "") + (target[1] if target else operation)
            body.append((name, kind, _CALLED.findall(line)))

    def inside(operation: str, called: list[str]) -> list[str]:
        parts = [part for name in called for _, o, further in bodies.get(name, []) for part in inside(o, further)]
        first = [] if operation in ("fusion", "call") and parts else [operation]
        return list(dict.fromkeys(part for part in first + parts if part not in _SILENT))

    members = [member for body in bodies.values() for member in body]
    return module[1] if module else "", {name: ",".join(inside(o, called)) for name, o, called in members}


def described(kernel: str, module: str, instruction: str, modules: dict[str, dict[str, str]]) -> str:
    """Return a kernel's name with its operations, `fusion{dot,add}`, without its number.

    A module of one operator, as JAX compiles in eager mode, has the operator's name: `jit_matmul/fusion`.
    """
    name = re.sub(r"(?:[._]\d+)+$", "", kernel)
    if module not in modules:
        return f"{module}/{name}" if module else name
    operations = modules[module].get(instruction)
    return f"{name}{{{operations}}}" if operations else name
