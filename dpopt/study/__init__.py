"""Studies: the same question put to several backends, and the figures of the ABS paper as tables."""
