/// The compiled module `ramify._core`: each method has its own bind*.cpp.
#include <nanobind/nanobind.h>

#include "base/parallel.hpp"
#include "kernels/kernels.hpp"

namespace nb = nanobind;

void bind_answers(nb::module_& m);
void bind_data(nb::module_& m);
void bind_trees(nb::module_& m);
void bind_blocks(nb::module_& m);
void bind_search(nb::module_& m);
void bind_ensemble(nb::module_& m);
void bind_online(nb::module_& m);
void bind_decide(nb::module_& m);
void bind_fastxml(nb::module_& m);
void bind_interpolated(nb::module_& m);
void bind_candidate_trees(nb::module_& m);
void bind_spectral_model(nb::module_& m);
void bind_memory_tree(nb::module_& m);
void bind_ngrams(nb::module_& m);
void bind_vectorizer(nb::module_& m);
void bind_softmax(nb::module_& m);
void bind_lomtree(nb::module_& m);
void bind_filter_tree(nb::module_& m);
void bind_nearest_rows(nb::module_& m);

static void poll_python_signals() {
    nb::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

NB_MODULE(_core, m) {
    // Objects that a program still holds when it ends (in a cache, in a notebook) are no leaks.
    nb::set_leak_warnings(false);
    ramify::poll_interrupt = poll_python_signals;
    m.doc() = "The hot loops of ramify; plain arrays in, plain arrays out.";
    m.def(
        "instruction_set", [] { return ramify::kernels().name; },
        "The vector instructions chosen for this processor: baseline, avx2 or avx512.");
    nb::class_<ramify::Progress>(m, "Progress", "Counts of finished and of all work, readable while the core runs.")
        .def(nb::init<>())
        .def_prop_rw(
            "done", [](const ramify::Progress& p) { return p.done.load(); },
            [](ramify::Progress& p, std::size_t n) { p.done = n; })
        .def_prop_rw(
            "total", [](const ramify::Progress& p) { return p.total.load(); },
            [](ramify::Progress& p, std::size_t n) { p.total = n; });
    bind_answers(m);
    bind_data(m);
    bind_trees(m);
    bind_blocks(m);
    bind_search(m);
    bind_ensemble(m);
    bind_online(m);
    bind_decide(m);
    bind_fastxml(m);
    bind_interpolated(m);
    bind_candidate_trees(m);
    bind_spectral_model(m);
    bind_memory_tree(m);
    bind_ngrams(m);
    bind_vectorizer(m);
    bind_softmax(m);
    bind_lomtree(m);
    bind_filter_tree(m);
    bind_nearest_rows(m);
}
