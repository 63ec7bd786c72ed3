"""One short file a theme. A new case is a new `register(Case(...))`; nothing else is edited."""
