/// numpy arrays in and out of the core.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/sparse_rows.hpp"

namespace ramify {

namespace nb = nanobind;

template <class T>
using Input = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

using Bytes = Input<std::int8_t>;
using Ints = Input<std::int32_t>;
using Longs = Input<std::int64_t>;
using Floats = Input<float>;
using Doubles = Input<double>;

template <class T>
std::span<const T> view(const Input<T>& array) {
    return {array.data(), array.size()};
}

/// Changed in place.
template <class T>
using InOut = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
std::span<T> writable(const InOut<T>& array) {
    return {array.data(), array.size()};
}

// Types of answers. Those with parameters are for the generated stub, src/ramify/_core.pyi; at run time they are plain
// tuples, dicts and lists.
template <class T>
using Array = nb::ndarray<nb::numpy, T>;

/// An array of any type.
class AnyArray : public nb::object {
    NB_OBJECT(AnyArray, nb::object, "numpy.typing.NDArray[typing.Any]", is_any)
    static bool is_any(nb::handle) { return true; }
};

template <class... Parts>
using Tuple = nb::typed<nb::tuple, Parts...>;
template <class Item>
using List = nb::typed<nb::list, Item>;
using ArrayDict = nb::typed<nb::dict, nb::str, AnyArray>;
using RowAnswer = Tuple<Array<std::int32_t>, Array<float>>;                       ///< labels, probabilities
using RankedRows = Tuple<Array<std::int64_t>, Array<std::int32_t>>;               ///< indptr, labels
using CsrArrays = Tuple<Array<std::int64_t>, Array<std::int32_t>, Array<float>>;  ///< indptr, indices, data
using CountedAnswers =
    Tuple<Array<std::int64_t>, Array<std::int32_t>, Array<float>, std::int64_t>;  ///< and the inner products
/// For each node on a path: node, probability or score, features and what each added.
using PathSteps = List<Tuple<std::int64_t, double, Array<std::int32_t>, Array<float>>>;

/// Hands a vector's memory to numpy without a copy.
template <class T>
Array<T> to_numpy(std::vector<T>&& values, std::vector<std::size_t> shape = {}) {
    auto* owned = new std::vector<T>(std::move(values));
    nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    if (shape.empty()) shape = {owned->size()};
    return Array<T>(owned->data(), shape.size(), shape.data(), owner);
}

/// Rejects row pointers and column numbers that point outside their arrays.
inline void check_csr(std::span<const std::int64_t> indptr, std::span<const std::int32_t> indices,
                      std::int64_t n_columns, const char* name) {
    if (indptr.empty() || indptr.front() != 0 || indptr.back() != static_cast<std::int64_t>(indices.size()))
        throw nb::value_error(
            (std::string(name) + ": row pointers must begin with 0 and end with the number of indices").c_str());
    for (std::size_t i = 1; i < indptr.size(); ++i)
        if (indptr[i] < indptr[i - 1])
            throw nb::value_error((std::string(name) + ": row pointers must not decrease").c_str());
    // Check all without a branch, so that the loop is vectorised; look for the culprit only if there is one.
    const auto last =
        static_cast<std::uint32_t>(std::min<std::int64_t>(n_columns - 1, std::numeric_limits<std::int32_t>::max()));
    std::uint32_t bits = 0;
    for (std::int32_t j : indices) bits |= static_cast<std::uint32_t>(j) | (last - static_cast<std::uint32_t>(j));
    if (n_columns > 0 && bits >> 31 == 0) return;
    for (std::int32_t j : indices)
        if (j < 0 || j >= n_columns)
            throw nb::value_error((std::string(name) + ": column " + std::to_string(j) + " is outside 0.." +
                                   std::to_string(n_columns - 1))
                                      .c_str());
}

inline CsrView checked_csr(const Input<std::int64_t>& indptr, const Input<std::int32_t>& indices,
                           const Input<float>& data, std::int64_t n_columns, const char* name) {
    CsrView csr{view(indptr), view(indices), view(data), n_columns};
    check_csr(csr.indptr, csr.indices, n_columns, name);
    if (csr.data.size() != csr.indices.size())
        throw nb::value_error((std::string(name) + ": data and indices differ in length").c_str());
    return csr;
}

}  // namespace ramify
