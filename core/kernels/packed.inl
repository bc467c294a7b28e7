// Packed rows of a panel (plt/packed_rows.hpp): found by a bitmap of 128 features, twelve bits a weight.
// Included by kernels.inl inside its namespace.

int match_packed(const Entry* x, int n, const std::uint8_t* index, const std::uint8_t* chunks, RowMatch* match) {
    constexpr int ahead = 12;
    static_assert(features_per_block == 128);
    auto entry_of = [&](int k) {
        return index + static_cast<std::size_t>(x[k].feature / features_per_block) * packed_index_bytes;
    };
    int n_matches = 0;
    for (int k = 0; k < n; ++k) {  // no branch: a miss is overwritten by the next feature
        if (k + ahead < n) {
            __builtin_prefetch(entry_of(k + ahead));
            __builtin_prefetch(entry_of(k + ahead) + packed_index_bytes - 1);
        }
        const std::uint8_t* entry = entry_of(k);
        const unsigned second = x[k].feature / 64 % 2;  // no branch on it either
        std::uint32_t chunk;
        std::uint64_t word, first;
        __builtin_memcpy(&chunk, entry, sizeof chunk);
        __builtin_memcpy(&first, entry + sizeof chunk, sizeof first);
        __builtin_memcpy(&word, entry + sizeof chunk + second * sizeof first, sizeof word);
        const std::uint64_t bit = 1ull << (x[k].feature % 64);
        const int place = __builtin_popcountll(word & (bit - 1)) + __builtin_popcountll(first & (0ull - second));
        match[n_matches] = {chunk, static_cast<std::uint8_t>(place), 0, x[k].value};
        __builtin_prefetch(chunks + chunk);
        n_matches += (word & bit) != 0;
    }
    return n_matches;
}

inline std::uint64_t load_bits(const std::uint8_t* bits) {
    std::uint64_t word;
    __builtin_memcpy(&word, bits, sizeof word);
    return word;
}

/// The position of a set bit with so many before it, without branches: it would be unpredictable.
inline unsigned select_bit(std::uint64_t word, unsigned before) {
#if defined(__AVX512F__) && defined(__BMI2__)
    return static_cast<unsigned>(__builtin_ctzll(_pdep_u64(1ull << before, word)));  // slow on some that lack AVX-512
#else
    constexpr std::uint64_t ones = 0x0101010101010101, highs = ones << 7;
    std::uint64_t sums = word - ((word >> 1) & 0x5555555555555555);
    sums = (sums & 0x3333333333333333) + ((sums >> 2) & 0x3333333333333333);
    sums = ((sums + (sums >> 4)) & 0x0f0f0f0f0f0f0f0f) * ones;  // each byte: bits set up to its end
    const unsigned shift = 8 * static_cast<unsigned>(__builtin_popcountll(((before * ones | highs) - sums) & highs));
    unsigned byte = static_cast<unsigned>(word >> shift) & 255;
    const unsigned rank = before - (static_cast<unsigned>(sums << 8 >> shift) & 255);
    for (unsigned k = 0; k < 7; ++k) byte = k < rank ? byte & (byte - 1) : byte;
    return shift + static_cast<unsigned>(__builtin_ctz(byte));
#endif
}

/// The first weight of a chunk's row, from the bits that mark the last ones.
inline std::uint32_t first_weight(const std::uint8_t* bits, unsigned place) {
    std::uint32_t skipped = 0;
    std::uint64_t word = load_bits(bits);
    for (unsigned n; place > (n = static_cast<unsigned>(__builtin_popcountll(word))); word = load_bits(bits)) {
        place -= n;
        bits += sizeof word;
        skipped += 64;
    }
    return place == 0 ? 0 : skipped + select_bit(word, place - 1) + 1;
}

/// Rows a block at a time, as in add_rows.
void add_packed(const RowMatch* match, int n_matches, const std::uint8_t* chunks, const float* values, float* sums) {
    constexpr int block = 64;
    struct Row {
        const std::uint8_t* weights;  // of the whole chunk
        std::uint32_t first, n;
        float value;
    };
    Row row[block];
    for (int begin = 0; begin < n_matches; begin += block) {
        const int n = n_matches - begin < block ? n_matches - begin : block;
        for (int k = 0; k < n; ++k) {
            const RowMatch& m = match[begin + k];
            const std::uint8_t* chunk = chunks + m.chunk;
            std::uint16_t n_weights;
            __builtin_memcpy(&n_weights, chunk, sizeof n_weights);
            const std::uint8_t* bits = chunk + sizeof n_weights;
            const std::uint32_t first = first_weight(bits, m.place);
            const std::uint64_t rest = load_bits(bits + first / 8) >> (first % 8);  // rows are shorter than that
            row[k] = {chunk + packed_weights_at(n_weights), first,
                      static_cast<std::uint32_t>(__builtin_ctzll(rest)) + 1, m.value};
            __builtin_prefetch(row[k].weights + 3 * first / 2);
        }
        for (int k = 0; k < n; ++k) {
            const Row& r = row[k];
            for (std::uint32_t i = r.first; i < r.first + r.n; ++i) {
                std::uint16_t weight;
                __builtin_memcpy(&weight, r.weights + 3 * i / 2, sizeof weight);
                weight = static_cast<std::uint16_t>(weight >> (i % 2 * 4));
                float& sum = sums[weight & 255];
                sum = add_product(sum, r.value, values[weight >> 8 & 15]);
            }
        }
    }
}
