"""Plain Python twins of the compiled kernels: slow, in float64, a number at a time."""
