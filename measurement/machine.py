"""Facts about this machine, read without any package: processor, memory, kernel, GPUs, and how busy it is."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
from functools import cache
from pathlib import Path


def usable_cpus() -> int:
    """How many CPUs this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _cpu_field(name: str) -> str | None:
    for line in _read("/proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


def memory_bytes() -> int | None:
    """Physical memory."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None


@cache
def gpus() -> tuple[dict[str, str], ...]:
    """The NVIDIA GPUs that `nvidia-smi` lists, with memory, compute capability and driver; empty where none is."""
    if not shutil.which("nvidia-smi"):
        return ()
    fields = ("index", "name", "memory.total", "compute_cap", "driver_version", "uuid")
    command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader"]
    try:
        output = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ()
    rows = (line.split(", ") for line in output.splitlines())
    return tuple(dict(zip(fields, row, strict=True)) for row in rows if len(row) == len(fields))


def cpu_name() -> str:
    """The processor's model name."""
    return _cpu_field("model name") or platform.processor() or platform.machine()


def facts() -> dict:
    """What goes into a run's folder as the machine's description."""
    flags = (_cpu_field("flags") or "").split()
    vector = [f for f in flags if f in ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_tile")]
    described = {
        "cpu": cpu_name(),
        "cpus_usable": usable_cpus(),
        "cpus": os.cpu_count(),
        "vector_extensions": vector,
        "virtualised": "hypervisor" in flags,
        "memory_bytes": memory_bytes(),
        "kernel": platform.release(),
        "system": platform.platform(),
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").strip() or None,
        "gpus": [dict(gpu) for gpu in gpus()],
    }
    return {"machine_id": machine_id(described), **described}


def machine_id(described: dict) -> str:
    """A short name that is the same for the same hardware and says nothing of its owner."""
    hardware = [described["cpu"], described["cpus"], described["memory_bytes"]]
    hardware += [gpu["uuid"] for gpu in described["gpus"]]
    return hashlib.sha256(repr(hardware).encode()).hexdigest()[:12]


def cpu_megahertz() -> float | None:
    """The mean frequency over the CPUs as the kernel reports it now, in MHz; None where it does not."""
    lines = [line for line in _read("/proc/cpuinfo").splitlines() if line.startswith("cpu MHz")]
    values = [float(line.split(":")[1]) for line in lines]
    return sum(values) / len(values) if values else None


def cpu_ticks() -> tuple[float, float] | None:
    """Seconds the machine's CPUs have been (busy, stolen by the hypervisor) since boot; None outside Linux."""
    line = _read("/proc/stat").partition("\n")[0].split()
    if len(line) < 9:
        return None
    user, nice, system, _, _, irq, soft, steal = (int(value) for value in line[1:9])
    tick = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + soft) / tick, steal / tick


def cpu_assignment(threads: int, exactly: bool) -> list[int]:
    """The CPUs a worker may run on: whole NUMA nodes, as few as hold `threads` on cores of their own.

    Only with `exactly` is the set narrowed to `threads` CPUs, the last ones, since system work tends to run on the
    first: elsewhere a framework that ignores its thread setting could not be told from one that keeps it.
    """
    usable = sorted(os.sched_getaffinity(0))
    chosen: list[int] = []
    for node in sorted(Path("/sys/devices/system/node").glob("node[0-9]*"), key=lambda path: int(path.name[4:])):
        members = [cpu for cpu in _cpu_list(_read(f"{node}/cpulist")) if cpu in usable]
        chosen += members
        if len({_first_sibling(cpu) for cpu in chosen}) >= threads:
            return _last_cores(chosen, threads) if exactly else chosen
    return _last_cores(usable, threads) if exactly else usable


def _last_cores(cpus: list[int], count: int) -> list[int]:
    """The last `count` of these CPUs, one a core as long as there are cores."""
    firsts = [cpu for cpu in cpus if _first_sibling(cpu) == cpu]
    rest = [cpu for cpu in cpus if cpu not in firsts]
    return sorted((rest + firsts)[-count:])


def _cpu_list(text: str) -> list[int]:
    cpus: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first:
            cpus += range(int(first), int(last or first) + 1)
    return cpus


def _first_sibling(cpu: int) -> int:
    siblings = _cpu_list(_read(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"))
    return siblings[0] if siblings else cpu
