#include "kernels.hpp"
namespace ramify { const Kernels kernels_avx512{"avx512"}; }
