/// Reading and writing data files.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <string_view>

#include "bindings/arrays.hpp"
#include "text/format_text.hpp"
#include "text/sparse_text.hpp"

namespace nb = nanobind;

namespace {

using ramify::Array;
using ramify::Floats;
using ramify::Ints;
using ramify::Longs;

/// ramify._core.TextError: its arguments are message, line, column (both from one, in characters) and hint.
struct TextError {
    std::string message, hint;
    Py_ssize_t line, column;
};

TextError located(std::string_view text, const ramify::Mistake& mistake) {
    const char* const line_begin = [&] {
        const char* p = mistake.where;
        while (p != text.data() && p[-1] != '\n') --p;
        return p;
    }();
    // Bytes that continue a UTF-8 character do not count.
    const auto column = std::count_if(line_begin, mistake.where, [](char c) { return (c & 0xc0) != 0x80; });
    return {mistake.message, mistake.hint, std::count(text.data(), line_begin, '\n') + 1, column + 1};
}

template <class T>
Array<T> to_numpy(ramify::Buffer<T>& buffer) {
    T* const data = buffer.data.release();
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return Array<T>(data, {buffer.size}, owner);
}

/// Numbers of features and labels; indptr, features and values of X; indptr and labels of Y.
using ParsedText = ramify::Tuple<std::int64_t, std::int64_t, Array<std::int64_t>, Array<std::int32_t>, Array<float>,
                                 Array<std::int64_t>, Array<std::int32_t>>;

ParsedText parse(nb::bytes text, ramify::SparseTextFormat format, int n_threads) {
    const std::string_view view(text.c_str(), text.size());
    ramify::SparseText result;
    {
        nb::gil_scoped_release release;
        try {
            result = ramify::parse_sparse_text(view, format, n_threads);
        } catch (const ramify::Mistake& mistake) {
            throw located(view, mistake);
        }
    }
    return nb::make_tuple(result.n_features, result.n_labels, to_numpy(result.feature_ptr), to_numpy(result.features),
                          to_numpy(result.values), to_numpy(result.label_ptr), to_numpy(result.labels));
}

void check_pointers(const Longs& pointers, std::size_t n_entries, const char* name) {
    const std::int64_t* const p = pointers.data();
    if (pointers.size() == 0 || p[0] < 0 || !std::is_sorted(p, p + pointers.size()) ||
        p[pointers.size() - 1] > static_cast<std::int64_t>(n_entries))
        throw nb::value_error(
            (std::string(name) + " must not decrease, and must lie between 0 and the number of entries").c_str());
}

nb::bytes format_xmc_rows(Longs feature_ptr, Ints features, Floats values, Longs label_ptr, Ints labels) {
    if (feature_ptr.size() != label_ptr.size())
        throw nb::value_error("feature_ptr and label_ptr must have the same length");
    if (features.size() != values.size()) throw nb::value_error("features and values must have the same length");
    std::string text;
    {
        nb::gil_scoped_release release;
        check_pointers(feature_ptr, features.size(), "feature_ptr");
        check_pointers(label_ptr, labels.size(), "label_ptr");
        text = ramify::format_sparse_text(feature_ptr.size() - 1, feature_ptr.data(), features.data(), values.data(),
                                          label_ptr.data(), labels.data());
    }
    return nb::bytes(text.data(), text.size());
}

}  // namespace

void bind_data(nb::module_& m) {
    static PyObject* text_error_type = nullptr;
    text_error_type = PyErr_NewExceptionWithDoc("ramify._core.TextError",
                                                "A mistake in a data file; args are message, line, column and hint.",
                                                PyExc_ValueError, nullptr);
    m.attr("TextError") = nb::borrow(text_error_type);
    nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
        try {
            std::rethrow_exception(pointer);
        } catch (const TextError& error) {
            const nb::object arguments = nb::make_tuple(error.message, error.line, error.column, error.hint);
            PyErr_SetObject(text_error_type, arguments.ptr());
        }
    });
    m.def(
        "parse_xmc", [](nb::bytes text, int n_threads) { return parse(text, {}, n_threads); }, nb::arg("text"),
        nb::kw_only(), nb::arg("n_threads") = 1,
        "XMC text to (n_features, n_labels, feature_ptr, features, values, label_ptr, labels); raises TextError.");
    m.def(
        "parse_libsvm",
        [](nb::bytes text, std::int64_t first_feature, std::int64_t n_features, std::int64_t n_labels, int n_threads) {
            if (first_feature != 0 && first_feature != 1) throw nb::value_error("first_feature must be 0 or 1");
            constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max();
            if (n_features > largest || n_labels > largest)
                throw nb::value_error("n_features and n_labels must fit 32 bits");
            return parse(text, {false, first_feature, n_features, n_labels}, n_threads);
        },
        nb::arg("text"), nb::kw_only(), nb::arg("first_feature") = 0, nb::arg("n_features") = -1,
        nb::arg("n_labels") = -1, nb::arg("n_threads") = 1,
        "As parse_xmc, for text without a header; -1 for sizes that are to be found out.");
    m.def("format_xmc_rows", &format_xmc_rows, nb::arg("feature_ptr"), nb::arg("features"), nb::arg("values"),
          nb::arg("label_ptr"), nb::arg("labels"), "Rows as lines of XMC text, without a header.");
}
