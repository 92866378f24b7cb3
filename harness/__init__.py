"""What the benchmark stands on: the virtual environments that workers run in."""
