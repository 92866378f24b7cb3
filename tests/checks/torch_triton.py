"""What torch's Inductor modes say on a GPU where Triton is missing, or is installed and does not load.

python tests/checks/torch_triton.py
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from unittest import mock

import torch
from prepared import arguments, run_checks

from frameworks.torch.modes import graphs

GPU = torch.device("cuda")  # none is needed to be told what is missing


def told() -> str:
    """What the mode lacks where torch finds no Triton."""
    with mock.patch.object(graphs, "internal", lambda *_: lambda: False):
        return graphs.missing_toolchain("inductor", GPU)


def check_a_triton_that_is_missing_is_to_be_installed(device: str) -> str:
    with mock.patch.dict(sys.modules), mock.patch.object(graphs.importlib.util, "find_spec", lambda name: None):
        assert told().endswith("install the `triton` package."), told()
    return "missing: to be installed"


def check_a_triton_that_does_not_load_says_why(device: str) -> str:
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(sys.modules):
        sys.modules.pop("triton", None)
        package = Path(folder, "triton")
        package.mkdir()
        (package / "__init__.py").write_text("import triton.backends_that_are_gone\n")
        with mock.patch.object(sys, "path", [folder, *sys.path]):
            sentence = told()
    assert "does not load (No module named 'triton.backends_that_are_gone')" in sentence, sentence
    return sentence


if __name__ == "__main__":
    run_checks(globals(), arguments(__doc__).parse_args().device)
