/// Models as dicts of named numpy arrays, and back.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "base/flat_arrays.hpp"
#include "bindings/arrays.hpp"

namespace ramify {

/// Hands all arrays to numpy, each under its name.
template <class Arrays>
ArrayDict to_dict(Arrays&& arrays) {
    static_assert(std::is_rvalue_reference_v<Arrays&&>, "the arrays are moved away");
    nb::dict out;
    for_each_array(arrays, [&](const char* name, auto& array) { out[name] = to_numpy(std::move(array)); });
    return out;
}

/// Views of the arrays of a saved model. `keep` keeps them alive.
class SavedArrays {
public:
    SavedArrays(const nb::dict& arrays, nb::list& keep) : arrays_(arrays), keep_(keep) {}

    bool has(const std::string& name) const { return arrays_.contains(name.c_str()); }

    template <class T, int Dimensions = 1>
    std::span<const T> take(const std::string& name) const {
        if (!has(name)) throw nb::value_error(("the model has no array named " + name).c_str());
        if (const auto found = find<T, Dimensions>(name)) return *found;
        throw nb::value_error(("the model's array " + name + " has a wrong type or shape").c_str());
    }

    /// All arrays of a struct of views.
    template <class Arrays>
    void take_all(Arrays& views) const {
        for_each_array(views, [&](const char* name, auto& view) { view = take<ElementOf<decltype(view)>>(name); });
    }

    /// The same for a learner's state, with one message for all mistakes.
    template <class T>
    std::span<const T> take_back(const std::string& name) const {
        if (const auto found = find<T, 1>(name)) return *found;
        throw nb::value_error(("the model's array " + name + " is missing or has a wrong type or shape").c_str());
    }

    template <class View>
    void take_back_into(const char* name, View& view) const {
        view = take_back<ElementOf<View>>(name);
    }

    template <class Arrays>
    void take_back_all(Arrays& views) const {
        for_each_array(views, [&](const char* name, auto& view) { take_back_into(name, view); });
    }

private:
    template <class View>
    using ElementOf = typename std::remove_cvref_t<View>::value_type;

    template <class T, int Dimensions>
    std::optional<std::span<const T>> find(const std::string& name) const {
        nb::ndarray<const T, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu> array;
        // Without conversion: a converted copy would not outlive this call.
        if (!has(name) || !nb::try_cast(arrays_[name.c_str()], array, false)) return {};
        keep_.append(arrays_[name.c_str()]);
        return std::span<const T>(array.data(), array.size());
    }

    const nb::dict& arrays_;
    nb::list& keep_;
};

}  // namespace ramify
