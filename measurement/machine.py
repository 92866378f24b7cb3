"""Facts about this machine, read without any package: processor, memory, kernel, GPUs, and how busy it is."""

from __future__ import annotations

import hashlib
import itertools
import os
import platform
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from measurement import programs
from measurement.gpu import short


def usable_cpus() -> int:
    """Return how many CPUs this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def _cpu_field(name: str) -> str | None:
    for line in _read("/proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


def memory_bytes() -> int | None:
    """Return the physical memory in bytes; None if the system does not report it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return None


@cache
def gpus() -> tuple[dict[str, str], ...]:
    """Return the GPUs that `nvidia-smi` lists, with memory, compute capability and driver; empty without any."""
    fields = ("index", "name", "memory.total", "compute_cap", "driver_version", "uuid", "pci.bus_id")
    command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader"]
    rows = (line.split(", ") for line in (programs.answer(command) or "").splitlines())
    return tuple(dict(zip(fields, row, strict=True)) for row in rows if len(row) == len(fields))


def gpus_are_shared() -> bool:
    """Return whether several processes may use a GPU at once: its compute mode is the default."""
    modes = programs.answer(["nvidia-smi", "--query-gpu=compute_mode", "--format=csv,noheader"]) or ""
    return set(modes.split()) == {"Default"}


def has_gpu() -> bool:
    """Return whether the driver exposes a GPU, to `nvidia-smi` (not in every container) or as a device file."""
    return bool(gpus()) or any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/dxg").exists()


def visible_gpus() -> tuple[dict[str, str], ...]:
    """Return the `gpus()` that CUDA_VISIBLE_DEVICES allows (all if it is not set), by NUMA node."""
    variable = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = None if variable is None else [name.strip() for name in variable.split(",")]
    prefixes = tuple(name for name in names or () if name.startswith("GPU-"))  # CUDA also accepts prefixes
    seen = [
        gpu
        for gpu in gpus()
        if names is None or gpu["index"] in names or (prefixes and gpu["uuid"].startswith(prefixes))
    ]
    return tuple(sorted(seen, key=_gpu_node))


def _gpu_node(gpu: dict[str, str]) -> int:
    """Return the NUMA node of the GPU; -1 if the kernel does not report it."""
    domain, _, rest = gpu.get("pci.bus_id", "").lower().partition(":")
    text = _read(f"/sys/bus/pci/devices/{domain[-4:]}:{rest}/numa_node").strip()
    return int(text) if text else -1


def cpu_name() -> str:
    """Return the processor's model name."""
    return _cpu_field("model name") or platform.processor() or platform.machine()


def facts() -> dict[str, Any]:
    """Return the machine's description for a run's manifest: processor, memory in bytes, GPUs, system and settings."""
    flags = (_cpu_field("flags") or "").split()
    vector = [f for f in flags if f in ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_tile")]
    described: dict[str, Any] = {
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
    name = machine_id(described)
    for gpu in described["gpus"]:
        gpu["uuid"] = short(gpu["uuid"])
        gpu.pop("pci.bus_id", None)
    return {"machine_id": name, **described}


def machine_id(described: Mapping[str, Any]) -> str:
    """Return a short name that identifies the hardware but not its owner."""
    hardware = [described["cpu"], described["cpus"], described["memory_bytes"]]
    hardware += [gpu["uuid"] for gpu in described["gpus"]]
    return hashlib.sha256(repr(hardware).encode()).hexdigest()[:12]


def kind(described: Mapping[str, Any]) -> str:
    """Return a short name of the hardware in `facts`; machines with the same name are interchangeable.

    They have the same processors, GPUs and driver, and the same memory to two digits: firmware reserves a different
    part of it on each.
    """
    memory = float(f"{described['memory_bytes'] or 0:.2g}")
    gpus = [[gpu[name] for name in ("name", "memory.total", "driver_version")] for gpu in described["gpus"]]
    hardware = [described["cpu"], described["cpus"], memory, sorted(gpus)]
    return hashlib.sha256(repr(hardware).encode()).hexdigest()[:12]


def cpu_megahertz() -> float | None:
    """Return the CPUs' current mean frequency in MHz; None if the kernel does not report it."""
    lines = [line for line in _read("/proc/cpuinfo").splitlines() if line.startswith("cpu MHz")]
    values = [float(line.split(":")[1]) for line in lines]
    return sum(values) / len(values) if values else None


def cpu_ticks(cpus: Collection[int] | None = None) -> tuple[float, float] | None:
    """Return the (busy, stolen by the hypervisor) seconds since boot of all CPUs, or of these.

    None outside Linux.
    """
    names = {"cpu"} if cpus is None else {f"cpu{number}" for number in cpus}
    lines = [line.split() for line in _read("/proc/stat").splitlines()]
    counters = [[int(value) for value in line[1:9]] for line in lines if len(line) >= 9 and line[0] in names]
    if not counters:
        return None
    user, nice, system, _, _, irq, soft, steal = map(sum, zip(*counters, strict=True))
    tick = os.sysconf("SC_CLK_TCK")
    return (user + nice + system + irq + soft) / tick, steal / tick


def _stat(process: int | str) -> list[str]:
    """Return the kernel's fields after the name of a process, or of a thread (`self/task/<id>`); none if it ended."""
    return _read(f"/proc/{process}/stat").rpartition(")")[2].split()


def cpu_seconds(process: int | str, waited: bool = False) -> float:
    """Return its CPU time so far, in seconds, with `waited` also of children that it waited for; 0 if it ended."""
    return sum(map(int, _stat(process)[11 : 15 if waited else 13])) / os.sysconf("SC_CLK_TCK")


def process_name(process: int) -> str:
    """Return the name of a process's program, cut to 15 characters; empty if it ended."""
    return _read(f"/proc/{process}/comm").strip()


def descendants() -> list[int]:
    """Return the living processes that this one started, and those that they started."""
    read = {int(folder.name): _stat(folder.name) for folder in Path("/proc").glob("[0-9]*")}
    found = [os.getpid()]
    for one in found:
        found += [process for process, fields in read.items() if fields and int(fields[1]) == one]
    return sorted(found[1:])


def cpu_assignment(threads: int, exactly: bool) -> list[int]:
    """Return the CPUs a worker may run on: the fewest whole NUMA nodes with a core for each of `threads`.

    `exactly` narrows the set to the last `threads` CPUs, since system work tends to run on the first. Always narrowing
    would hide that a framework ignores its thread setting.
    """
    usable = sorted(os.sched_getaffinity(0))
    chosen: list[int] = []
    for node in sorted(Path("/sys/devices/system/node").glob("node[0-9]*"), key=lambda path: int(path.name[4:])):
        members = [cpu for cpu in _cpu_list(_read(f"{node}/cpulist")) if cpu in usable]
        chosen += members
        if len({first_sibling(cpu) for cpu in chosen}) >= threads:
            return _last_cores(chosen, threads) if exactly else chosen
    return _last_cores(usable, threads) if exactly else usable


def allotted_cpus() -> list[int] | None:
    """Return this process's CPUs if it may not use all of the machine's (taskset, a job); else None."""
    allowed = sorted(os.sched_getaffinity(0))
    return allowed if len(allowed) < (os.cpu_count() or 0) else None


def cpu_shares(count: int) -> list[list[int]]:
    """Return the usable CPUs in `count` shares of about equal size: whole cores, grouped by NUMA node.

    Raises ValueError for fewer cores than shares.
    """
    nodes = {
        cpu: int(node.name[4:])
        for node in Path("/sys/devices/system/node").glob("node[0-9]*")
        for cpu in _cpu_list(_read(f"{node}/cpulist"))
    }
    cores: dict[tuple[int, int], list[int]] = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        cores.setdefault((nodes.get(cpu, 0), first_sibling(cpu)), []).append(cpu)
    if len(cores) < count:
        raise ValueError(f"{len(cores)} cores cannot be shared by {count}")
    ordered = [cores[key] for key in sorted(cores)]
    bounds = [len(ordered) * share // count for share in range(count + 1)]
    return [sorted(itertools.chain(*ordered[low:high])) for low, high in itertools.pairwise(bounds)]


def _last_cores(cpus: list[int], count: int) -> list[int]:
    """Return the last `count` of these CPUs, one per core while cores last."""
    firsts = [cpu for cpu in cpus if first_sibling(cpu) == cpu]
    rest = [cpu for cpu in cpus if cpu not in firsts]
    return sorted((rest + firsts)[-count:])


def _cpu_list(text: str) -> list[int]:
    cpus: list[int] = []
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first:
            cpus += range(int(first), int(last or first) + 1)
    return cpus


def first_sibling(cpu: int) -> int:
    """Return the first CPU of the same core."""
    siblings = _cpu_list(_read(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"))
    return siblings[0] if siblings else cpu


if __name__ == "__main__":  # run on a cluster's nodes
    import json

    here = facts()
    print(json.dumps({**here, "kind": kind(here)}))
