"""Where a worker runs: a process on this machine."""
