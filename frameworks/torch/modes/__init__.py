"""Models as modes call them: inference, training, generation."""
