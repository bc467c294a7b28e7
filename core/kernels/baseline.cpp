#define RAMIFY_KERNELS kernels_baseline
#define RAMIFY_KERNELS_NAME "baseline"
#define RAMIFY_LANES 8
#include "kernels/kernels.inl"
