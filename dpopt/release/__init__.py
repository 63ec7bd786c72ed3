"""Releasing: exact samplers from a secure source, noise added to data, noisy selection."""
