"""Programs, profiles, memory and counts of a call."""
