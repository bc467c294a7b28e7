#include "kernels.hpp"
namespace ramify { const Kernels kernels_baseline{"baseline"}; }
namespace ramify { const Kernels& kernels() { return kernels_baseline; } }
