/// What the search of one row in one tree has scored: other labels of that tree are looked up there, or bounded.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ramify {

class OpenedBlocks {
public:
    float root = 0;  ///< the root's own probability

    void clear() {
        root = 0;
        block_.clear();
        conditional_.clear();
    }

    /// A node of probability p; `conditional` are its children's probabilities given it, in the order of its columns.
    void add(std::int32_t node, float p, std::span<const float> conditional) {
        block_.push_back({node, p, conditional_.size()});
        conditional_.insert(conditional_.end(), conditional.begin(), conditional.end());
    }

    /// Multiplies the probabilities of all nodes so far.
    void scale(float factor) {
        for (Block& block : block_) block.p *= factor;
    }

    std::size_t size() const { return block_.size(); }
    std::int32_t node(std::size_t block) const { return block_[block].node; }

    /// The probability of the child in a column of a block.
    float child(std::size_t block, std::int32_t column) const {
        return std::min(block_[block].p * conditional_[block_[block].first + static_cast<std::size_t>(column)], 1.0f);
    }

private:
    struct Block {
        std::int32_t node;
        float p;
        std::size_t first;
    };
    std::vector<Block> block_;
    std::vector<float> conditional_;
};

}  // namespace ramify
