"""Measuring: cells, sampling, statistics, machine facts, checks and records. Knows no framework and no workload."""
