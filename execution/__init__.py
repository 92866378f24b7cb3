"""Start workers, survive their failures, and collect their reports."""
