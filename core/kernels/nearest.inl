// The loops of nearest rows: sums in 16 bits over a block of rows. Included by kernels.inl.

/// round(value * factor / 256)
static inline std::int16_t rounded_product(std::uint8_t value, std::int16_t factor) {
    const std::int32_t v = value << 7;  // as the instruction for many rows multiplies: two numbers of 15 bits
    return static_cast<std::int16_t>(((v * factor >> 14) + 1) >> 1);
}

#if defined(__AVX512BW__)
using vshort = __m512i;
static inline vshort load_shorts(const std::int16_t* p) { return _mm512_loadu_si512(p); }
static inline void store_shorts(std::int16_t* p, vshort v) { _mm512_storeu_si512(p, v); }
static inline vshort add_rounded_products(vshort sum, const std::uint8_t* value, std::int16_t factor) {
    const vshort v = _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(value)));
    return _mm512_add_epi16(sum, _mm512_mulhrs_epi16(_mm512_slli_epi16(v, 7), _mm512_set1_epi16(factor)));
}
#elif defined(__AVX2__)
using vshort = __m256i;
static inline vshort load_shorts(const std::int16_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
static inline void store_shorts(std::int16_t* p, vshort v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
static inline vshort add_rounded_products(vshort sum, const std::uint8_t* value, std::int16_t factor) {
    const vshort v = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(value)));
    return _mm256_add_epi16(sum, _mm256_mulhrs_epi16(_mm256_slli_epi16(v, 7), _mm256_set1_epi16(factor)));
}
#else
using vshort = std::int16_t;
static inline vshort load_shorts(const std::int16_t* p) { return *p; }
static inline void store_shorts(std::int16_t* p, vshort v) { *p = v; }
static inline vshort add_rounded_products(vshort sum, const std::uint8_t* value, std::int16_t factor) {
    return static_cast<std::int16_t>(sum + rounded_product(*value, factor));
}
#endif

template <int Columns>
static inline void add_some(const std::uint8_t* const* column, const std::int16_t* factor, int n, std::int16_t* sums) {
    for (int i = 0; i < n; i += static_cast<int>(sizeof(vshort) / sizeof(std::int16_t))) {
        vshort sum = load_shorts(sums + i);
#pragma GCC unroll 4
        for (int c = 0; c < Columns; ++c) sum = add_rounded_products(sum, column[c] + i, factor[c]);
        store_shorts(sums + i, sum);
    }
}

void nearest_add_columns(const std::uint8_t* const* column, const std::int16_t* factor, int n_columns, int n,
                         std::int16_t* sums) {
    int c = 0;
    for (; c + 4 <= n_columns; c += 4) add_some<4>(column + c, factor + c, n, sums);
    for (; c < n_columns; ++c) add_some<1>(column + c, factor + c, n, sums);
}

void nearest_add_postings(const std::uint32_t* row, const std::uint8_t* value, std::int64_t n, std::uint32_t first,
                          std::int16_t factor, std::int16_t* sums) {
    for (std::int64_t k = 0; k < n; ++k) {
        std::int16_t& sum = sums[row[k] - first];
        sum = static_cast<std::int16_t>(sum + rounded_product(value[k], factor));
    }
}

void nearest_largest(const std::int16_t* sums, int n, std::int16_t* largest) {
    for (int g = 0; g < n / nearest_group; ++g) {
        std::int16_t most = INT16_MIN;
        for (int i = 0; i < nearest_group; ++i) {
            const std::int16_t sum = sums[g * nearest_group + i];
            most = sum > most ? sum : most;
        }
        largest[g] = most;
    }
}

/// Bit i is set if sums[i] >= least, for a group.
static inline std::uint64_t reaching_bits(const std::int16_t* sums, std::int16_t least) {
    static_assert(nearest_group == 64);
#if defined(__AVX512BW__)
    const vshort limit = _mm512_set1_epi16(least);
    const std::uint64_t low = _mm512_cmpge_epi16_mask(load_shorts(sums), limit);
    return low | static_cast<std::uint64_t>(_mm512_cmpge_epi16_mask(load_shorts(sums + 32), limit)) << 32;
#else
    std::uint64_t bits = 0;
    for (int part = 0; part < 4; ++part) {
        std::int16_t most = INT16_MIN;  // most parts end here, many rows at a time
        for (int i = 0; i < 16; ++i) most = sums[16 * part + i] > most ? sums[16 * part + i] : most;
        if (most < least) continue;
        for (int i = 16 * part; i < 16 * part + 16; ++i) bits |= static_cast<std::uint64_t>(sums[i] >= least) << i;
    }
    return bits;
#endif
}

int nearest_reaching(const std::int16_t* sums, int n, std::int16_t least, std::uint32_t* position) {
    int found = 0;
    for (int start = 0; start < n; start += nearest_group)
        for (std::uint64_t bits = reaching_bits(sums + start, least); bits != 0; bits &= bits - 1)
            position[found++] = static_cast<std::uint32_t>(start + __builtin_ctzll(bits));
    return found;
}
