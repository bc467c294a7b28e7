// Vectors of `lanes` floats in the compiler's portable notation, and the few operations that it lacks.
// Included by kernels.inl inside a namespace of its own per instruction set. No standard library here: an inline
// function compiled for a wide instruction set must never be the copy that the linker keeps for all sets.

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

// Sums with a product, rounded once where the instruction set has such an operation and twice elsewhere. They are
// always spelled out: the core is compiled with -ffp-contract=off, so that no compiler chooses for itself where to
// round.
using narrow = float __attribute__((vector_size(16)));  ///< half a vector: rows of up to four columns

#if defined(__FMA__)
static inline vfloat add_product(vfloat sum, vfloat a, vfloat b) {
    return (vfloat)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)sum);
}
static inline vfloat subtract_product(vfloat sum, vfloat a, vfloat b) {
    return (vfloat)_mm256_fnmadd_ps((__m256)a, (__m256)b, (__m256)sum);
}
static inline narrow add_product(narrow sum, narrow a, narrow b) {
    return (narrow)_mm_fmadd_ps((__m128)a, (__m128)b, (__m128)sum);
}
static inline narrow subtract_product(narrow sum, narrow a, narrow b) {
    return (narrow)_mm_fnmadd_ps((__m128)a, (__m128)b, (__m128)sum);
}
static inline float add_product(float sum, float a, float b) { return __builtin_fmaf(a, b, sum); }
static inline double add_product(double sum, double a, double b) { return __builtin_fma(a, b, sum); }
#else
template <class T>
static inline T add_product(T sum, T a, T b) {
    return sum + a * b;
}
template <class T>
static inline T subtract_product(T sum, T a, T b) {
    return sum - a * b;
}
#endif

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
    p = add_product(splat(1.3333558e-3f), p, r);
    p = add_product(splat(9.6181291e-3f), p, r);
    p = add_product(splat(5.5504109e-2f), p, r);
    p = add_product(splat(2.4022651e-1f), p, r);
    p = add_product(splat(6.9314718e-1f), p, r);
    p = add_product(splat(1.0f), p, r);
    return (vfloat)((vint)p + (n << 23));
}

static inline vfloat sigmoid(vfloat x) { return 1.0f / (1.0f + exponential(-x)); }
