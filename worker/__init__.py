"""The process that measures: `python -m worker JOB RESULTS`, in a framework's environment."""

import time

BEGAN = time.monotonic()  # before anything else is imported, by the clock that all processes share
