"""From a command line to the cells to measure."""
