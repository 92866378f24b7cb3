"""A small Llama with products as sums in one framework: `summing.py FRAMEWORK MODE,...`, the eager mode first.

Prints JSON: rows as `generating.py` has them of each place, and of the same with matrix products in eager mode alone.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import frameworks
from tests.doubles.generating import FIRST_PLACES, NAMES, Measured, Place, rows_of
from workloads.products import MATMUL, SUM

WHOLE = (  # in all modes
    Place(NAMES[0], "static", "decode", FIRST_PLACES[1], product=SUM),
    Place(NAMES[0], "static", "prefill", product=SUM),
    Place(NAMES[0], "static", "generate", product=SUM),
)
FURTHER = (  # in two modes
    Place(NAMES[0], "static", "decode", FIRST_PLACES[0], product=SUM),
    replace(WHOLE[0], dtype="bf16"),
    replace(WHOLE[0], quant="int8"),
    replace(WHOLE[1], quant="int8"),
)


def main() -> None:
    framework, modes = sys.argv[1], sys.argv[2].split(",")
    adapter, rows = frameworks.load_adapter(framework), []
    usual = [replace(place, product=MATMUL) for place in WHOLE]
    tried = {place: modes for place in WHOLE} | dict.fromkeys(FURTHER, modes[:2]) | dict.fromkeys(usual, modes[:1])
    for place in sorted(tried, key=lambda place: place.dtype):  # those of one dtype together
        rows += rows_of(Measured(adapter, place, framework, "plain"), tried[place])
        adapter.release()
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
