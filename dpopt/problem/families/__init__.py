"""The families that constraints and objectives consist of, one file each; `base` says what a family is."""
