"""What was installed is known afterwards: in each record, whole beside the run, and in the report."""

from __future__ import annotations

import json

import pytest
from doubles.reported import small_set

import frameworks
from analysis.points import Points
from commands import bench
from execution import campaign
from measurement.cells import Effective
from measurement.profiles import PROFILES
from measurement.protocol import Hello
from records import assemble, recordfile
from records.cell_result import CellResult, Context
from reports import sections
from reports.report_data import ReportData


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Packages that an environment might hold, on the path."""
    for folder, name in (("nvidia_cudnn_cu13", "nvidia_cudnn.cu13"), ("left_pad", "left-pad")):
        metadata = tmp_path / f"{folder}-9.1.dist-info" / "METADATA"
        metadata.parent.mkdir()
        metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.1\n")
    monkeypatch.syspath_prepend(tmp_path)


def test_a_package_that_decides_is_recorded_though_no_framework_names_it(packages):
    assert frameworks.versions("torch")["nvidia-cudnn-cu13"] == "9.1"
    assert "left-pad" not in frameworks.versions("torch")
    assert frameworks.installed()["left-pad"] == "9.1"
    assert frameworks.versions("torch")["numpy"] == frameworks.installed()["numpy"]


SWITCHES = """
TF_XLA_FLAGS TF_CPP_MIN_LOG_LEVEL TF_ENABLE_ONEDNN_OPTS TF_DATA_EXPERIMENT_OPT_IN XLA_FLAGS
JAX_PLATFORMS FLAGS_use_mkldnn TORCHINDUCTOR_FREEZING PYTORCH_CUDA_ALLOC_CONF CUDA_VISIBLE_DEVICES
MALLOC_ARENA_MAX LD_PRELOAD
"""
TERRAFORM_S = """
TF_CLI_CONFIG_FILE TF_CLI_ARGS_plan TF_VAR_password TF_LOG TF_LOG_PATH TF_INPUT TF_DATA_DIR TF_WORKSPACE
TF_IN_AUTOMATION TF_REGISTRY_CLIENT_TIMEOUT TF_PLUGIN_CACHE_DIR TF_IGNORE TF_TOKEN_app_example_org
TF_STATE_PERSIST_INTERVAL TF_CLOUD_ORGANIZATION TF_REATTACH_PROVIDERS
"""


@pytest.mark.parametrize("name", SWITCHES.split())
def test_variables_by_which_users_set_frameworks_stand_beside_the_results(name):
    assert campaign.is_noted(name)


@pytest.mark.parametrize("name", [*TERRAFORM_S.split(), "PATH", "MY_TF_FLAGS"])
def test_variables_of_other_programs_do_not(name):
    """Terraform's begin like TensorFlow's, and one holds a password."""
    assert not campaign.is_noted(name)


DECIDING = "transformers flax optax tf-keras keras triton numpy paddlenlp safetensors pytorch-triton torchao"


@pytest.mark.parametrize("name", [*DECIDING.split(), "nvidia-cublas-cu12", "jax-cuda13-plugin"])
def test_what_decides(name):
    assert frameworks.DECIDING.fullmatch(name)


def test_a_record_has_the_versions_and_the_libraries_as_told(cell):
    hello = Hello({"torch": "9.9"}, Effective(libraries={"cuDNN": "91900"}))
    context = Context("run", "", "", None, PROFILES["quick"], "cold", {"torch": ("torch",)})
    row = assemble._identity(CellResult(cell(), hello=hello), "seed:0", context)
    assert json.loads(row["versions"]) == {"torch": "9.9", "cuDNN": "91900"}


@pytest.mark.slow
def test_a_run_keeps_every_package_of_each_environment(run):
    finished = run("--framework", "fake", "--mode", "eager")
    kept = json.loads((finished.folder / "versions.json").read_text())
    assert kept["fake-cpu"]["pytest"] == frameworks.installed()["pytest"]
    assert json.loads(finished.record("eager")["versions"])["numpy"] == kept["fake-cpu"]["numpy"]


def test_the_report_names_the_packages():
    rows = small_set()
    rows[0] |= {"versions": json.dumps({"transformers": "5.17.0", "cuDNN": "91900"})}
    data = ReportData(Points(rows), (), {}, ())
    (section,) = [section for section in sections.build(data) if section.key == "machines"]
    (panel,) = [panel for panel in section.panels if panel.title == "Packages"]
    assert [row.cells[-1] for row in panel.table.rows] == ["transformers 5.17.0, cuDNN 91900"]


def test_a_published_run_from_changed_files_is_warned_of(tmp_path):
    published = recordfile.RESULTS / "h200" / "new"
    assert "tracked files are changed" in bench.unfit_to_publish(published, "0123456789+")
    assert "the revision is unknown" in bench.unfit_to_publish(published, None)
    assert bench.unfit_to_publish(published, "0123456789") is None
    assert bench.unfit_to_publish(recordfile.RESULTS / "runs" / "today", "0123456789+") is None
    assert bench.unfit_to_publish(tmp_path, "0123456789+") is None
