#include "kernels.hpp"
namespace ramify { const Kernels kernels_avx2{"avx2"}; }
