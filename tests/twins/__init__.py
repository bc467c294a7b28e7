"""Plain Python twins of the compiled kernels: slow, in float64, written from the definitions and not from the C++ code."""
