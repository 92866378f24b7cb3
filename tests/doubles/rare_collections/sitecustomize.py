"""Rare collections of garbage in every Python that tests start: those during imports find little."""

import gc

gc.set_threshold(100_000, 50, 50)
