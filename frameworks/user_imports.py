"""Imports of a user's file: its own folder comes first, and the suite's packages shadow none of its modules.

`python -m worker` puts the suite's folder on the path, and its packages (`measurement`, `workloads`, …) are loaded
before the user's file. A user's module of one of these names takes the name for the rest of the process. The suite's
own imports still find the suite's package.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import sys
from collections.abc import Iterator, Mapping
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(__file__).resolve().parents[1]
SUITE = (*sorted(init.parent.name for init in FOLDER.glob("*/__init__.py")), "runner")


def put_first(folder: str) -> None:
    """Make `folder` the first place to import from; its modules take precedence over the suite's of the same name."""
    if Path(folder).resolve() == FOLDER:  # a file in the suite's own folder has the suite's packages
        return
    sys.path[:] = [folder, *(entry for entry in sys.path if entry != folder)]
    elsewhere = [entry for entry in sys.path if Path(entry).resolve() != FOLDER]
    if shadowed := frozenset(name for name in SUITE if PathFinder.find_spec(name, elsewhere)):
        _GivenWay(shadowed).install(elsewhere)


def finding_suite() -> contextlib.AbstractContextManager[None]:
    """Enter a block in which the suite's packages are found by their names, as pickle looks for classes."""
    found = getattr(builtins.__import__, "__self__", None)
    return found.given_back("frameworks", globals()) if isinstance(found, _GivenWay) else contextlib.nullcontext()


class _GivenWay:
    """The suite's packages called `names`, which only the suite's own modules find."""

    def __init__(self, names: frozenset[str]):
        self._names, self._statement, self._by_name = names, builtins.__import__, importlib.import_module
        self._hidden: dict[str, ModuleType] = {}
        self._inside = False  # an import of the suite is running

    def install(self, path: list[str]) -> None:
        """Hide the packages, and import from `path` only."""
        self._hidden = self._take()
        sys.path[:] = path
        builtins.__import__ = self._find
        importlib.import_module = self._find_by_name

    def _find(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Any = (),
        level: int = 0,
    ) -> ModuleType:
        """Import a module as an import statement does."""
        with self.given_back(name, globals):
            return self._statement(name, globals, locals, fromlist, level)

    def _find_by_name(self, name: str, package: str | None = None) -> ModuleType:
        """Import a module as `importlib.import_module` does."""
        with self.given_back(name, sys._getframe(1).f_globals):
            return self._by_name(name, package)

    @contextlib.contextmanager
    def given_back(self, name: str, importer: Mapping[str, Any] | None) -> Iterator[None]:
        """Make the suite's packages importable in the block if one of its modules imports a hidden one."""
        if self._inside or name.partition(".")[0] not in self._names or not _is_suite(importer):
            yield
            return
        theirs, path = self._take(), sys.path[:]
        sys.modules.update(self._hidden)
        sys.path[:], self._inside = [str(FOLDER), *path], True
        try:
            yield
        finally:
            self._hidden, self._inside = self._take(), False
            sys.path[:] = path
            sys.modules.update(theirs)

    def _take(self) -> dict[str, ModuleType]:
        """Remove the loaded modules of these names, and return them."""
        found = [name for name in sys.modules if name.partition(".")[0] in self._names]
        return {name: sys.modules.pop(name) for name in found}


def _is_suite(globals: Mapping[str, Any] | None) -> bool:
    """Return whether an import statement with these globals is in a module of the suite."""
    file = (globals or {}).get("__file__")
    return isinstance(file, str) and any(Path(file).is_relative_to(FOLDER / name) for name in SUITE)
