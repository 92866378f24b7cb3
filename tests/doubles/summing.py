"""A Llama of one layer with products as sums in one framework: `summing.py FRAMEWORK MODE,...`, the eager mode first.

Prints JSON: rows as `generating.py` has them of each place: a token in every mode, a generation in eager
mode and as one graph, a prompt and bfloat16 in two modes; in eager mode alone 8 bits, and places with matrix products.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import frameworks
from tests.doubles.generating import FIRST_PLACES, NAMES, WHOLE, Measured, Place, rows_of
from workloads.matrices import MATMUL, SUM

LAYERS = 1
DECODE, PREFILL, GENERATE = (
    Place(NAMES[0], "static", pass_name, first, product=SUM, layers=LAYERS)
    for pass_name, first in (("decode", FIRST_PLACES[1]), ("prefill", 0), ("generate", 0))
)
USUAL = {place: replace(place, product=MATMUL) for place in (DECODE, PREFILL)}
HALF, STORED = replace(DECODE, dtype="bf16"), replace(DECODE, quant="int8")


def main() -> None:
    framework, modes = sys.argv[1], sys.argv[2].split(",")
    adapter, rows = frameworks.load_adapter(framework), []
    tried = {DECODE: modes, GENERATE: [modes[0], *(mode for mode in modes if mode in WHOLE)]}
    tried |= dict.fromkeys((PREFILL, HALF), modes[:2]) | dict.fromkeys((STORED, *USUAL.values()), modes[:1])
    for place in sorted(tried, key=lambda place: place.dtype):  # those of one dtype together
        rows += rows_of(Measured(adapter, place, framework, "plain"), tried[place])
        adapter.release()
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
