"""Changes at run time that a pickle lacks: it holds classes and functions of importable modules by their names."""

from __future__ import annotations

import ast
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

HOME = Path(__file__).resolve().parent.parent  # where `eager_vs_graph` is imported from
LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))


Name = tuple[str, str]  # of a module, and of a setting, function or method in it


def state(model: Any) -> dict[Name, str]:
    """Return the caller's settings and functions that may decide what a model computes.

    These are constants and functions of the caller's own modules, and methods that the caller's files define, of the
    model's classes.
    """
    found: dict[Name, str] = {}
    for module in filter(_is_own, list(sys.modules.values())):
        settings = _constants(module)
        for name, value in vars(module).items():
            if isinstance(value, FunctionType) or name in settings:
                found[module.__name__, name] = _shown(value)
    for kind in _classes(model):
        for name, value in vars(kind).items():
            if isinstance(value, FunctionType) and not _of_library(Path(value.__code__.co_filename)):
                found[kind.__module__, f"{kind.__qualname__}.{name}"] = _shown(value)
    return found


def refuse(before: dict[Name, str]) -> None:
    """Raise RuntimeError if this process's modules differ from the caller's `state`."""
    now = {name: _found(*name) for name in before}
    changed = sorted(name for name, value in before.items() if now[name] not in (None, value))
    if changed:
        first, rest = changed[0], len(changed) - 1
        differ = f" and {rest} more differ" if rest else " differs"
        values = f"({before[first][:80]} in the caller, {str(now[first])[:80]} there)"
        raise RuntimeError(
            f"{'.'.join(first)}{differ} in another process {values}: a pickle holds importable modules by name, "
            "without changes at run time. Write a file with model() and inputs() that makes the changes, and run "
            "eager-vs-graph on it."
        )


def _found(module: str, path: str) -> str | None:
    """Return the value of a name in this process, as `state` shows it; None if it is not there."""
    value: Any = sys.modules.get(module)
    for part in path.split("."):
        value = getattr(value, "__dict__", {}).get(part)
    return None if value is None else _shown(value)


def _is_own(module: ModuleType) -> bool:
    """Return whether a module is a file of the caller's, not of a library or of this suite."""
    file = getattr(module, "__file__", None)
    if not file or not file.endswith(".py") or module.__name__ in ("__main__", "__mp_main__"):
        return False
    return not _of_library(Path(file)) and not Path(file).resolve().is_relative_to(HOME)


def _of_library(path: Path) -> bool:
    """Return whether a file belongs to an installed package or to Python itself, or is no file."""
    installed = any("-packages" in part for part in path.parts) or str(path).startswith(LIBRARIES)
    return installed or str(path).startswith("<")


def _constants(module: ModuleType) -> set[str]:
    """Return the public names that a module's file sets to constants, outside of functions and classes."""
    try:
        body = ast.parse(Path(module.__file__ or "").read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return set()
    return {
        target.id
        for statement in body
        if isinstance(statement, ast.Assign | ast.AnnAssign) and _is_constant(statement.value)
        for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
        if isinstance(target, ast.Name) and not target.id.startswith("_")
    }


def _is_constant(value: ast.expr | None) -> bool:
    try:
        ast.literal_eval(value or "")
    except (ValueError, TypeError):
        return False
    return value is not None


def _classes(model: Any) -> Iterator[type]:
    """Yield the classes of a model and of its layers, each once, that have a module of their own."""
    named = {"named_modules": "modules", "sublayers": "sublayers", "_flatten_layers": "_flatten_layers"}
    layers = next((getattr(model, method)() for sign, method in named.items() if hasattr(model, sign)), ())
    kinds = dict.fromkeys(kind for layer in (model, *layers) for kind in type(layer).__mro__)
    return (kind for kind in kinds if kind.__module__ not in ("builtins", "__main__"))


def _shown(value: Any) -> str:
    """Return a setting's value, or where a function is defined."""
    if not isinstance(value, FunctionType):
        return repr(value)
    code = value.__code__
    return f"{code.co_qualname} of {Path(code.co_filename).name}, line {code.co_firstlineno}"
