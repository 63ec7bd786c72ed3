"""Studies: the same question put to several backends."""
