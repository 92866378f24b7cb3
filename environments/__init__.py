"""The virtual environments that frameworks are measured in."""
