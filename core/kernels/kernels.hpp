/// The loops that are worth vector instructions, compiled once per instruction set and chosen at run time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ramify {

/// One non-zero of a row: feature number and value.
struct Entry {
    std::uint32_t feature;
    float value;
};

enum class Loss : int { squared_hinge = 0, logistic = 1 };

struct SolverSettings {
    Loss loss = Loss::squared_hinge;
    float C = 1.0f;                ///< cost of a training error against the L2 norm of the weights
    float positive_weight = 1.0f;  ///< multiplies C for positive examples
    int max_epochs = 5;
    float gap = 0.0f;  ///< one damped epoch follows the first whose duality gap is below this share of the first's
    float last_step = 0.6f;      ///< the last epoch takes damped steps, which averages the noise of the row order away
    float eps = 0.01f;           ///< dual steps smaller than this are not taken; an epoch without any ends the work
    float prune = 0.1f;          ///< weights of at most this size are dropped
    bool packs = false;          ///< rows of few weights in large panels take less room (plt/packed_rows.hpp)
    float learning_rate = 0.0f;  ///< above 0: FOBOS with this rate instead, for weights that nodes share by hashing
    float l2 = 0.0f;             ///< FOBOS: strength of the regulariser

    bool operator==(const SolverSettings&) const = default;
};

/// The widest tile: siblings solved together, so that their weights and accumulators stay close.
inline constexpr int max_tile_columns = 32;

/// What a row is to a tile, together, so that it is found with one access to memory.
struct TileRow {
    const Entry* entries;    ///< its non-zeros
    int length;              ///< how many
    float squared_norm;      ///< their squares, summed up
    float weight;            ///< importance: multiplies the cost of errors
    std::uint32_t positive;  ///< bit c: column c is positive
};

/// Binary problems of some siblings on the same rows: dual coordinate descent, all columns of a row at once.
struct TileProblem {
    int n_rows;
    int n_columns;  ///< at most max_tile_columns; padded to `stride` floats a feature
    int stride;     ///< multiple of the kernels' lanes
    const TileRow* rows;
    float* weights;        ///< [n_features][stride], zero on entry
    float* dual;           ///< [n_rows][stride], zero on entry
    std::uint8_t* active;  ///< scratch, n_rows: the groups of columns that are not shrunk away
    int* order;            ///< scratch, n_rows
    int first_epoch = 0;   ///< a problem may be solved some epochs at a time, on the same arrays
    int end_epoch = 0;
    std::uint64_t seed = 0;
    bool (*should_stop)(void*) =
        nullptr;            ///< asked every few thousand rows, if there is one; the answer is then worthless
    void* watch = nullptr;  ///< its argument
};

/// Eight neighbouring columns of a frozen panel; see panel_rows.hpp.
inline constexpr int group_columns = 8;

/// In an index: the chunk that begins here holds groups, or so much that ends of rows take two bytes.
inline constexpr std::uint32_t wide_chunk = 1u << 31;
/// In a wide chunk: the row that ends here begins with groups.
inline constexpr std::uint32_t row_has_groups = 1u << 15;

/// Where a row ends, counted from the first row of its chunk.
struct RowEnd {
    std::uint32_t byte;
    bool has_groups;
};
static inline RowEnd row_end(const std::uint8_t* chunk, bool is_wide, int place) {
    if (!is_wide) return {2u * chunk[place], false};
    const std::uint32_t end = chunk[2 * place] | static_cast<std::uint32_t>(chunk[2 * place + 1]) << 8;
    return {end & ~row_has_groups, (end & row_has_groups) != 0};
}

/// A feature of x that a panel knows.
struct RowMatch {
    std::uint32_t chunk;  ///< where its chunk begins, with the mark of a wide one
    std::uint8_t place;   ///< of the row in the chunk
    std::uint8_t n_rows;  ///< of the chunk
    float value;
};

/// Packed rows (plt/packed_rows.hpp): features of a block, bytes of its entry in the index, values of a weight, and
/// bytes behind the last chunk that may be read.
inline constexpr int features_per_block = 128, packed_index_bytes = 20, packed_values = 16, packed_padding = 8;

/// Where the weights of a packed chunk begin: behind their number and a bit for each.
static inline int packed_weights_at(int n_weights) { return 2 + (n_weights + 7) / 8; }

/// A logit map, piecewise linear on a uniform grid of scores and linear beyond it; n_knots = 0 is the identity.
/// The logit of a column is that of its score, plus the slope at its score times the log of the column's rate.
struct LinkMap {
    const float* logits = nullptr;
    const float* slopes = nullptr;
    int n_knots = 0;
    float low = 0.0f;
    float step = 1.0f;
};

/// Sixty-four features of a sparse weight vector: which of them have a weight, and how many weights come before.
struct BitmapWord {
    std::uint64_t bits = 0;
    std::uint64_t before = 0;
};

/// Sizes of AdaGrad's steps: rate * gradient / (sqrt(sum + eps_in_root) + decay * sum + eps), sum that of the squares.
struct AdaGradSteps {
    float rate = 1.0f, eps = 0.0f, eps_in_root = 0.0f, decay = 0.0f;
};

/// One step of a row that is not stored: which of the block's gradients, and the feature's value in that example.
struct ReplayedStep {
    std::uint32_t gradient;
    float value;
};

/// The loops of online learning, over rows that start with a weight per column (online_plt/block.hpp).
/// Columns are rounded up, in rows to 4 or a multiple of 8, in scores, signs and gradients to a multiple of 8.
struct OnlineKernels {
    /// scores[c] = sum over k of value[k] * weight c of row[k].
    void (*score)(const float* const* row, const float* value, int n, int n_columns, float* scores);
    /// From scores (times scale) to gradients of the logistic loss, in place; sign is +1, -1, or 0 for a column that
    /// learns nothing.
    void (*gradient)(const float* sign, float scale, float weight, int n_columns, float* scores);
    /// AdaGrad: the sums of squared gradients are `to_sums` floats behind the weights.
    void (*adagrad)(float* const* row, std::size_t to_sums, const float* value, int n, int n_columns,
                    const float* gradient, AdaGradSteps steps);
    /// Plain descent.
    void (*descend)(float* const* row, const float* value, int n, int n_columns, const float* gradient, float rate);
    /// The row that n steps of `adagrad`, or of `descend` with rate one, make of zeros, bit for bit.
    void (*replay_adagrad)(const ReplayedStep* step, int n, const float* gradients, std::size_t stride, int n_columns,
                           AdaGradSteps steps, float* weights, float* sums);
    void (*replay_descend)(const ReplayedStep* step, int n, const float* gradients, std::size_t stride, int n_columns,
                           float* weights);
};

/// The loops of embedding bags, over rows of `stride` floats or bytes, a multiple of 8 (embedding_bag.hpp).
struct EmbeddingKernels {
    /// sum = sum over k of value[k] * rows[index[k]].
    void (*sum)(const float* rows, std::size_t stride, const std::uint32_t* index, const float* value, int n,
                float* sum);
    /// products[k] = rows[index[k]] . x.
    void (*dots)(const float* rows, std::size_t stride, const std::uint32_t* index, int n, const float* x,
                 float* products);
    /// rows[index[k]] += value[k] * x.
    void (*add)(float* rows, std::size_t stride, const std::uint32_t* index, const float* value, int n, const float* x);
    /// The first two for rows of bytes, each with a scale.
    void (*sum_bytes)(const std::int8_t* rows, const float* scale, std::size_t stride, const std::uint32_t* index,
                      const float* value, int n, float* sum);
    void (*dots_bytes)(const std::int8_t* rows, const float* scale, std::size_t stride, const std::uint32_t* index,
                       int n, const float* x, float* products);
};

/// The loops of one linear regressor that learns online: weights, sums of squared gradients and a row, all n floats
/// long. n is a multiple of regressor_lanes.
inline constexpr int regressor_lanes = 16;
struct RegressorKernels {
    /// x . w
    float (*dot)(const float* weight, const float* x, int n);
    /// Adds the squares of gradient * x to the sums; factor = rate / (root of the sum + eps). Returns the sum of x * x
    /// * factor.
    float (*adagrad_factors)(float* sum, const float* x, int n, float gradient, float rate, float eps, float* factor);
    /// weight -= step * x * factor
    void (*descend)(float* weight, const float* x, const float* factor, int n, float step);
};

/// The loops of nearest rows (nearest_rows/row_index.hpp): similarities in 16 bits, of a block of n rows. n is a
/// multiple of nearest_group; a value counts value * factor / 256, rounded.
inline constexpr int nearest_group = 64;
struct NearestKernels {
    /// sums[i] += what column[c][i] counts, for all columns.
    void (*add_columns)(const std::uint8_t* const* column, const std::int16_t* factor, int n_columns, int n,
                        std::int16_t* sums);
    /// sums[row[k] - first] += what value[k] counts.
    void (*add_postings)(const std::uint32_t* row, const std::uint8_t* value, std::int64_t n, std::uint32_t first,
                         std::int16_t factor, std::int16_t* sums);
    /// The largest sum of each group of rows.
    void (*largest)(const std::int16_t* sums, int n, std::int16_t* largest);
    /// The positions of the sums that are at least `least`; returns how many. Room for n.
    int (*reaching)(const std::int16_t* sums, int n, std::int16_t least, std::uint32_t* position);
};

/// The loops that turn the weights of a tile into signed bytes (plt/train_blocks.hpp), eight columns at a time.
struct FreezeKernels {
    /// bits[line]: which groups of a line have a weight whose size, times ratio[line], is above `prune`; without ratios
    /// they are 1. largest[c] rises to the largest such product of column c. `stride` floats a line.
    void (*scan)(const float* weights, std::size_t n_lines, int stride, const float* ratio, float prune, float* largest,
                 std::uint8_t* bits);
    /// byte[c] = weight[c] * ratio * times[c], rounded to the nearest; 0 where the size of the first product is at most
    /// `prune`.
    void (*to_bytes)(const float* weight, float ratio, float prune, const float* times, std::int8_t* byte);
};

struct Kernels {
    const char* name;
    int lanes;  ///< a tile's stride is a multiple of this
    void (*solve_tile)(const TileProblem&, const SolverSettings&);
    /// The rows of those features of x whose bit is set in a bitmap index; returns how many. Room for n.
    int (*match_bitmap)(const Entry* x, int n, const std::uint32_t* index, const std::uint8_t* rows, RowMatch* match);
    /// The same for an index of hash buckets: where each begins in `rows`, which ends at `end`.
    int (*match_buckets)(const Entry* x, int n, const std::uint32_t* begin, int bucket_bits, int key_bytes,
                         const std::uint8_t* rows, const std::uint8_t* end, RowMatch* match);
    /// sums[column] += value * weight for all weights of the matched rows; there is room for 256 columns.
    void (*add_rows)(const RowMatch* match, int n_matches, const std::uint8_t* rows, int n_columns, float* sums);
    /// The packed rows of features of x; returns how many. Room for n + 1.
    int (*match_packed)(const Entry* x, int n, const std::uint8_t* index, const std::uint8_t* chunks, RowMatch* match);
    /// add_rows for packed ones, whose weights are among `values`.
    void (*add_packed)(const RowMatch* match, int n_matches, const std::uint8_t* chunks, const float* values,
                       float* sums);
    /// sums[column] += value * weight for the features of x, all in a dense run that begins with `first`; n_columns is
    /// rounded up to whole groups.
    void (*add_dense)(const Entry* x, int n, std::uint32_t first, const std::int8_t* weights, int n_columns,
                      float* sums);
    /// x . w, x by feature number and w a list of n features and weights. The sum is the same for every instruction
    /// set.
    double (*dot_list)(const std::int32_t* feature, const float* weight, std::int64_t n, const float* x);
    /// x . w, x a list and w packed in order of feature, found by a bitmap. The sum is the same for every instruction
    /// set.
    double (*dot_bitmap)(const Entry* x, int n, const BitmapWord* bitmap, const float* weight);
    /// sums[c] * scale[c], mapped to logits of columns with these log rates.
    void (*to_logits)(float* sums, const float* scale, const float* rate, int n, LinkMap map);
    /// p[c] = 1 / (1 + exp(-logit[c])), in place; n rounded up to a multiple of 8.
    void (*to_probabilities)(float* logits, int n);
    /// p[c] = exp(logit[c]) / the sum of all n, in place; there is room for a multiple of 8.
    void (*to_softmax)(float* logits, int n);
    /// The positions where factor * p[c] is at least `least`, and these products; returns how many. Room for a multiple
    /// of 8.
    int (*reaching)(const float* p, int n, float factor, float least, std::int32_t* position, float* product);
    OnlineKernels online;
    EmbeddingKernels embedding;
    RegressorKernels regressor;
    NearestKernels nearest;
    FreezeKernels freeze;
};

extern const Kernels kernels_baseline;
#if defined(__x86_64__)
extern const Kernels kernels_avx2;
extern const Kernels kernels_avx512;
#endif

/// The widest set that this processor runs; RAMIFY_INSTRUCTION_SET=baseline|avx2|avx512 asks for a narrower one.
const Kernels& kernels();

}  // namespace ramify
