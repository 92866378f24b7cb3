"""What a worker does about forks that a user's model makes of it."""

import json
import subprocess
import sys

from measurement.places import SUITE

FORKING = """
import os, sys
from frameworks.adapter import Step
from measurement.protocol import Phase
from worker.channel import Channel
from worker.forks import Forks

channel, forks = Channel(f"/dev/fd/{os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)}", sys.argv[2]), Forks()
forks.watch()
step = Step(lambda: os.fork(), [()])
for _ in range(4):
    step()
channel.send(Phase(None, str(forks.count)))
try:
    forks.refuse(3)
except Exception as error:
    channel.send(Phase(None, str(error)))
"""


def test_a_model_that_forks_makes_no_second_worker(tmp_path):
    results = tmp_path / "results"
    subprocess.run([sys.executable, "-c", FORKING, results, tmp_path / "marker"], cwd=SUITE, check=True)
    told = [json.loads(line)["phase"] for line in results.read_text().splitlines() if line]
    assert told[0] == "4" and "forks the measuring process" in told[1] and len(told) == 2  # without a watch 16 of each
