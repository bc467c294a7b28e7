#include "kernels/kernels.hpp"

#include <cstdlib>
#include <cstring>

namespace ramify {

static const Kernels& choose() {
    const char* asked = std::getenv("RAMIFY_INSTRUCTION_SET");
    auto allowed = [&](const Kernels& set) { return !asked || !*asked || std::strcmp(asked, set.name) == 0; };
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool has_avx2 =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (has_avx512 && allowed(kernels_avx512)) return kernels_avx512;
    if (has_avx2 && allowed(kernels_avx2)) return kernels_avx2;
#endif
    return kernels_baseline;
}

const Kernels& kernels() {
    static const Kernels& chosen = choose();
    return chosen;
}

}  // namespace ramify
