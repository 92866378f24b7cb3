"""Where a worker runs. Today a process on this machine; a cluster's launcher would be a command prefix."""
