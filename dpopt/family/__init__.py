"""The TableBuilder family p(z) proportional to e^(-gamma z^2) on [-D, D]."""
