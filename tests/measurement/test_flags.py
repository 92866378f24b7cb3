"""Every flag fires beyond its threshold and alone, and not at it."""

from __future__ import annotations

import pytest

from measurement import flags, gpu
from measurement.flags import FLAGS, Observation
from measurement.noise import Noise


def noise(**changes) -> Noise:
    quiet = dict(other_load_cores=0.0, steal_share=0.0, involuntary_switches_per_s=0.0, frequency_change=0.0)
    return Noise(seconds=1.0, load_average=9.0, **{**quiet, **changes})


def state(**changes) -> gpu.GpuState:
    return gpu.GpuState(**{**dict.fromkeys(gpu.GpuState.__dataclass_fields__), **changes})


# flag -> an observation at its threshold, which it lets pass, and one just beyond.
CASES = {
    "threads_exceeded": (
        Observation(threads=2, cpu_per_wall=2.1),
        Observation(threads=2, cpu_per_wall=2.11),
    ),
    "threads_unused": (Observation(threads=4, cpu_per_wall=2.4), Observation(threads=4, cpu_per_wall=2.39)),
    "no_steady_state": (Observation(threads=1, steady=True), Observation(threads=1, steady=False)),
    "queue": (Observation(threads=1, queue_share=0.02), Observation(threads=1, queue_share=0.0201)),
    "recompiled": (Observation(threads=1, recompilations=0), Observation(threads=1, recompilations=1)),
    "partial": (Observation(threads=1), Observation(threads=1, partial=True)),
    "program_differs": (Observation(threads=1), Observation(threads=1, program_differs=True)),
    "eager_compiles": (Observation(threads=1), Observation(threads=1, eager_compiles=True)),
    "drift": (Observation(threads=1, drift=0.02), Observation(threads=1, drift=0.0201)),
    "host_slowed": (Observation(threads=1), Observation(threads=1, host_slowed=True)),
    "other_load": (
        Observation(threads=1, noise=noise(other_load_cores=0.1)),
        Observation(threads=1, noise=noise(other_load_cores=0.101)),
    ),
    "steal": (
        Observation(threads=1, noise=noise(steal_share=0.01)),
        Observation(threads=1, noise=noise(steal_share=0.0101)),
    ),
    "frequency": (
        Observation(threads=1, noise=noise(frequency_change=0.05)),
        Observation(threads=1, noise=noise(frequency_change=0.0501)),
    ),
    "power_capped": (
        Observation(threads=1, noise=noise(gpu=state(power_capped_share=0.05))),
        Observation(threads=1, noise=noise(gpu=state(power_capped_share=0.0501))),
    ),
    "throttled": (
        Observation(threads=1, noise=noise(gpu=state(throttled_share=0.05))),
        Observation(threads=1, noise=noise(gpu=state(throttled_share=0.0501))),
    ),
    "roofline_exceeded": (Observation(threads=1, explained_share=1.0), Observation(threads=1, explained_share=1.001)),
    "peak_above_datasheet": (Observation(threads=1), Observation(threads=1, above_datasheet=True)),
    "not_compared": (Observation(threads=1), Observation(threads=1, compared=False)),
    "eager_error": (Observation(threads=1, eager_error=10.0), Observation(threads=1, eager_error=10.1)),
    "nan_outputs": (Observation(threads=1), Observation(threads=1, not_numbers=True)),
    "zero_outputs": (Observation(threads=1), Observation(threads=1, empty="zero_outputs")),
    "constant_outputs": (Observation(threads=1), Observation(threads=1, empty="constant_outputs")),
    "outputs_not_compared": (Observation(threads=1), Observation(threads=1, outputs_left=True)),
    "other_dtype": (Observation(threads=1), Observation(threads=1, other_dtype=True)),
    "energy_unchecked": (Observation(threads=1), Observation(threads=1, energy_unchecked=True)),
}


def test_every_flag_of_the_closed_list_has_a_case():
    assert list(CASES) == [flag.name for flag in FLAGS]


@pytest.mark.parametrize("name", [flag.name for flag in FLAGS])
def test_a_flag_fires_beyond_its_threshold_and_alone(name):
    at, beyond = CASES[name]
    assert flags.raised(at) == []
    assert flags.raised(beyond) == [name]


@pytest.mark.parametrize(("change", "expected"), [(None, True), (0.02, False), (0.03, True)])
def test_rounds_that_do_not_change_refute_an_unsettled_warm_up(change, expected):
    assert bool(flags.raised(Observation(threads=1, steady=False, change=change))) == expected


def test_what_is_not_known_raises_nothing():
    unknown = noise(other_load_cores=None, steal_share=None, frequency_change=None)
    assert flags.raised(Observation(threads=8)) == []
    assert flags.raised(Observation(threads=8, steady=None)) == []
    assert flags.raised(Observation(threads=8, noise=unknown)) == []


def test_one_thread_cannot_be_unused():
    assert flags.raised(Observation(threads=1, cpu_per_wall=0.1)) == []


def test_a_power_cap_disturbs_nothing():
    assert not any(flags.disturbed(["power_capped"], figure) for figure in flags.BOTH)
    assert flags.disturbed(["throttled"], flags.LATENCY)


@pytest.mark.parametrize("reason", [0x08, 0x20, 0x40, 0x80])
def test_every_other_reason_of_the_gpu_is_throttling(reason):
    for bits, name in ((0x04, "power_capped"), (reason, "throttled")):
        seen = gpu.summarised([(1900, 3201, 700_000, 60, bits)])
        assert flags.raised(Observation(threads=1, noise=noise(gpu=seen))) == [name]


def test_flags_keep_the_list_s_order():
    loud = noise(
        other_load_cores=1, steal_share=1, frequency_change=1,
        gpu=state(power_capped_share=1.0, throttled_share=1.0),
    )  # fmt: skip
    observation = Observation(
        threads=1, cpu_per_wall=2.0, steady=False, queue_share=0.1, recompilations=2, partial=True,
        program_differs=True, eager_compiles=True, drift=1.0, host_slowed=True,
        noise=loud, explained_share=2.0, above_datasheet=True, compared=False, eager_error=99.0,
        empty="zero_outputs", not_numbers=True,
        outputs_left=True, other_dtype=True, energy_unchecked=True,
    )  # fmt: skip
    others = "threads_unused", "constant_outputs"
    assert flags.raised(observation) == [flag.name for flag in FLAGS if flag.name not in others]


def test_every_flag_says_what_it_means_and_what_to_do():
    for flag in FLAGS:
        assert flag.threshold
        assert flag.meaning.endswith(".")
        assert flag.remedy.endswith(".")
