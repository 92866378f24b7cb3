"""The process that measures: `python -m worker JOB RESULTS`, in a framework's environment."""
