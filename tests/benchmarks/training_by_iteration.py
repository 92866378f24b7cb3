"""Does rounding grow from iteration to iteration of training? Errors of a run's modes by iteration, worst and median.

`python tests/benchmarks/training_by_iteration.py RUN .cache/materials/<workload>-reference-….npz` compares
what a run's first launch kept of three iterations (losses, running statistics) with the reference in float64, each
tensor by its relative root mean square. The files in a launch's `outputs/` are numbered as its job lists the cells.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import median

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from measurement import parity


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("reference", type=Path)
    arguments = parser.parse_args()
    reference = np.load(arguments.reference)
    for file in sorted((arguments.run / "launches" / "0001" / "outputs").glob("*.npz")):
        outputs = np.load(file)
        names = [name for name in outputs.files if name in reference.files]
        for iteration in sorted({name.partition(".")[0] for name in names}):
            errors = {
                name: parity.difference({name: outputs[name]}, {name: reference[name]}).relative
                for name in names
                if name.partition(".")[0] == iteration
            }
            worst = max(errors, key=errors.__getitem__)
            print(
                f"{file.stem}: iteration {int(iteration) + 1}: worst {errors[worst]:.2%} ({worst}), "
                f"median {median(errors.values()):.3%}, loss {errors[f'{iteration}.loss']:.3%}"
            )


if __name__ == "__main__":
    main()
