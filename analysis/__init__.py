"""Facts that follow from records."""
