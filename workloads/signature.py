"""Read a user model's file without running it: the parameters of its `inputs`, its framework, its settings."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import io
import re
import tokenize
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from measurement import files

LARGEST_FILE = 1 << 20  # bytes; larger files are not written by hand
# Values of parameters without default.
DEFAULTS = {"batch_size": 1, "seq_len": 128}
FLAGS = {"batch_size": "batch", "seq_len": "seq", "image_size": "image"}
# Modules that identify a file's framework, the framework's own first.
MODULES = {
    "torch": ("torch", "torchvision", "timm"),
    "paddle": ("paddle", "paddlenlp"),
    "tensorflow": ("tensorflow", "keras", "tf_keras"),
    "jax": ("jax", "flax", "equinox", "haiku"),
}
# Libraries of models: the framework, and the parameters of the inputs that the suite makes for their models.
LIBRARIES = {
    "torchvision": ("torch", (("batch_size", 1), ("image_size", 224))),
    "timm": ("torch", (("batch_size", 1), ("image_size", 224))),
    "transformers": ("torch", (("batch_size", 1), ("seq_len", 128))),
    "keras": ("tensorflow", (("batch_size", 1), ("image_size", 224))),
}
FUNCTIONS = ("model", "inputs")  # in every file
# A file with one of these may bind names that are not in its text.
_UNKNOWN = frozenset(["*", "exec", "eval", "globals", "locals", "vars", "setattr", "__getattr__"])
_WORD = re.compile(r"[\w.+-]+")
Settings = dict[str, Any]  # of a file: `framework` is a word, `tolerance` a number or numbers by dtype


class Unreadable(ValueError):
    """An error in a user's file or name, in one sentence."""


@dataclass(frozen=True)
class Signature:
    """`parameters` are those of `inputs`, with defaults; `frameworks` those whose modules the file imports.

    `trains` is true if there is a `loss`, `missing` names the functions that the file surely lacks.
    """

    parameters: tuple[tuple[str, int | str], ...] = (("batch_size", 1),)
    frameworks: tuple[str, ...] = ()
    settings: Settings = field(default_factory=dict)
    digest: str = ""
    trains: bool = False
    missing: tuple[str, ...] = ()


def flag_of(parameter: str) -> str:
    """Return the flag under which a parameter of `inputs` is swept."""
    return FLAGS.get(parameter, parameter.replace("_", "-"))


def read(path: str | Path) -> Signature:
    """Return the signature of a user's file. Raises Unreadable."""
    name = Path(path).name
    try:
        content = files.content(path, LARGEST_FILE)
        content.decode(_encoding(content))  # the parser ignores comments; an import does not
        tree = ast.parse(content)
    except OSError as error:
        raise Unreadable(f"The file {path} cannot be read: {error.strerror}.") from None
    except files.Unfit as problem:
        raise Unreadable(f"{name} is not a model file: {problem}.") from None
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise Unreadable(f"{name} is not in {error.encoding.upper()}, line {line}: save it as UTF-8.") from None
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        where = f", line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise Unreadable(
            f"{name} is not valid Python{where}: "
            f"{getattr(error, 'msg', None) or str(error) or 'it is nested too deeply'}."
        ) from None
    names = _bound(tree)
    return Signature(
        parameters=_parameters(tree, name),
        frameworks=_frameworks(tree),
        settings=_settings(tree, name),
        digest=hashlib.sha256(content).hexdigest()[:16],
        trains="loss" in names,
        missing=() if names & _UNKNOWN else tuple(function for function in FUNCTIONS if function not in names),
    )


def _encoding(content: bytes) -> str:
    """Return the encoding that the file declares; UTF-8 if it declares none that Python has."""
    with contextlib.suppress(SyntaxError):
        return tokenize.detect_encoding(io.BytesIO(content).readline)[0]
    return "utf-8"


def _parameters(tree: ast.Module, name: str) -> tuple[tuple[str, int | str], ...]:
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "inputs"]
    if not functions:  # bound in another way, or missing: the worker reports it
        return ()
    arguments = functions[-1].args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    pairs = [*zip(positional, defaults, strict=True), *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    flags: dict[str, str] = {}
    for argument, _ in pairs:
        other = flags.setdefault(flag_of(argument.arg), argument.arg)
        if other != argument.arg:
            raise Unreadable(f"{name}: inputs' parameters {other} and {argument.arg} set the same option: rename one.")
    return tuple((argument.arg, _default(argument.arg, node, name)) for argument, node in pairs)


def _default(parameter: str, node: ast.expr | None, name: str) -> int | str:
    if node is None:
        if parameter not in DEFAULTS:
            raise Unreadable(f"{name}: inputs' parameter {parameter} needs a default, such as {parameter}=64.")
        return DEFAULTS[parameter]
    value = node.value if isinstance(node, ast.Constant) else None
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _WORD.fullmatch(value):
        return value
    raise Unreadable(f"{name}: the default of inputs' {parameter} must be a whole number or a word.")


def _frameworks(tree: ast.Module) -> tuple[str, ...]:
    roots = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            roots |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            roots.add(node.module.split(".")[0])
    return tuple(name for name, modules in MODULES.items() if roots & set(modules))


def _bound(tree: ast.Module) -> set[str]:
    """Return the names bound outside functions and classes, and the names of `_UNKNOWN` that the file contains.

    A name that a function declares `global` counts as well.
    """
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in _UNKNOWN}
    names |= {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        pending += ast.iter_child_nodes(node)
    return names


def _settings(tree: ast.Module, name: str) -> Settings:
    """Read `settings = {...}` of literals: `framework`, and `tolerance` by dtype or for all."""
    for node in reversed(tree.body):
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "settings" for target in node.targets
        ):
            try:
                value = ast.literal_eval(node.value)
            except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
                value = None
            if not isinstance(value, dict) or value.keys() - {"framework", "tolerance"}:
                raise Unreadable(f'{name}: settings must be a dict of literals with "framework" or "tolerance" in it.')
            _check(value, name)
            return value
    return {}


def _check(settings: Settings, name: str) -> None:
    if settings.get("framework", "torch") not in tuple(MODULES):
        raise Unreadable(f"{name}: settings' framework must be one of {', '.join(MODULES)}.")
    given = settings.get("tolerance", {})
    for value in given.values() if isinstance(given, dict) else [given]:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
            raise Unreadable(f"{name}: a tolerance must be a number from 0 to 1, relative to the output's scale.")


def flags(word: str) -> list[str]:
    """Return the flags of a user model's parameters; none for any other word."""
    try:
        parameters = (
            read(word).parameters if word.endswith(".py") else LIBRARIES.get(word.partition(":")[0], ("", ()))[1]
        )
    except Unreadable:
        return []
    return [flag_of(parameter) for parameter, _ in parameters]
