"""Run `python -m eager_vs_graph` as the command `eager-vs-graph`."""

from eager_vs_graph.console import main

main()
