#define RAMIFY_KERNELS kernels_avx512
#define RAMIFY_KERNELS_NAME "avx512"
#define RAMIFY_LANES 8
#include "kernels/kernels.inl"
