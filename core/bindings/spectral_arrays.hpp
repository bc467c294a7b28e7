/// Arrays of the spectral method from Python: the space of a tree, and the classifier's weights to train.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <string>

#include "bindings/arrays.hpp"
#include "spectral/base.hpp"
#include "spectral/tree_space.hpp"

namespace ramify {

using FloatDict = nb::typed<nb::dict, nb::str, Array<float>>;

inline std::span<float> take_own(const nb::dict& arrays, const char* name) {
    InOut<float> array;
    if (!arrays.contains(name) || !nb::try_cast(arrays[name], array, false))
        throw nb::value_error((std::string("learning needs an array of floats to write to, named ") + name).c_str());
    return writable(array);
}

inline WeightKind weight_kind(const std::string& name) {
    if (name == "full") return WeightKind::full;
    if (name == "hashed") return WeightKind::hashed;
    if (name == "low_rank") return WeightKind::low_rank;
    throw nb::value_error("weights must be 'full', 'hashed' or 'low_rank'");
}

/// Stochastic gradient descent on these arrays, written in place; `parameters` says what shape they must have.
inline BaseDescent descent_on(const FloatDict& base, const BaseParameters<float>& parameters,
                              const DescentSettings& settings) {
    if (!(settings.learning_rate > 0) || !std::isfinite(settings.learning_rate) || !(settings.eps > 0) ||
        !std::isfinite(settings.eps))
        throw nb::value_error("learning_rate and eps must be finite and above 0");
    BaseDescent descent;
    descent.parameters = parameters;
    descent.parameters.input = take_own(base, "input");
    descent.parameters.output = take_own(base, "output");
    descent.parameters.label_bias = take_own(base, "label_bias");
    descent.parameters.slot_bias = take_own(base, "slot_bias");
    descent.input_sum = take_own(base, "input_sum");
    descent.output_sum = take_own(base, "output_sum");
    descent.label_bias_sum = take_own(base, "label_bias_sum");
    descent.slot_bias_sum = take_own(base, "slot_bias_sum");
    descent.settings = settings;
    descent.check();
    return descent;
}

/// The space of a tree that was learned for these features; without vectors, the features themselves.
inline TreeSpace checked_space(std::span<const float> vectors, const FeatureSettings& features) {
    if (features.bias != 1.0f) throw nb::value_error("a candidate tree keeps its medians in a bias feature of 1");
    if (vectors.empty()) return {features, {}, 0};
    const auto size = static_cast<std::int64_t>(vectors.size());
    if (features.n_features < 1 || size % features.n_features != 0)
        throw nb::value_error("the size of the tree's space must be a multiple of n_features");
    for (float v : vectors)
        if (!std::isfinite(v)) throw nb::value_error("the tree's space must be finite");
    return {features, vectors, size / features.n_features};
}

}  // namespace ramify
