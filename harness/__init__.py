"""What the commands do: environments, plans, runs and records, and what is read out of records again."""
