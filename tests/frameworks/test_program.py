"""Whether a difference between eager mode's program and a graph's is found, named, and reaches the record."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace

import pytest
from conftest import ROOT

from environments import environments
from frameworks.program import DECIDING, Operation, difference, verdict
from records.statuses import MEASURED

pytestmark = pytest.mark.slow

MASK = "bool (64,1,512,512) stride (0,512,1,0)"


def attention(mask: str = "none", causal: str = "false") -> Operation:
    return Operation("attention", "attention", {"mask": mask, "causal": causal})


def product(shape: str = "(8,8)") -> Operation:
    return Operation("mm", "matmul", {"weight": shape})


def cast(to: str) -> Operation:
    return Operation("cast", "cast", {"from": "float32", "to": to})


ADD, GELU = Operation("add"), Operation("gelu")
LAYER = (product(), attention(), ADD, product("(8,32)"), GELU, product("(32,8)"), ADD)


def with_(program: tuple[Operation, ...], **changes: Operation) -> tuple[Operation, ...]:
    """`program` with other operators in the place of those of a name."""
    return tuple(changes.get(operation.name, operation) for operation in program)


def test_the_same_program_has_no_difference():
    assert difference(LAYER * 12, list(LAYER * 12)) is None
    assert difference((), ()) is None
    assert verdict([LAYER], LAYER) == {"program": "same", "program_difference": None}


def test_order_of_arguments_is_no_difference():
    turned = Operation("attention", "attention", {"causal": "false", "mask": "none"})
    assert difference(LAYER, with_(LAYER, attention=turned)) is None


def test_arguments_of_the_deciding_operator_are_named_and_layers_counted():
    graph = with_(LAYER, attention=attention(MASK)) * 12
    line = f"attention: mask none in eager, {MASK} in the graph"
    assert difference(LAYER * 12, graph) == f"{line} (12 times)"
    assert difference(LAYER, graph[: len(LAYER)]) == line
    assert verdict([LAYER * 12], graph) == {"program": "differs", "program_difference": f"{line} (12 times)"}


def test_all_arguments_that_differ_are_named_in_their_order():
    assert difference([attention()], [attention(MASK, "true")]) == (
        f"attention: mask none in eager, {MASK} in the graph; causal false in eager, true in the graph"
    )


def test_an_argument_that_only_one_side_has_is_none_on_the_other():
    assert difference([Operation("attention", "attention")], [attention(MASK, "none")]) == (
        f"attention: mask none in eager, {MASK} in the graph"
    )


@pytest.mark.parametrize(
    ("eager", "graph", "line"),
    [
        (LAYER, with_(LAYER, gelu=Operation("tanh")), "gelu: in eager, not in the graph"),
        (LAYER, (*LAYER, ADD), "add: in the graph, not in eager"),
        (LAYER, (cast("bfloat16"), *LAYER), "cast: in the graph, not in eager (from float32, to bfloat16)"),
        (LAYER, LAYER[:1] + LAYER[2:], "attention: in eager, not in the graph (mask none, causal false)"),
        (LAYER, (), "attention: in eager, not in the graph (mask none, causal false)"),
        ((), (ADD, ADD), "add: in the graph, not in eager (2 times)"),
    ],
)
def test_an_operator_of_one_side_is_named(eager, graph, line):
    assert difference(eager, graph) == line


def test_of_several_differences_the_deciding_one_is_named():
    """In the order of `DECIDING`, wherever they stand; what has no kind comes last."""
    extra = [ADD, *(Operation(f"an {kind}", kind) for kind in reversed(DECIDING))]
    for kind in DECIDING:
        assert difference(LAYER, [*extra, *LAYER]) == f"an {kind}: in the graph, not in eager"
        extra.remove(Operation(f"an {kind}", kind))
    assert difference(LAYER, [*extra, *LAYER]) == "add: in the graph, not in eager"


def test_of_differences_of_one_rank_the_first_is_named():
    graph = [*LAYER[:3], product("(16,16)"), GELU, product("(9,9)"), ADD]
    assert difference(LAYER, graph) == "mm: weight (8,32) in eager, (16,16) in the graph"


def test_a_difference_in_every_layer_does_not_shift_the_others():
    """Making a mask in each layer puts operators before it; the layers stay aligned all the same."""
    masked = (Operation("ge"), Operation("where"), *with_(LAYER, attention=attention(MASK)))
    assert difference(LAYER * 12, masked * 12) == f"attention: mask none in eager, {MASK} in the graph (12 times)"


def test_operators_that_only_moved_are_not_said_to_be_missing():
    assert difference([product(), GELU, ADD], [GELU, product(), ADD]) == "the same operators in another order"
    swapped = [product("(1,1)"), product("(2,2)")]
    assert difference(swapped, swapped[::-1]) == "the same operators in another order"
    assert difference([*swapped, ADD, GELU], [*swapped[::-1], GELU]) == "add: in eager, not in the graph"


def test_partners_that_stand_at_other_places_are_compared():
    """A cast that the graph makes later, to another type, is one difference and not two."""
    eager, graph = (cast("bfloat16"), *LAYER), (*LAYER, cast("float16"))
    assert difference(eager, graph) == "cast: to bfloat16 in eager, float16 in the graph"


def test_a_spare_operator_of_the_graph_excuses_as_many_that_eager_mode_lacks_and_no_others():
    spare = replace(product(), spare=True)
    assert difference(LAYER, (*LAYER, spare)) is None
    assert difference(LAYER, (spare, *LAYER)) is None
    assert difference(LAYER, (*LAYER, spare, product())) == "mm: in the graph, not in eager (weight (8,8))"
    assert difference((*LAYER, product()), (*LAYER, spare)) is None
    assert difference((*LAYER, product("(4,4)")), (*LAYER, spare)) == "mm: weight (4,4) in eager, (8,8) in the graph"
    assert difference(LAYER, (*LAYER[1:], replace(product("(4,4)"), spare=True))) == (
        "mm: weight (8,8) in eager, (4,4) in the graph"
    )


def test_what_is_not_known_is_not_the_same():
    assert verdict(["no hook"], LAYER) == {"program": "unknown", "program_difference": "no hook"}
    assert verdict([LAYER], "no graph") == {"program": "unknown", "program_difference": "no graph"}
    alone = verdict([], LAYER)
    assert alone["program"] == "unknown"
    assert "eager" in alone["program_difference"]


# Through the real command line and real workers: the fake framework's modes.


@pytest.fixture(scope="module")
def planted(run):
    return run("--framework", "fake", "--mode", "eager,graph,another-program,unlistable")


def test_a_planted_difference_reaches_the_record_the_flag_and_the_csv(planted):
    assert planted.complete()
    record = planted.record("another-program")
    line = "attention: mask none in eager, bool (1,1,8,8) stride (0,8,1,0) in the graph"
    assert record["status"] in MEASURED  # numbers agree, so nothing else would have told
    assert (record["program"], record["program_difference"]) == ("differs", line)
    assert "program_differs" in record["flags"].split(";")
    (row,) = [row for row in planted.rows() if row["mode"] == "another-program"]
    assert (row["program"], row["program_difference"]) == ("differs", line)


def test_the_same_program_raises_no_flag(planted):
    record = planted.record("graph")
    assert (record["program"], record["program_difference"]) == ("same", None)
    assert "program_differs" not in (record["flags"] or "").split(";")
    assert planted.record("eager")["program"] is None


def test_what_cannot_be_listed_was_measured_all_the_same(planted):
    record = planted.record("unlistable")
    assert record["status"] in MEASURED
    assert record["latency_ms_median"] > 0
    assert record["program"] == "unknown"
    assert record["program_difference"] == "RuntimeError: this build shows no operators"
    assert "program_differs" not in (record["flags"] or "").split(";")


def test_a_graph_without_eager_mode_beside_it_is_unknown(run):
    record = run("--framework", "fake", "--mode", "graph", "--filter", "/graph").record("graph")
    assert (record["program"], record["program_difference"]) == (
        "unknown",
        "eager mode was not measured in the same group",
    )


# PyTorch: models that do something else while they are traced, in the framework's own environment.

ATTENTION = "scaled_dot_product_attention: "
BRANCHES = {
    "Block": None,
    "Masked": ATTENTION + "mask none in eager, bool (2,1,4,4) stride (0,4,1,0) in the graph",
    "Full": ATTENTION + "mask none in eager, bool (2,1,4,4) stride (16,16,4,1) in the graph",
    "Causal": ATTENTION + "causal false in eager, true in the graph",
    "Unfused": ATTENTION + "in eager, not in the graph (mask none, ",
    "Copied": ATTENTION + "query float32 (2,2,4,4) stride (96,4,24,1) in eager, float32 (2,2,4,4) in the graph",
    "Cast": "cast: in the graph, not in eager (from float32, to bfloat16)",
    "Dropped": "gelu: in eager, not in the graph",
}
# Torch's own modules leave their fused paths where gradients are recorded, or a mode of torch's functions looks on.
# Dynamo captures the path of the encoder's layer, and not that of the attention alone.
FUSED_PATHS = {"Library": "_native_multi_head_attention: in eager, not in the graph", "Encoder": None}


@pytest.fixture(scope="module")
def branches() -> dict[str, str | None]:
    command = [str(environments.path("torch", "cpu") / "bin/python"), "tests/doubles/torch_branches.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "case",
    [
        *(f"{situation} {name}" for situation in ("inference", "training") for name in BRANCHES),
        *(f"{situation} {name}" for situation in ("dynamic", "fake") for name in ("Block", "Masked")),
        "autocast Block",
        "inference Mixed",
        *(f"{situation} {name}" for situation in ("inference", "training") for name in FUSED_PATHS),
    ],
)
def test_what_torch_does_only_while_it_traces_is_named(branches, case):
    situation, name = case.split()
    expected, line = (BRANCHES | (FUSED_PATHS if situation == "inference" else {})).get(name), branches[case]
    assert line is None if expected is None else (line or "").startswith(expected)
