/// The loops that are worth vector instructions, compiled once per instruction set and chosen at run time.
#pragma once

namespace ramify {

struct Kernels {
    const char* name;
};

extern const Kernels kernels_baseline;
#if defined(__x86_64__)
extern const Kernels kernels_avx2;
extern const Kernels kernels_avx512;
#endif

/// The widest set that this processor runs; RAMIFY_INSTRUCTION_SET=baseline|avx2|avx512 asks for a narrower one.
const Kernels& kernels();

}  // namespace ramify
