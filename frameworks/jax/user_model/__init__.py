"""User models."""
