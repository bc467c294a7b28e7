#define RAMIFY_KERNELS kernels_avx2
#define RAMIFY_KERNELS_NAME "avx2"
#define RAMIFY_LANES 8
#include "kernels/kernels.inl"
