"""Readers of frameworks' profiles: kernels, their times, and the operators that they are a part of."""
