// Vectors of `lanes` floats in the compiler's portable notation, and the few operations that it lacks.
// Included by kernels.inl inside a namespace of its own per instruction set. No standard library here: an inline
// function compiled for a wide instruction set must never be the copy that the linker keeps for everybody.

using vfloat = float __attribute__((vector_size(4 * lanes)));
using vint = int __attribute__((vector_size(4 * lanes)));

static inline vfloat splat(float x) { return vfloat{} + x; }
static inline vfloat load(const float* p) {
    vfloat v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}
static inline void store(float* p, vfloat v) { __builtin_memcpy(p, &v, sizeof v); }
static inline vfloat maximum(vfloat a, vfloat b) { return a > b ? a : b; }
static inline vfloat minimum(vfloat a, vfloat b) { return a < b ? a : b; }
static inline vfloat absolute(vfloat a) { return (vfloat)((vint)a & (vint{} + 0x7fffffff)); }

/// Whether any lane of a comparison is true.
static inline bool any(vint mask) {
#if RAMIFY_LANES == 16 && defined(__AVX512F__)
    return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#elif RAMIFY_LANES == 8 && defined(__AVX__)
    return !_mm256_testz_si256((__m256i)mask, (__m256i)mask);
#else
    int some = 0;
    for (int i = 0; i < lanes; ++i) some |= mask[i];
    return some != 0;
#endif
}

/// +1 where the bit of the lane is set, -1 elsewhere.
static inline vfloat signs(std::uint32_t bits) {
    vint lane;
    for (int i = 0; i < lanes; ++i) lane[i] = 1 << i;
    return ((vint{} + (int)bits) & lane) != 0 ? splat(1.0f) : splat(-1.0f);
}

/// exp clamped to the normal range; the relative error is about 1e-7 near 0 and grows to 4e-6 at the ends.
static inline vfloat exponential(vfloat x) {
    const float magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
    vfloat t = x * 1.44269504f;
    t = minimum(maximum(t, splat(-126.0f)), splat(126.0f));
    const vfloat shifted = t + magic;
    const vfloat r = t - (shifted - magic);
    const vint n = (vint)shifted - (vint)splat(magic);
    vfloat p = splat(1.5403530e-4f);
    p = p * r + 1.3333558e-3f;
    p = p * r + 9.6181291e-3f;
    p = p * r + 5.5504109e-2f;
    p = p * r + 2.4022651e-1f;
    p = p * r + 6.9314718e-1f;
    p = p * r + 1.0f;
    return (vfloat)((vint)p + (n << 23));
}

static inline vfloat sigmoid(vfloat x) { return 1.0f / (1.0f + exponential(-x)); }
