"""Noise mechanisms: conditions for privacy, parameters for a wanted (epsilon, delta), closed forms beside them."""
