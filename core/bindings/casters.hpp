/// Arguments that Python hands over as one object: the rows of a sparse array and a label tree.
///
/// Any object with the named attributes will do, such as scipy's csr_array and ramify's LabelTree. Arrays of other
/// types are converted, as everywhere in nanobind; the contents are checked by whoever knows what they must fit.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <limits>
#include <utility>

#include "bindings/arrays.hpp"
#include "trees/label_tree.hpp"

namespace ramify {

/// Row pointers and columns of a sparse array whose values do not matter: the labels of rows.
struct LabelInput {
    Longs indptr;
    Ints indices;
};

/// A sparse array with its values.
struct CsrInput {
    Longs indptr;
    Ints indices;
    Floats data;

    CsrView checked(std::int64_t n_columns, const char* name) const {
        return checked_csr(indptr, indices, data, n_columns, name);
    }
};

/// The arrays of a label tree, kept alive as long as this lives.
struct TreeInput {
    Ints parent, first_child, n_children, label;
    std::int64_t n_labels = 0;

    TreeView checked() const {
        if (n_labels < 0 || n_labels > std::numeric_limits<std::int32_t>::max())
            throw nb::value_error("n_labels is out of range");
        TreeView tree{view(parent), view(first_child), view(n_children), view(label)};
        tree.validate(n_labels);
        return tree;
    }
};

/// Reads one attribute; false if it is missing or of a wrong kind.
template <class T>
bool take_attribute(nb::handle from, const char* name, T& to, std::uint8_t flags,
                    nb::detail::cleanup_list* cleanup) noexcept {
    const nb::object found = nb::steal(PyObject_GetAttrString(from.ptr(), name));
    nb::detail::make_caster<T> caster;
    if (!found.is_valid() || !caster.from_python(found, flags, cleanup)) {
        PyErr_Clear();
        return false;
    }
    to = std::move(caster.value);
    return true;
}

}  // namespace ramify

namespace nanobind::detail {

template <>
struct type_caster<ramify::LabelInput> {
    NB_TYPE_CASTER(ramify::LabelInput, const_name("ramify.data.csr.Compressed"))
    bool from_python(handle from, std::uint8_t flags, cleanup_list* cleanup) noexcept {
        return ramify::take_attribute(from, "indptr", value.indptr, flags, cleanup) &&
               ramify::take_attribute(from, "indices", value.indices, flags, cleanup);
    }
};

template <>
struct type_caster<ramify::CsrInput> {
    NB_TYPE_CASTER(ramify::CsrInput, const_name("ramify.data.csr.Compressed"))
    bool from_python(handle from, std::uint8_t flags, cleanup_list* cleanup) noexcept {
        return ramify::take_attribute(from, "indptr", value.indptr, flags, cleanup) &&
               ramify::take_attribute(from, "indices", value.indices, flags, cleanup) &&
               ramify::take_attribute(from, "data", value.data, flags, cleanup);
    }
};

template <>
struct type_caster<ramify::TreeInput> {
    NB_TYPE_CASTER(ramify::TreeInput, const_name("ramify.trees.label_tree.LabelTree"))
    bool from_python(handle from, std::uint8_t flags, cleanup_list* cleanup) noexcept {
        return ramify::take_attribute(from, "parent", value.parent, flags, cleanup) &&
               ramify::take_attribute(from, "first_child", value.first_child, flags, cleanup) &&
               ramify::take_attribute(from, "n_children", value.n_children, flags, cleanup) &&
               ramify::take_attribute(from, "label", value.label, flags, cleanup) &&
               ramify::take_attribute(from, "n_labels", value.n_labels, flags, cleanup);
    }
};

}  // namespace nanobind::detail
