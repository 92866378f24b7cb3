"""Start workers, survive their ends, and collect what they report."""
