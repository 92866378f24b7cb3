"""Where a worker runs: a process on this machine, or a step on a cluster's node."""
