"""What is recommended, and what is not, on records made for each rule."""

from __future__ import annotations

import re

import pytest
from doubles.advised import KNOWN, cell, told
from rich.console import Console

import frameworks
from analysis.modes import labels
from analysis.points import Points
from analysis.settings import Shape
from measurement.statistics import Interval
from reports import verdict, write
from reports.verdict.wording import certain, where


def test_the_best_mode_is_named_with_its_call_gain_time_and_when_it_pays():
    rows = [cell(10.0), cell(8.0, 1.25, mode="plain", first=5.5), cell(2.5, 4.0, mode="quick", first=8.0)]
    assert told(*rows) == [
        'alpha at batch 1, 128 tokens: use alpha.compile(model, "quick"): 4.00× as fast as eager (95 %: 3.96 to 4.04×)'
        ", 2.5 ms. The default, plain, brings 1.25× (95 %: 1.24 to 1.26×). Compiling pays "
        "for itself after about 10 s of eager calls (1,000 calls)."
    ]


def test_a_default_that_cannot_be_told_from_eager_brings_nothing():
    wide = cell(7.0, 1.35, mode="plain") | {"speedup_ci_low": 0.49, "speedup_ci_high": 3.71}
    (line,) = told(cell(10.0), wide, cell(8.8, 1.14, mode="quick"))
    assert 'use alpha.compile(model, "quick"): 1.14×' in line
    assert "The default, plain, is not shown to differ from eager." in line and "1.35" not in line


def test_of_several_shapes_the_default_s_least_and_most_have_an_interval_each():
    rows = []
    for batch, gain in ((1, 1.2), (8, 1.5)):
        rows += [cell(12.0, batch_size=batch), cell(12.0 / gain, gain, mode="plain", batch_size=batch)]
        rows += [cell(2.0, 6.0, mode="quick", batch_size=batch)]
    (sentence,) = told(*rows)
    assert "The default, plain, brings 1.20× (95 %: 1.19 to 1.21×) to 1.50× (1.48 to 1.52)." in sentence
    rows[1] = cell(10.0, 1.2, mode="plain", batch_size=1)
    rows[4] = cell(10.0, 1.2, mode="plain", batch_size=8, spread=0.1)
    assert "The default, plain, brings 1.20× (95 %: 1.14 to 1.26×)." in told(*rows)[0]


def test_shapes_that_share_a_mode_and_its_gain_share_a_sentence():
    rows = []
    for batch, gain in ((1, 6.0), (8, 4.0), (64, 1.2)):
        rows += [cell(12.0, batch_size=batch), cell(12.0 / gain, gain, first=9.0, mode="plain", batch_size=batch)]
    first, second = told(*rows)
    assert first.startswith(
        "alpha at batch 1 and 8, 128 tokens: use alpha.compile(model): 4.00× at batch 8, 128 tokens (3 ms; "
        "95 %: 3.96 to 4.04×) to 6.00× at batch 1, 128 tokens (2 ms; 95 %: 5.94 to 6.06×) as fast as eager."
    )
    assert second.startswith("alpha at batch 64, 128 tokens: use alpha.compile(model): 1.20× as fast as eager")
    pays = r"pays for itself after about [\d.]+ s of eager calls \([\d,]+ calls at batch 8, 128 tokens\)"
    assert re.search(pays, first)
    assert "calls at" not in second


def test_of_modes_that_cannot_be_told_apart_the_default_is_named_and_the_other_said():
    alike = [cell(10.0), cell(5.02, 2.0, mode="plain"), cell(5.0, 2.0, mode="quick")]
    (sentence,) = told(*alike)
    assert "use alpha.compile(model): 2.00×" in sentence
    assert sentence.endswith(" quick may be as good.")
    (apart,) = told(*alike[:2], cell(4.5, 2.2, mode="quick"))
    assert 'use alpha.compile(model, "quick")' in apart and "as good" not in apart


@pytest.mark.parametrize(
    ("speedup", "spread", "wanted"),
    [
        (1.1, 0.15, "inconclusive: plain reaches 1.10× of eager's speed (95 %: 0.94 to 1.26×)"),
        (
            0.8,
            0.01,
            "stay with eager, 10 ms: plain is slower, 0.80× (95 %: 0.79 to 0.81×).",
        ),
        (
            1.01,
            0.005,
            "stay with eager, 10 ms: no mode is shown to be faster by 2 % (plain reaches 1.01×; 95 %: 1.00 to 1.02×).",
        ),
        (
            0.99,
            0.02,
            "stay with eager, 10 ms: no mode is shown to be faster (plain reaches 0.99×; 95 %: 0.97 to 1.01×).",
        ),
        (1.5, 0, "inconclusive: no speedup has an interval"),
    ],
)
def test_what_is_not_shown_to_be_faster_is_never_recommended(speedup, spread, wanted):
    (sentence,) = told(cell(10.0), cell(10.0 / speedup, speedup, mode="plain", spread=spread))
    assert wanted in sentence and "use " not in sentence


def test_modes_are_called_slower_where_their_whole_intervals_lie_below_one():
    slow, alike = cell(12.5, 0.8, mode="plain"), cell(10.0, 1.0, mode="quick")
    begun = "alpha at batch 1, 128 tokens: stay with eager, 10 ms: "
    assert told(cell(10.0), slow, alike) == [
        begun + "no mode is shown to be faster, and plain is slower, 0.80× (95 %: 0.79 to 0.81×)."
    ]
    slower = cell(20.0, 0.5, mode="quick")
    assert told(cell(10.0), slow, slower) == [
        begun + "plain, quick are slower, 0.50× (95 %: 0.49 to 0.51×) to 0.80× (0.79 to 0.81)."
    ]
    more = [row | {"batch_size": 2} for row in (cell(10.0), cell(10.0, 1.0, mode="plain"))]
    (sentence,) = told(cell(10.0), slow, *more)
    assert sentence.endswith(
        "no mode is shown to be faster, and plain is slower at some shapes, 0.80× (95 %: 0.79 to 0.81×)."
    )


def test_where_no_mode_is_named_none_is_as_good():
    rows = [cell(10.0), cell(5.0, 2.0, mode="plain", spread=0), cell(5.0, 2.0, mode="quick", spread=0)]
    assert [sentence for sentence in told(*rows) if "as good" in sentence] == []


def test_a_program_that_differs_is_excluded_and_named():
    rows = [cell(10.0), cell(2.0, 5.0, mode="quick", program="differs"), cell(5.0, 2.0, mode="plain")]
    (sentence,) = told(*rows)
    assert "use alpha.compile(model): 2.00×" in sentence
    assert "Excluded: quick (another program than eager mode's)." in sentence
    (only,) = told(*rows[:2])
    assert "inconclusive: no mode that is not excluded has figures beside eager mode" in only
    (whole,) = verdict.verdicts_of(Points(rows), KNOWN)
    assert [rank.point.record.mode for rank in whole.fastest[whole.setting.shapes[0]].ranks] == ["plain", "eager"]


def test_nothing_is_said_over_an_eager_mode_that_is_excluded():
    (sentence,) = told(cell(10.0, flags="zero_outputs"), cell(5.0, 2.0, mode="plain"))
    assert "inconclusive: no mode that is not excluded has figures beside eager mode" in sentence
    assert "Excluded: eager (outputs that are zero throughout)." in sentence


def test_a_program_that_is_not_known_counts_and_is_said():
    (sentence,) = told(cell(10.0), cell(5.0, 2.0, mode="plain", program="unknown"))
    assert "use alpha.compile(model): 2.00×" in sentence
    assert "Whether plain runs eager mode's program is not known." in sentence


def test_single_processes_are_said_and_conditions_change_no_word():
    (sentence,) = told(cell(10.0, launches=1), cell(5.0, 2.0, mode="plain", launches=1))
    assert sentence.endswith("Careful: seen in one process; others may differ.")
    several = [cell(10.0, batch_size=batch, launches=batch) for batch in (1, 2)]
    several += [cell(5.0, 2.0, mode="plain", batch_size=batch, launches=batch) for batch in (1, 2)]
    assert "Careful: seen in at least one process; others may differ." in told(*several)[0]
    quiet, busy = (told(cell(10.0), cell(5.0, 2.0, mode="plain", flags=flags)) for flags in (None, "steal;drift"))
    assert quiet == busy and "Careful" not in quiet[0]


def test_pairs_and_medians_that_contradict_each_other_are_not_believed():
    (sentence,) = told(cell(10.0), cell(12.0, 1.3, mode="plain"))
    assert "inconclusive: pairs and medians of plain contradict each other" in sentence


def test_machines_that_contradict_each_other_are_both_named():
    here = [cell(10.0), cell(5.0, 2.0, mode="plain")]
    there = [cell(10.0), cell(12.5, 0.8, mode="plain")]
    there = [row | {"machine_id": "ffff", "device_name": "Another processor"} for row in there]
    sentences = told(*here, *there)
    place = "Machines contradict each other, alpha at batch 1, 128 tokens"
    assert [sentence for sentence in sentences if sentence.startswith("Machines")] == [
        f"{place}: compile on A processor; stay on Another processor.",
        f"{place}: stay on Another processor; compile on A processor.",
    ]
    assert not any("contradict" in sentence for sentence in told(*here))


def test_a_mode_is_not_sold_by_an_eager_mode_that_nobody_deploys():
    rows = [cell(260.0, framework="idle"), cell(0.5, 520.0, framework="idle", first=12.0)]
    assert told(*rows) == [
        "idle at batch 1, 128 tokens: use idle.jit(model): 0.5 ms (operator by operator 260 ms, which nobody deploys). "
        "Its first call takes up to 12 s."
    ]


def test_without_a_baseline_modes_are_compared_by_latency_alone():
    rows = [cell(9.0, framework="idle"), cell(8.0, 1.1, framework="idle", spread=0.2)]
    assert "use idle.jit(model): 8 ms (operator by operator 9 ms, which nobody deploys)" in told(*rows)[0]


def test_implementations_precisions_and_other_parameters_are_never_in_one_range():
    rows = []
    for n, axis in enumerate(({}, {"implementation": "library"}, {"dtype": "bf16"}, {"parameters": {"mask": "full"}})):
        gain = 2.0 + n / 10
        rows += [cell(10.0, **axis), cell(10.0 / gain, gain, mode="plain", **axis)]
    verdicts = verdict.verdicts_of(Points(rows), KNOWN)
    assert [len(one.advice) for one in verdicts] == [1] * 4
    assert len({one.setting.name for one in verdicts}) == 4
    assert not any(" to 2." in sentence.partition("(95 %")[0] for one in verdicts for sentence in one.sentences)


def test_without_eager_beside_it_nothing_is_said_of_a_mode():
    assert told(cell(5.0, 2.0, mode="plain")) == []
    assert told(cell(5.0)) == told(cell(5.0, framework="idle")) == []
    assert verdict.verdicts_of(Points([cell(5.0, status="mismatch")]), KNOWN) == []


def test_an_interval_s_ends_differ_as_printed():
    assert certain(Interval(0.95, 0.948, 0.954)) == "95 %: 0.948 to 0.954×"
    assert certain(Interval(0.95, 0.944, 0.954)) == "95 %: 0.94 to 0.95×"


def test_shapes_in_words():
    def shape(batch, length, parameters=None):
        return Shape.sized(batch, length, parameters)

    grid = [shape(batch, length) for batch in (8, 1) for length in (32, 128)]
    assert where(grid) == "batch 1 and 8, 32 and 128 tokens"
    assert where([*grid[:3], shape(64, 512)]) == "batch 1 and 8, 32 tokens; batch 8, 128 tokens; batch 64, 512 tokens"
    assert where([shape(2, None)]) == "batch 2"
    assert where([shape(None, None, "size=8;kind=a")]) == "size=8, kind=a"


def test_every_mode_of_the_registry_has_a_call_that_a_user_can_type():
    known = labels()
    swept = {name for name in frameworks.NAMES if not frameworks.describe(name).oracle}
    graphs = {key: said for key, said in known.items() if frameworks.describe(key[0]).mode(key[1]).graph}
    assert all("(" in said.call or "." in said.call for said in graphs.values())
    assert {framework for (framework, _), said in graphs.items() if said.default} == swept


def test_the_terminal_prints_as_many_sentences_as_are_read_and_says_that_there_are_more(capsys):
    rows = []
    for n in range(write.MOST_SENTENCES + 1):
        rows += [cell(10.0, workload=f"w{n}"), cell(5.0, 2.0, mode="plain", workload=f"w{n}")]
    write.answer(verdict.verdicts_of(Points(rows[:2]), KNOWN), Console(width=300))
    shown = capsys.readouterr().out
    assert shown.startswith(
        "w0 plain, cpu, A processor, fp32, 2 threads: alpha at batch 1, 128 tokens: use alpha.compile"
    )
    assert "make report" not in shown
    write.answer(verdict.verdicts_of(Points(rows), KNOWN), Console(width=300))
    shown = capsys.readouterr().out
    assert shown.count("use alpha.compile(model)") == write.MOST_SENTENCES
    assert f"`make report` writes the rest, of {write.MOST_SENTENCES + 1} settings." in shown
