/// Python's strings as the core reads them: their own memory, while a reference keeps them alive.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "text/normalize.hpp"
#include "text/term_table.hpp"

namespace ramify {

namespace nb = nanobind;

inline nb::object to_str(Term term) {
    PyObject* text = PyUnicode_DecodeUTF8(term.data, static_cast<Py_ssize_t>(term.size), "surrogatepass");
    if (!text) throw nb::python_error();
    return nb::steal(text);
}

/// The UTF-8 of a string, lone surrogates included, with room to read it in words.
inline std::string to_utf8(nb::handle text) {
    nb::object bytes = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogatepass"));
    if (!bytes.is_valid()) throw nb::python_error();
    char* data;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(bytes.ptr(), &data, &size) != 0) throw nb::python_error();
    return std::string(data, static_cast<std::size_t>(size));
}

inline std::int32_t find_or_add(TermTable& table, const std::string& term) {
    std::string padded(term);
    padded.resize(term.size() + 16);
    return table.find_or_add({padded.data(), term.size()});
}

/// How many items of a list ahead the next ones are fetched: strings lie anywhere in memory, so that looking at one
/// after the other would mostly wait for it.
inline constexpr std::size_t items_ahead = 16;

inline void prefetch_item(const nb::list& items, std::size_t k) {
    if (k < items.size()) __builtin_prefetch(PyList_GetItem(items.ptr(), static_cast<Py_ssize_t>(k)), 1);
}

/// Whether all items of a list are of type str itself.
inline bool holds_only_str(const nb::list& items) {
    for (std::size_t k = 0; k < items.size(); ++k) {
        prefetch_item(items, k + items_ahead);
        if (!PyUnicode_CheckExact(PyList_GetItem(items.ptr(), static_cast<Py_ssize_t>(k)))) return false;
    }
    return true;
}

/// Some strings of a list. They stay alive and unchanged until this ends, which must be with the GIL held.
class PythonTexts {
public:
    PythonTexts() = default;
    PythonTexts(const PythonTexts&) = delete;
#ifndef Py_LIMITED_API
    ~PythonTexts() {
        for (std::size_t k = 0; k < owners_.size(); ++k) {
            if (k + items_ahead < owners_.size()) __builtin_prefetch(owners_[k + items_ahead], 1);
            Py_DECREF(owners_[k]);
        }
    }
#endif

    void add(nb::handle text, std::size_t row) {
        if (!PyUnicode_Check(text.ptr())) {
            const std::string shown = nb::repr(text).c_str();
            throw nb::value_error(("text " + std::to_string(row) + " is " + shown.substr(0, 60) +
                                   ", not a string; write '' for an empty text")
                                      .c_str());
        }
#ifdef Py_LIMITED_API
        const auto size = static_cast<std::size_t>(PyUnicode_GetLength(text.ptr()));
        copies_.emplace_back(PyUnicode_AsUCS4Copy(text.ptr()));
        if (!copies_.back()) throw nb::python_error();
        views_.push_back({copies_.back().get(), size, 4, false});
#else
#if PY_VERSION_HEX < 0x030C0000
        if (PyUnicode_READY(text.ptr()) != 0) throw nb::python_error();
#endif
        const auto size = static_cast<std::size_t>(PyUnicode_GET_LENGTH(text.ptr()));
        const bool is_ascii = PyUnicode_IS_ASCII(text.ptr()) != 0;
        owners_.push_back(text.ptr());
        Py_INCREF(text.ptr());
        views_.push_back({PyUnicode_DATA(text.ptr()), size, static_cast<int>(PyUnicode_KIND(text.ptr())), is_ascii});
#endif
        n_characters_ += size;
        is_ascii_ = is_ascii_ && views_.back().is_ascii;
    }

    std::span<const TextView> views() const { return views_; }
    std::size_t n_characters() const { return n_characters_; }
    bool is_ascii() const { return is_ascii_; }

private:
#ifdef Py_LIMITED_API
    struct Free {
        void operator()(Py_UCS4* p) const { PyMem_Free(p); }
    };
    std::vector<std::unique_ptr<Py_UCS4, Free>> copies_;
#else
    std::vector<PyObject*> owners_;
#endif
    std::vector<TextView> views_;
    std::size_t n_characters_ = 0;
    bool is_ascii_ = true;
};

}  // namespace ramify
