/// Saved regressors as a dict of numpy arrays, and back.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "arrays.hpp"
#include "lom_state.hpp"

namespace ramify {

/// Views of the arrays of a dict, which has to live as long as they are looked at.
class TakenArrays {
public:
    explicit TakenArrays(const nb::dict& arrays) : arrays_(arrays) {}

    template <class T>
    std::span<const T> take(const char* name) const {
        if (!arrays_.contains(name)) throw nb::value_error((std::string("the model has no array named ") + name).c_str());
        Input<T> array;
        if (!nb::try_cast(arrays_[name], array, false))
            throw nb::value_error((std::string("the model's array ") + name + " has a wrong type or shape").c_str());
        return view(array);
    }

    RegressorArrays<LomSpan> regressors() const {
        return {take<std::int32_t>("dense_width"),   take<std::int64_t>("slot_begin"), take<float>("dense_weight"), take<float>("dense_sum"),
                take<std::uint32_t>("slot_column"), take<float>("slot_weight"),       take<float>("slot_sum")};
    }

private:
    nb::dict arrays_;
};

inline void add_to(nb::dict& arrays, RegressorArrays<LomVector>&& r) {
    if (r.slot_begin.empty()) r.slot_begin.push_back(0);
    arrays["dense_width"] = to_numpy(std::move(r.dense_width));
    arrays["slot_begin"] = to_numpy(std::move(r.slot_begin));
    arrays["dense_weight"] = to_numpy(std::move(r.dense_weight));
    arrays["dense_sum"] = to_numpy(std::move(r.dense_sum));
    arrays["slot_column"] = to_numpy(std::move(r.slot_column));
    arrays["slot_weight"] = to_numpy(std::move(r.slot_weight));
    arrays["slot_sum"] = to_numpy(std::move(r.slot_sum));
}

}  // namespace ramify
