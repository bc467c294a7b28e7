/// Models as flat arrays: a struct of vectors while a model is made, of views once it is read from a file.
///
/// Each such struct has a function for_each_array(arrays, work), which calls work(name, array) for each array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace ramify {

template <class T>
using OwnedArray = std::vector<T>;
template <class T>
using ArrayView = std::span<const T>;

[[noreturn]] inline void refuse_arrays(const std::string& what) {
    throw std::invalid_argument("model arrays are inconsistent: " + what);
}

inline void check_arrays(bool fit, const char* what) {
    if (!fit) refuse_arrays(what);
}

/// Row pointers of n_parts among n_items: from 0 to n_items, not decreasing.
inline void check_begin(std::span<const std::int64_t> begin, std::size_t n_parts, std::size_t n_items,
                        const char* name) {
    if (begin.size() != n_parts + 1 || begin.front() != 0 || begin.back() != static_cast<std::int64_t>(n_items))
        refuse_arrays(name);
    for (std::size_t i = 1; i < begin.size(); ++i)
        if (begin[i] < begin[i - 1]) refuse_arrays(name);
}

}  // namespace ramify
