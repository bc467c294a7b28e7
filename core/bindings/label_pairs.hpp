/// Answers as Python sees them: lists of (label, probability).
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace ramify {

namespace nb = nanobind;

/// Keeps Python's garbage collector from running. Thousands of new tuples would start it again and again, each time
/// looking at all objects of the program, and none of the tuples can be garbage before they are handed out.
class CollectorPause {
public:
    CollectorPause() : was_enabled_(PyGC_Disable() != 0) {}
    CollectorPause(const CollectorPause&) = delete;
    ~CollectorPause() {
        if (was_enabled_) PyGC_Enable();
    }

private:
    bool was_enabled_;
};

/// Whether a label cannot be part of a cycle, so that the collector need not look at its pair either.
inline bool is_plain(PyObject* label) {
    return PyUnicode_CheckExact(label) || PyLong_CheckExact(label) || PyFloat_CheckExact(label);
}

inline nb::object new_pair(PyObject* label, float probability) {
    nb::object pair = nb::steal(PyTuple_New(2));
    PyObject* number = pair.is_valid() ? PyFloat_FromDouble(static_cast<double>(probability)) : nullptr;
    if (!number) throw nb::python_error();
    Py_INCREF(label);
    PyTuple_SetItem(pair.ptr(), 0, label);
    PyTuple_SetItem(pair.ptr(), 1, number);
    if (is_plain(label)) PyObject_GC_UnTrack(pair.ptr());
    return pair;
}

/// A list of pairs for each row: those from indptr[row] to indptr[row + 1].
inline nb::list label_pairs(std::span<const std::int64_t> indptr, const nb::list& labels,
                            std::span<const float> probabilities) {
    const CollectorPause pause;
    const auto n_rows = static_cast<Py_ssize_t>(indptr.size()) - 1;
    nb::object rows = nb::steal(PyList_New(n_rows));
    if (!rows.is_valid()) throw nb::python_error();
    for (Py_ssize_t r = 0; r < n_rows; ++r) {
        const std::int64_t begin = indptr[static_cast<std::size_t>(r)], end = indptr[static_cast<std::size_t>(r) + 1];
        nb::object row = nb::steal(PyList_New(end - begin));
        if (!row.is_valid()) throw nb::python_error();
        for (std::int64_t k = begin; k < end; ++k) {
            nb::object pair = new_pair(PyList_GetItem(labels.ptr(), k), probabilities[static_cast<std::size_t>(k)]);
            PyList_SetItem(row.ptr(), k - begin, pair.release().ptr());
        }
        PyList_SetItem(rows.ptr(), r, row.release().ptr());
    }
    return nb::borrow<nb::list>(rows);
}

}  // namespace ramify
