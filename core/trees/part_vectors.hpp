/// The label vectors of one part of a tree's level, with features renumbered so that small parts have short centres.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "trees/label_vectors.hpp"

namespace ramify {

/// Keeps its memory from part to part. Members of the part are numbered in the order in which they were gathered.
class PartVectors {
public:
    PartVectors(const CsrView& vectors, std::size_t n_features) : vectors_(vectors), n_features_(n_features) {}

    const CsrView& all_labels() const { return vectors_; }
    std::size_t size() const { return begin_.size(); }
    std::size_t n_columns() const { return n_columns_; }

    void gather(std::span<const std::int32_t> labels) {
        const std::size_t n = labels.size();
        std::size_t entries = 0;
        for (std::int32_t label : labels) entries += vectors_.length(label);
        begin_.resize(n);
        length_.resize(n);
        if (entries > n_features_) {  // most features occur: a copy would only cost memory
            for (std::size_t k = 0; k < n; ++k) {
                begin_[k] = vectors_.indptr[labels[k]];
                length_[k] = vectors_.length(labels[k]);
            }
            column_ = vectors_.indices.data();
            value_ = vectors_.data.data();
            n_columns_ = n_features_;
            return;
        }
        if (number_.empty()) number_.assign(n_features_, -1);
        used_.clear();
        own_column_.resize(entries);
        own_value_.resize(entries);
        std::size_t at = 0;
        for (std::size_t k = 0; k < n; ++k) {
            begin_[k] = static_cast<std::int64_t>(at);
            length_[k] = vectors_.length(labels[k]);
            for (std::int64_t z = vectors_.indptr[labels[k]]; z < vectors_.indptr[labels[k] + 1]; ++z, ++at) {
                std::int32_t& number = number_[vectors_.indices[z]];
                if (number < 0) {
                    number = static_cast<std::int32_t>(used_.size());
                    used_.push_back(vectors_.indices[z]);
                }
                own_column_[at] = number;
                own_value_[at] = vectors_.data[z];
            }
        }
        for (std::int32_t feature : used_) number_[feature] = -1;
        column_ = own_column_.data();
        value_ = own_value_.data();
        n_columns_ = used_.size();
    }

    void add(std::vector<float>& to, std::size_t k, float scale) const {
        const std::int32_t* column = column_ + begin_[k];
        const float* value = value_ + begin_[k];
        for (std::int64_t z = 0; z < length_[k]; ++z) to[column[z]] += scale * value[z];
    }

    float dot(const std::vector<float>& direction, std::size_t k) const {
        const std::int32_t* column = column_ + begin_[k];
        const float *value = value_ + begin_[k], *d = direction.data();
        float sum[4] = {};
        std::int64_t z = 0;
        for (; z + 4 <= length_[k]; z += 4)
            for (int lane = 0; lane < 4; ++lane) sum[lane] += d[column[z + lane]] * value[z + lane];
        for (; z < length_[k]; ++z) sum[0] += d[column[z]] * value[z];
        const float total = (sum[0] + sum[1]) + (sum[2] + sum[3]);
        return total == total ? total : 0.0f;  // NaN would break the order
    }

private:
    CsrView vectors_;
    std::size_t n_features_, n_columns_ = 0;
    const std::int32_t* column_ = nullptr;  // of the part: the given vectors, or the copy below
    const float* value_ = nullptr;
    std::vector<std::int64_t> begin_, length_;
    std::vector<std::int32_t> own_column_, number_, used_;
    std::vector<float> own_value_;
};

/// The lengths of the centre on the left and of the rest of the sum.
struct CentreLengths {
    double left, right;
};

inline CentreLengths centre_lengths(std::span<const float> left_sum, std::span<const float> all_sum) {
    double left = 0, right = 0;
    for (std::size_t f = 0; f < left_sum.size();
         f += 256) {  // short runs in float, their sum in double: fast, and exact enough
        float left_run[4] = {}, right_run[4] = {};
        const std::size_t end = std::min(left_sum.size(), f + 256);
        std::size_t g = f;
        for (; g + 4 <= end; g += 4)
            for (std::size_t lane = 0; lane < 4; ++lane) {
                const float here = left_sum[g + lane], there = all_sum[g + lane] - here;
                left_run[lane] += here * here;
                right_run[lane] += there * there;
            }
        for (; g < end; ++g) {
            const float here = left_sum[g], there = all_sum[g] - here;
            left_run[0] += here * here;
            right_run[0] += there * there;
        }
        for (int lane = 0; lane < 4; ++lane) left += left_run[lane], right += right_run[lane];
    }
    return {std::sqrt(left), std::sqrt(right)};
}

/// In parallel, unless the caller is itself one of many in parallel.
template <class Work>
void run_tasks(std::size_t n_tasks, int n_threads, Work&& work) {
    if (n_threads > 1) return parallel_for(n_tasks, n_threads, work);
    for (std::size_t task = 0; task < n_tasks; ++task) work(task, 0);
}

}  // namespace ramify
