"""The command-line flags that several commands have."""

from __future__ import annotations

import argparse

from execution import submission
from plan import sweep

REQUIREMENTS = "packages that a user's own model needs beside its framework: an environment of its own"


def add_all(command: argparse.ArgumentParser) -> None:
    """The flags of `bench`."""
    add_axes(command)
    add_profile(command)
    add_cluster(command)


def add_axes(command: argparse.ArgumentParser) -> None:
    """Flags for every axis of a sweep and every parameter of a workload, which come from where those are defined."""
    for axis in sweep.AXES.values():
        default = f" (default: {axis.default})" if axis.default else ""
        command.add_argument(f"--{axis.flag}", metavar="A,B", help=axis.help + default)
    for flag, text in sweep.parameter_flags().items():
        command.add_argument(f"--{flag}", metavar="A,B", help=text)
    command.add_argument(
        "--policy",
        metavar="NAME=CHOICE",
        help="settings as users have them: users, or frameworks/policies.py's choices",
    )
    command.add_argument("--sweep", metavar="FILE", help="a TOML file with any of these flags; flags given here win")
    command.add_argument("--preset", metavar="NAME", help="a sweep file of the suite's own; `list` has their names")
    command.add_argument(
        "--filter", metavar="TEXT", help="only cells whose name contains TEXT or matches it as a wildcard"
    )
    command.add_argument("--force", action="store_true", default=None, help="measure even where the canary fails")
    command.add_argument(
        "--weights", metavar="FOLDER|HUB-NAME", help="a safetensors checkpoint instead of seeded weights"
    )
    command.add_argument("--timeout", type=float, default=900, help="seconds a worker may be silent (default: 900)")
    command.add_argument("--python", help="measure this interpreter's packages instead of a locked environment")
    command.add_argument("--dry-run", action="store_true", help="print the plan, check it as the run does, and end")
    command.add_argument(
        "--out", metavar="FOLDER", help="where the run's files go (default: a new folder in results/runs)"
    )


def add_profile(command: argparse.ArgumentParser) -> None:
    """Flags for how long and in what order is measured."""
    command.add_argument("--profile", help="quick (default), standard or rigorous")
    command.add_argument("--budget", metavar="SECONDS", help="seconds of sampling per cell, instead of the profile's")
    command.add_argument("--seed", help="seed of weights, inputs and the order of measuring (default: 0)")
    command.add_argument("--compile-cache", help="cold (default): private and empty per run; warm: a second start")
    command.add_argument("--unseen-seq", metavar="N", help="also time the first call at sequence length N once warm")
    command.add_argument("--isolate", action="store_true", default=None, help="every shape in processes of its own")
    command.add_argument("--resume", metavar="RUN", nargs="?", const="newest", help="resume a run (default: newest)")


def add_cluster(command: argparse.ArgumentParser) -> None:
    """Flags for measuring on the nodes of a Slurm job, and for submitting one."""
    command.add_argument("--launcher", help="local (default), or slurm: on the nodes of this job, or of one submitted")
    for name, what in submission.OPTIONS.items():
        command.add_argument(f"--{name}", help=f"of the job to be submitted: {what}")
    command.add_argument("--nodes", type=int, help="of the job to be submitted: how many nodes (default: 1)")
    command.add_argument("--lines", metavar="FILE", help="further lines of the job's script: #SBATCH options, modules")
    command.add_argument("--scratch", metavar="FOLDER", help="run from a copy of the environment on each node's disk")
    command.add_argument("--container", metavar="TOOL:IMAGE", help="run workers in it: apptainer:FILE or pyxis:IMAGE")
