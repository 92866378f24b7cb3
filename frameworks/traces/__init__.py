"""Readers of what frameworks' profilers record: kernels, their times, and the operators that they are a part of."""
