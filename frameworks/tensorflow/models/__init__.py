"""The workloads' models."""
