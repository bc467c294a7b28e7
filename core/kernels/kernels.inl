// The kernels, written once. Each kernels_<set>.cpp includes this with RAMIFY_KERNELS (the table's name) and
// RAMIFY_LANES defined, compiled with that instruction set's flags.
#include "kernels/kernels.hpp"

#include "base/hashing.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ramify {
namespace {

constexpr int lanes = RAMIFY_LANES;

#include "kernels/vector_math.inl"

/// Small and fast random numbers (splitmix64), the same on every platform.
struct Random {
    std::uint64_t state;
    std::uint32_t below(std::uint32_t n) {
        return static_cast<std::uint32_t>(((splitmix_rounds(state += golden_ratio) >> 32) * n) >> 32);
    }
};

inline void prefetch(const void* p, std::size_t bytes) {
    for (std::size_t o = 0; o < bytes; o += 64) __builtin_prefetch(static_cast<const char*>(p) + o);
}

/// scores[t] = x . weights of group t, for the groups whose bit is set in Mask.
template <int Groups, int Mask>
inline void tile_dot(const Entry* x, int n, const float* weights, vfloat* scores) {
    constexpr int n_set = __builtin_popcount(Mask);
    constexpr int unroll = n_set <= 2 ? 4 : 2;  // independent sums hide the latency of the additions
    vfloat sum[unroll][Groups];
    for (int u = 0; u < unroll; ++u)
        for (int t = 0; t < Groups; ++t) sum[u][t] = vfloat{};
    int k = 0;
    for (; k + unroll <= n; k += unroll) {
#pragma GCC unroll 8
        for (int u = 0; u < unroll; ++u) {
            const float* w = weights + static_cast<std::size_t>(x[k + u].feature) * (lanes * Groups);
            const vfloat value = splat(x[k + u].value);
#pragma GCC unroll 8
            for (int t = 0; t < Groups; ++t)
                if (Mask >> t & 1) sum[u][t] = add_product(sum[u][t], value, load(w + t * lanes));
        }
    }
    for (; k < n; ++k) {
        const float* w = weights + static_cast<std::size_t>(x[k].feature) * (lanes * Groups);
        const vfloat value = splat(x[k].value);
#pragma GCC unroll 8
        for (int t = 0; t < Groups; ++t)
            if (Mask >> t & 1) sum[0][t] = add_product(sum[0][t], value, load(w + t * lanes));
    }
    for (int t = 0; t < Groups; ++t)
        if (Mask >> t & 1) {
            scores[t] = sum[0][t];
            for (int u = 1; u < unroll; ++u) scores[t] += sum[u][t];
        }
}

/// weights of group t += x * step[t], for the groups whose bit is set in Mask.
template <int Groups, int Mask>
inline void tile_add(const Entry* x, int n, float* weights, const vfloat* step) {
    vfloat s[Groups];
    for (int t = 0; t < Groups; ++t) s[t] = step[t];
#pragma GCC unroll 2
    for (int k = 0; k < n; ++k) {
        float* w = weights + static_cast<std::size_t>(x[k].feature) * (lanes * Groups);
        const vfloat value = splat(x[k].value);
#pragma GCC unroll 8
        for (int t = 0; t < Groups; ++t)
            if (Mask >> t & 1) store(w + t * lanes, add_product(load(w + t * lanes), value, s[t]));
    }
}

using DotFunction = void (*)(const Entry*, int, const float*, vfloat*);
using AddFunction = void (*)(const Entry*, int, float*, const vfloat*);

/// One compiled version per set of active groups, so that the loops have no branches.
template <int Groups>
struct MaskedTable {
    DotFunction dot[1 << Groups];
    AddFunction add[1 << Groups];
    template <int Mask = 0>
    constexpr void fill() {
        dot[Mask] = tile_dot<Groups, Mask>;
        add[Mask] = tile_add<Groups, Mask>;
        if constexpr (Mask + 1 < (1 << Groups)) fill<Mask + 1>();
    }
    constexpr MaskedTable() : dot{}, add{} { fill(); }
};

/// One group's dual step. Squared hinge has it in closed form; `kept`: in which columns the row can still move.
inline vfloat hinge_step(vfloat y, vfloat score, vfloat dual, vfloat half_inverse_C, vfloat rate, vfloat& new_dual,
                         vint& kept) {
    const vfloat gradient = add_product(add_product(splat(-1.0f), y, score), dual, half_inverse_C);
    new_dual = maximum(subtract_product(dual, gradient, rate), vfloat{});
    kept = (new_dual > 0.0f) | (gradient <= 0.1f);
    return new_dual - dual;
}

/// Logistic loss: the new margin is the root of z = base + c * sigmoid(-z), found by Newton from a side where it is
/// monotone.
inline vfloat logistic_step(vfloat y, vfloat score, vfloat dual, vfloat C, float squared_norm, float eta,
                            vfloat& new_dual) {
    const vfloat c = C * squared_norm;
    vfloat z = y * score;
    const vfloat base = subtract_product(z, c, dual);
    const vfloat at_zero = subtract_product(-base, splat(0.5f), c);
    const vfloat at_z = subtract_product(z - base, c, sigmoid(-z));
    const vint start_is_good = (at_zero * at_z > 0.0f) & (at_zero * z < 0.0f);
    z = start_is_good ? z : vfloat{};
    // Three steps do for rows of unit length; long rows at a high C need about log(c), and would overshoot with fewer.
    for (int i = 0; i < 40; ++i) {
        const vfloat u = sigmoid(-z);
        const vfloat cu = c * u;
        const vfloat newton = (z - base - cu) / add_product(splat(1.0f), cu, 1.0f - u);
        z = z - newton;
        if (i >= 2 && !any(absolute(newton) > 0.02f)) break;
    }
    new_dual = add_product(dual, splat(eta), sigmoid(-z) - dual);
    return (new_dual - dual) * C;
}

/// What a row and a column add to the duality gap, which is 0 at the optimum: the loss and its conjugate at the dual
/// variable, less their product. The weights are those of the moment, so an epoch's sum is a mean over its course.
inline vfloat hinge_gap(vfloat y, vfloat score, vfloat dual, vfloat half_inverse_C, vfloat C) {
    const vfloat slack = subtract_product(splat(1.0f), y, score), positive = maximum(slack, vfloat{});
    return add_product(C * positive * positive, dual, subtract_product(vfloat{} - slack, dual * -0.5f, half_inverse_C));
}

/// By its lower bound, Pinsker's inequality, which needs no logarithms.
inline vfloat logistic_gap(vfloat y, vfloat score, vfloat dual, vfloat C) {
    const vfloat distance = dual - sigmoid(-(y * score));
    return 2.0f * C * distance * distance;
}

/// The duality gap of an epoch against that of the first one, over the columns of a tile.
class EpochGap {
public:
    void begin_epoch() {
        sum_ = 0;
        part_ = vfloat{};
        n_rows_ = 0;
    }
    void add_row(vfloat gap) {
        part_ += gap;
        if (++n_rows_ % 256 == 0) flush();
    }
    /// Whether the epoch that ended has at most this share of the first one's gap.
    bool is_below(float share) {
        flush();
        if (first_ < 0) {
            first_ = n_rows_ > 0 ? sum_ : -1;
            return false;
        }
        return sum_ <= share * first_;
    }

private:
    void flush() {
        for (int lane = 0; lane < lanes; ++lane) sum_ += static_cast<double>(part_[lane]);
        part_ = vfloat{};
    }

    vfloat part_{};
    double sum_ = 0, first_ = -1;
    int n_rows_ = 0;
};

/// What a squared hinge needs of a row's C for one sign of y. Divisions are slow: once a row, not once a group.
struct HingeCost {
    float C, half_inverse, rate;
    HingeCost(float C, float squared_norm, float eta)
        : C(C), half_inverse(0.5f / C), rate(eta / (squared_norm + half_inverse)) {}
};

/// Moves rows that have shrunk away in all columns behind the others; the number of those.
inline int active_first(int* order, int n, const std::uint8_t* active) {
    int n_active = 0;
    for (int k = 0; k < n; ++k) {
        const int r = order[k];
        if (!active[r]) continue;
        order[k] = order[n_active];
        order[n_active++] = r;
    }
    return n_active;
}

/// Rows of up to this many features are computed for all groups, also those that have shrunk away or do not change: a
/// jump to the version for some groups, seldom the same as that of the row before, costs more than it saves.
constexpr int short_row = 24;
/// Rows come in random order: they are asked of memory this many rows before they are needed.
constexpr int tile_rows_ahead = 4;

template <int Groups, bool is_hinge>
void solve_groups(const TileProblem& p, const SolverSettings& settings) {
    constexpr int all_groups = (1 << Groups) - 1;
    constexpr int stride = lanes * Groups;
    static constexpr MaskedTable<Groups> table;
    Random random{p.seed + static_cast<std::uint64_t>(p.first_epoch)};
    if (p.first_epoch == 0)
        for (int r = 0; r < p.n_rows; ++r) {
            p.active[r] = all_groups;
            p.order[r] = r;
        }
    vint is_column;  // of the last group: the others are full
    for (int lane = 0; lane < lanes; ++lane) is_column[lane] = p.n_columns > stride - lanes + lane ? -1 : 0;
    const vfloat eps = splat(settings.eps);
    vfloat score[Groups], step[Groups];
    EpochGap gap;
    const bool has_gap = settings.gap > 0;
    bool is_last = false;
    int n_active = p.n_rows;

    for (int epoch = p.first_epoch; epoch < p.end_epoch && !is_last; ++epoch) {
        is_last = epoch == settings.max_epochs - 1 || (has_gap && gap.is_below(settings.gap));
        gap.begin_epoch();
        // A fixed order is faster and converges badly: rows are reshuffled for every epoch.
        n_active = active_first(p.order, n_active, p.active);
        for (int k = n_active - 1; k > 0; --k) {
            const int j = static_cast<int>(random.below(static_cast<std::uint32_t>(k + 1)));
            const int held = p.order[k];
            p.order[k] = p.order[j];
            p.order[j] = held;
        }
        const float eta = is_last ? settings.last_step : 1.0f;
        bool moved = false;
        for (int k = 0; k < n_active; ++k) {
            if (k % 4096 == 0 && p.should_stop && p.should_stop(p.watch)) return;
            const int r = p.order[k];
            if (k + 2 * tile_rows_ahead < n_active) {
                const int later = p.order[k + 2 * tile_rows_ahead];
                __builtin_prefetch(p.rows + later);
                __builtin_prefetch(p.active + later);
            }
            if (k + tile_rows_ahead < n_active) {
                const int next = p.order[k + tile_rows_ahead];
                prefetch(p.rows[next].entries, static_cast<std::size_t>(p.rows[next].length) * sizeof(Entry));
                prefetch(p.dual + static_cast<std::size_t>(next) * stride, stride * sizeof(float));
            }
            const TileRow row = p.rows[r];
            const int active = p.active[r];
            const Entry* x = row.entries;
            const int n = row.length;
            if (active == all_groups || n <= short_row)
                tile_dot<Groups, all_groups>(x, n, p.weights, score);
            else
                table.dot[active](x, n, p.weights, score);

            float* dual = p.dual + static_cast<std::size_t>(r) * stride;
            const float C = settings.C * row.weight;
            const HingeCost of_positive(C * settings.positive_weight, row.squared_norm, eta);
            const HingeCost of_negative(C, row.squared_norm, eta);
            int changed = 0, still_active = 0;
            vfloat row_gap{};
#pragma GCC unroll 4
            for (int t = 0; t < Groups; ++t) {
                // No branches: which groups change is hard to foresee.
                const vint counts = vint{} - (active >> t & 1);
                const vfloat y = signs(row.positive >> (lanes * t));
                const vfloat a = load(dual + t * lanes);
                const vfloat column_C = y > 0.0f ? splat(of_positive.C) : splat(of_negative.C);
                vfloat new_dual, d, of_group;
                if constexpr (is_hinge) {
                    const vfloat half_inverse_C =
                        y > 0.0f ? splat(of_positive.half_inverse) : splat(of_negative.half_inverse);
                    const vfloat rate = y > 0.0f ? splat(of_positive.rate) : splat(of_negative.rate);
                    vint kept;
                    d = hinge_step(y, score[t], a, half_inverse_C, rate, new_dual, kept);
                    still_active |= any(kept & counts) << t;
                    of_group = hinge_gap(y, score[t], a, half_inverse_C, column_C);
                } else {
                    d = logistic_step(y, score[t], a, column_C, row.squared_norm, eta, new_dual);
                    of_group = logistic_gap(y, score[t], a, column_C);
                }
                row_gap += (vfloat)((vint)of_group & (t == Groups - 1 ? counts & is_column : counts));
                const int changes = any((absolute(d) > eps) & counts);
                changed |= changes << t;
                const vint taken = (vint{} - changes) & counts;
                store(dual + t * lanes, taken ? new_dual : a);
                step[t] = (vfloat)((vint)(d * y) & taken);
            }
            gap.add_row(row_gap);
            if constexpr (is_hinge) p.active[r] = static_cast<std::uint8_t>(still_active);
            if (!changed) continue;
            moved = true;
            if (changed == all_groups || n <= short_row)
                tile_add<Groups, all_groups>(x, n, p.weights, step);
            else
                table.add[changed](x, n, p.weights, step);
        }
        if (!moved) break;
    }
}

template <bool is_hinge>
void solve_with_loss(const TileProblem& p, const SolverSettings& settings) {
    switch (p.stride / lanes) {
        case 1: return solve_groups<1, is_hinge>(p, settings);
        case 2: return solve_groups<2, is_hinge>(p, settings);
#if RAMIFY_LANES == 8
        case 3: return solve_groups<3, is_hinge>(p, settings);
        case 4: return solve_groups<4, is_hinge>(p, settings);
#endif
    }
}

void solve_tile(const TileProblem& p, const SolverSettings& settings) {
    if (settings.loss == Loss::squared_hinge)
        solve_with_loss<true>(p, settings);
    else
        solve_with_loss<false>(p, settings);
}

int match_bitmap(const Entry* x, int n, const std::uint32_t* index, const std::uint8_t* rows, RowMatch* match) {
    constexpr int ahead = 12;
    int n_matches = 0;
    for (int k = 0; k < n; ++k) {  // no branch: a miss is overwritten by the next feature
        if (k + ahead < n) __builtin_prefetch(index + x[k + ahead].feature / 64 * 3);
        const std::uint32_t feature = x[k].feature;
        const std::uint32_t* entry = index + feature / 64 * 3;
        const std::uint64_t word = entry[1] | static_cast<std::uint64_t>(entry[2]) << 32, bit = 1ull << (feature % 64);
        const auto place = static_cast<std::uint8_t>(__builtin_popcountll(word & (bit - 1)));
        match[n_matches] = {entry[0], place, static_cast<std::uint8_t>(__builtin_popcountll(word)), x[k].value};
        __builtin_prefetch(rows + (entry[0] & ~wide_chunk) + (place << (entry[0] >> 31)));
        n_matches += (word & bit) != 0;
    }
    return n_matches;
}

/// Which of up to sixteen keys, one after the other, are this one: a bit for each.
template <class Key>
inline unsigned equal_keys(const std::uint8_t* keys, std::uint32_t sought) {
    unsigned bits = 0;
#if defined(__SSE2__)
    auto load = [&](int i) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(keys) + i); };
    if constexpr (sizeof(Key) == 1) {
        return _mm_movemask_epi8(_mm_cmpeq_epi8(load(0), _mm_set1_epi8(static_cast<char>(sought))));
    } else if constexpr (sizeof(Key) == 2) {
        const __m128i key = _mm_set1_epi16(static_cast<short>(sought));
        return _mm_movemask_epi8(_mm_packs_epi16(_mm_cmpeq_epi16(load(0), key), _mm_cmpeq_epi16(load(1), key)));
    } else {
        const __m128i key = _mm_set1_epi32(static_cast<int>(sought));
        for (int i = 0; i < 4; ++i) bits |= _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(load(i), key))) << (4 * i);
    }
#else
    for (int i = 0; i < 16; ++i) {
        Key key;  // little-endian, as the whole file
        __builtin_memcpy(&key, keys + i * sizeof key, sizeof key);
        bits |= static_cast<unsigned>(key == sought) << i;
    }
#endif
    return bits;
}

template <class Key>
inline int match_keys(const Entry* x, int n, const std::uint32_t* begin, int bucket_bits, const std::uint8_t* rows,
                      const std::uint8_t* end, RowMatch* match) {
    constexpr int ahead = 12, at_once = 16;
    const std::uint32_t last = (1u << bucket_bits) - 1;
    auto fetch = [&](int k) { __builtin_prefetch(rows + (begin[x[k].feature & last] & ~wide_chunk)); };
    for (int k = 0; k < n && k < ahead; ++k) fetch(k);
    int n_matches = 0;
    for (int k = 0; k < n; ++k) {
        if (k + ahead < n) fetch(k + ahead);
        const std::uint32_t bucket = x[k].feature & last, at = begin[bucket] & ~wide_chunk;
        if (at == (begin[bucket + 1] & ~wide_chunk)) continue;
        const std::uint32_t sought = x[k].feature >> bucket_bits;
        const std::uint8_t* keys = rows + at + 1;
        const int n_rows = rows[at];
        int place = n_rows;
        if (n_rows <= at_once && end - keys >= static_cast<std::int64_t>(at_once * sizeof(Key))) {
            place =
                __builtin_ctz(equal_keys<Key>(keys, sought) | 1u << n_rows);  // no branch, it would be unpredictable
        } else {
            for (int i = n_rows - 1; i >= 0; --i) {
                Key key;
                __builtin_memcpy(&key, keys + static_cast<std::size_t>(i) * sizeof key, sizeof key);
                if (key == sought) place = i;
            }
        }
        match[n_matches] = {(at + 1 + static_cast<std::uint32_t>(n_rows * sizeof(Key))) | (begin[bucket] & wide_chunk),
                            static_cast<std::uint8_t>(place), static_cast<std::uint8_t>(n_rows), x[k].value};
        n_matches += place < n_rows;
    }
    return n_matches;
}

int match_buckets(const Entry* x, int n, const std::uint32_t* begin, int bucket_bits, int key_bytes,
                  const std::uint8_t* rows, const std::uint8_t* end, RowMatch* match) {
    if (key_bytes == 1) return match_keys<std::uint8_t>(x, n, begin, bucket_bits, rows, end, match);
    if (key_bytes == 2) return match_keys<std::uint16_t>(x, n, begin, bucket_bits, rows, end, match);
    return match_keys<std::uint32_t>(x, n, begin, bucket_bits, rows, end, match);
}

// The product of two floats is exact in double, so rounding once or twice is the same, and both loops add up in a fixed
// number of partial sums: all instruction sets agree to the bit.
double dot_list(const std::int32_t* feature, const float* weight, std::int64_t n, const float* x) {
    constexpr int parts = 8;
    double sum[parts] = {};
    std::int64_t k = 0;
    for (; k + parts <= n; k += parts)
        for (int p = 0; p < parts; ++p)
            sum[p] = add_product(sum[p], static_cast<double>(x[feature[k + p]]), static_cast<double>(weight[k + p]));
    for (int p = 0; k < n; ++k, ++p)
        sum[p] = add_product(sum[p], static_cast<double>(x[feature[k]]), static_cast<double>(weight[k]));
    return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

double dot_bitmap(const Entry* x, int n, const BitmapWord* bitmap, const float* weight) {
    constexpr int parts = 4;
    double sum[parts] = {};
    auto add_entry = [&](double& to, const Entry& e) {
        const BitmapWord word = bitmap[e.feature / 64];
        const unsigned shift = e.feature % 64;
        // No branch, it would be unpredictable: a feature without a weight reads the first one, times zero.
        const std::uint64_t mask = 0 - (word.bits >> shift & 1);
        const std::uint64_t at = word.before + __builtin_popcountll(word.bits & ((1ull << shift) - 1));
        std::uint32_t value;
        __builtin_memcpy(&value, &e.value, sizeof value);
        value &= static_cast<std::uint32_t>(mask);
        float masked;
        __builtin_memcpy(&masked, &value, sizeof masked);
        to = add_product(to, static_cast<double>(masked), static_cast<double>(weight[at & mask]));
    };
    int k = 0;
    for (; k + parts <= n; k += parts)
        for (int p = 0; p < parts; ++p) add_entry(sum[p], x[k + p]);
    for (int p = 0; k < n; ++k, ++p) add_entry(sum[p], x[k]);
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

using vbyte8 = signed char __attribute__((vector_size(8)));

/// Eight weights of a frozen group as floats.
inline vfloat load_weights(const std::int8_t* p) {
#if defined(__AVX2__)
    return (vfloat)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
#else
    vbyte8 w;
    __builtin_memcpy(&w, p, sizeof w);
    return __builtin_convertvector(w, vfloat);
#endif
}

struct RowBytes {
    const std::uint8_t* begin;
    const std::uint8_t* end;
    bool has_groups;
};

inline RowBytes row_bytes(const RowMatch& m, const std::uint8_t* rows) {
    const bool is_wide = (m.chunk & wide_chunk) != 0;
    const std::uint8_t* chunk = rows + (m.chunk & ~wide_chunk);
    const std::uint8_t* first = chunk + (m.n_rows << is_wide);
    const RowEnd end = row_end(chunk, is_wide, m.place);
    return {first + (m.place == 0 ? 0 : row_end(chunk, is_wide, m.place - 1).byte), first + end.byte, end.has_groups};
}

/// A row of all groups of a panel, in order: its weights need no places.
struct FullRow {
    const std::uint8_t* groups;
    float value;
};

/// Groups of columns from `first` on, whose sums stay in registers while all rows pass.
template <int Groups>
inline void add_full_rows(const FullRow* row, int n, int first, float* sums) {
    vfloat sum[Groups];
    for (int g = 0; g < Groups; ++g) sum[g] = load(sums + group_columns * (first + g));
    for (int k = 0; k < n; ++k) {
        const std::uint8_t* group = row[k].groups + (1 + group_columns) * first;
        const vfloat value = splat(row[k].value);
#pragma GCC unroll 8
        for (int g = 0; g < Groups; ++g)
            sum[g] = add_product(
                sum[g], value, load_weights(reinterpret_cast<const std::int8_t*>(group + (1 + group_columns) * g + 1)));
    }
    for (int g = 0; g < Groups; ++g) store(sums + group_columns * (first + g), sum[g]);
}

/// Rows a block at a time: where they lie is known, and fetched, well before they are read.
void add_rows(const RowMatch* match, int n_matches, const std::uint8_t* rows, int n_columns, float* sums) {
    constexpr int block = 64;
    const int all_groups = (n_columns + group_columns - 1) / group_columns;
    RowBytes row[block];
    FullRow full[block];
    for (int begin = 0; begin < n_matches; begin += block) {
        const int n = n_matches - begin < block ? n_matches - begin : block;
        for (int k = 0; k < n; ++k) {
            row[k] = row_bytes(match[begin + k], rows);
            __builtin_prefetch(row[k].begin);
            __builtin_prefetch(row[k].begin + (row[k].has_groups ? 64 : 0));
            __builtin_prefetch(row[k].end);
        }
        int n_full = 0, n_others = 0;
        float other_value[block];
        for (int k = 0; k < n; ++k) {  // no branch, it would be unpredictable
            const RowBytes r = row[k];
            const std::uint8_t none = 0, *count = r.has_groups ? r.begin : &none;  // a row may have no bytes
            const bool is_full = r.has_groups & (*count == all_groups);
            full[n_full] = {r.begin + 1, match[begin + k].value};
            row[n_others] = r;
            other_value[n_others] = match[begin + k].value;
            n_full += is_full;
            n_others += !is_full;
        }
        if (n_full > 0) {
            int g = 0;
            for (; g + 8 <= all_groups; g += 8) add_full_rows<8>(full, n_full, g, sums);
            if (g + 4 <= all_groups) add_full_rows<4>(full, n_full, g, sums), g += 4;
            if (g + 2 <= all_groups) add_full_rows<2>(full, n_full, g, sums), g += 2;
            if (g < all_groups) add_full_rows<1>(full, n_full, g, sums);
        }
        for (int k = 0; k < n_others; ++k) {
            auto [at, end, has_groups] = row[k];
            const float value = other_value[k];
            if (has_groups) {
                const vfloat v = vfloat{} + value;
                for (int g = *at++; g > 0; --g, at += 1 + group_columns) {
                    float* target = sums + group_columns * *at;
                    vfloat s;
                    __builtin_memcpy(&s, target, sizeof s);
                    s = add_product(s, v, load_weights(reinterpret_cast<const std::int8_t*>(at + 1)));
                    __builtin_memcpy(target, &s, sizeof s);
                }
            }
            for (; at < end; at += 2)
                sums[at[0]] = add_product(sums[at[0]], value, static_cast<float>(static_cast<std::int8_t>(at[1])));
        }
    }
}

#include "kernels/dense.inl"
#include "kernels/packed.inl"

constexpr int link_block = 64;  // columns whose places on the link map are found together

void to_logits(float* sums, const float* scale, const float* rate, int n, LinkMap map) {
    // Huge features must not become infinite logits, which a softmax cannot compare; infinities of both signs
    // add up to NaN: no evidence either way, so logit 0.
    auto finite = [](float logit) {
        return logit == logit ? (logit > 1e30f ? 1e30f : (logit < -1e30f ? -1e30f : logit)) : 0.0f;
    };
    if (map.n_knots == 0) {
        for (int c = 0; c < n; ++c) sums[c] = finite(sums[c] * scale[c]);
        return;
    }
    const float per_step = 1.0f / map.step, last = static_cast<float>(map.n_knots - 2);
    for (int first = 0; first < n; first += link_block) {
        const int m = n - first < link_block ? n - first : link_block;
        float at[link_block], low[link_block], high[link_block];
        int knot[link_block];
        for (int c = 0; c < m; ++c) at[c] = add_product(-map.low, sums[first + c], scale[first + c]) * per_step;
        for (int c = 0; c < m; ++c) knot[c] = static_cast<int>(at[c] >= 0.0f ? (at[c] < last ? at[c] : last) : 0.0f);
        for (int c = 0; c < m; ++c) {  // the only part that is not done for many columns at once
            low[c] = add_product(map.logits[knot[c]], map.slopes[knot[c]], rate[first + c]);
            high[c] = add_product(map.logits[knot[c] + 1], map.slopes[knot[c] + 1], rate[first + c]);
        }
        for (int c = 0; c < m; ++c)
            sums[first + c] = finite(add_product(low[c], at[c] - static_cast<float>(knot[c]), high[c] - low[c]));
    }
}

void to_probabilities(float* logits, int n) {
    constexpr int step = lanes;
    int c = 0;
    for (; c + step <= n; c += step) store(logits + c, sigmoid(load(logits + c)));
    if (c < n) {
        float rest[lanes] = {};
        for (int i = c; i < n; ++i) rest[i - c] = logits[i];
        store(rest, sigmoid(load(rest)));
        for (int i = c; i < n; ++i) logits[i] = rest[i - c];
    }
}

/// Given that exactly one is true, independent probabilities are proportional to their odds.
void to_softmax(float* logits, int n) {
    if (n == 0) return;
    const int padded = (n + lanes - 1) / lanes * lanes;
    float largest = logits[0];
    for (int c = 1; c < n; ++c) largest = logits[c] > largest ? logits[c] : largest;
    for (int c = n; c < padded; ++c) logits[c] = -1e38f;
    vfloat sums{};
    for (int c = 0; c < padded; c += lanes) {
        const vfloat p = exponential(load(logits + c) - largest);
        sums += p;
        store(logits + c, p);
    }
    double sum = 0;
    for (int lane = 0; lane < lanes; ++lane) sum += static_cast<double>(sums[lane]);
    const vfloat scale = splat(static_cast<float>(1.0 / sum));
    for (int c = 0; c < padded; c += lanes) store(logits + c, load(logits + c) * scale);
}

int reaching(const float* p, int n, float factor, float least, std::int32_t* position, float* product) {
    int n_found = 0;
    for (int first = 0; first < n; first += lanes) {
        const int m = n - first < lanes ? n - first : lanes;
        const vfloat products = load(p + first) * factor;
        unsigned bits = 0;
#if defined(__AVX__)
        bits = static_cast<unsigned>(
            _mm256_movemask_ps(_mm256_cmp_ps((__m256)products, _mm256_set1_ps(least), _CMP_GE_OQ)));
#else
        for (int i = 0; i < lanes; ++i) bits |= static_cast<unsigned>(products[i] >= least) << i;
#endif
        bits &= (1u << m) - 1;
        for (; bits != 0; bits &= bits - 1) {
            const int i = __builtin_ctz(bits);
            position[n_found] = first + i;
            product[n_found++] = p[first + i] * factor;
        }
    }
    return n_found;
}

#include "kernels/embedding.inl"
#include "kernels/freeze.inl"
#include "kernels/nearest.inl"
#include "kernels/online.inl"
#include "kernels/regressor.inl"

}  // namespace

const Kernels RAMIFY_KERNELS{
    RAMIFY_KERNELS_NAME,
    RAMIFY_LANES,
    solve_tile,
    match_bitmap,
    match_buckets,
    add_rows,
    match_packed,
    add_packed,
    add_dense,
    dot_list,
    dot_bitmap,
    to_logits,
    to_probabilities,
    to_softmax,
    reaching,
    {online_score, online_gradient, online_adagrad, online_descend, online_replay_adagrad, online_replay_descend},
    {embedding_sum, embedding_dots, embedding_add, embedding_sum_bytes, embedding_dots_bytes},
    {regressor_dot, regressor_adagrad_factors, regressor_descend},
    {nearest_add_columns, nearest_add_postings, nearest_largest, nearest_reaching},
    {freeze_scan, freeze_to_bytes}};

}  // namespace ramify
