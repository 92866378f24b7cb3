"""The fault campaign: `python studies/faults [--seed N] [--count N] [--group NAME,…] [--jobs N]`.

Faults of all kinds through the real command line with real worker processes: signals at random instants, modes that
misbehave, files that are damaged, disks that are full. Each must keep every planned cell: none lost, doubled, torn or
misclassified, and the others measured. A resume must complete the plan exactly. No process may survive, and the run
must end within the time-out, with a documented exit code, one sentence and no traceback.

Prints each violation at once and a table of all; the exit code is 1 where there was one. The same seed chooses the same
faults at the same instants. Groups run by name alone if they need the environments of torch and JAX (`real`, `pairs`)
or start a real Slurm of two nodes (`nodes`). Those that mount a file system need root, and are skipped without.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from doubles.suite import copy_with_fake  # noqa: E402

from studies.faults import campaign  # noqa: E402


def main() -> int:
    """Run the campaign."""
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    top.add_argument("--seed", type=int, default=0)
    top.add_argument("--count", type=int, default=300, help="how many faults (default: 300)")
    top.add_argument("--first", type=int, default=1, metavar="N", help="begin with the Nth of them")
    named = (*campaign.REAL, campaign.CLUSTER)
    usual = ",".join(group for group in campaign.GROUPS if group not in named)
    top.add_argument("--group", default=usual, help=f"default: {usual}; also {', '.join(named)}")
    top.add_argument("--only", default="", help="faults whose name contains this")
    top.add_argument("--jobs", type=int, default=2, help="so many side by side (default: 2)")
    top.add_argument("--out", type=Path, help="where runs with a violation are kept (default: a new folder)")
    options = top.parse_args()
    sys.stdout.reconfigure(errors="backslashreplace")  # names and words have any characters
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # file systems are to be unmounted, and processes ended
    faults = campaign.chosen(options.group.split(","), options.count, options.seed)
    faults = [fault for fault in faults[options.first - 1 :] if options.only in fault.name]
    folder = options.out or Path(tempfile.mkdtemp(prefix="faults-"))
    print(f"{len(faults)} faults, seed {options.seed}, in {folder}", flush=True)
    suite = copy_with_fake(folder / "suite")

    def told(finding: campaign.Finding) -> None:
        fault = finding.fault
        words = f"skipped: {finding.skipped}" if finding.skipped else "; ".join(map(": ".join, finding.violations))
        print(f"{fault.number + 1}/{options.count} {fault.group} {fault.name[:60]!a}: {words or 'held'}", flush=True)

    findings = campaign.run(faults, suite, folder, options.seed, options.jobs, told)
    print(campaign.table(findings))
    return int(any(finding.violations for finding in findings))


if __name__ == "__main__":
    sys.exit(main())
