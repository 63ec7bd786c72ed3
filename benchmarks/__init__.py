"""How long dpopt takes, phase by phase, and beside what: `python -m benchmarks`, explained in README.md."""
