"""Files of every kind: CSV read strictly and written back, what a file is, and writing all of a file or nothing."""
