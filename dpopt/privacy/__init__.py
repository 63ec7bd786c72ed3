"""What a pmf guarantees: divergence at one epsilon, and the whole profile."""
