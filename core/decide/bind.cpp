/// Python bindings of the decisions after training: online F-measure thresholds and choices within a budget.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "bindings/arrays.hpp"
#include "bindings/casters.hpp"
#include "bindings/checks.hpp"
#include "decide/block_ascent.hpp"
#include "decide/online_f.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ramify;

namespace {

void refuse_unless(bool is_sound, const char* message) {
    if (!is_sound) throw nb::value_error(message);
}

void check_sorted(std::span<const std::int64_t> indptr, std::span<const std::int32_t> indices, const char* name) {
    if (!rises_in_rows(indptr, indices))
        throw nb::value_error((std::string(name) + ": labels of a row must be sorted and distinct").c_str());
}

void online_f_pass(const CsrInput& probabilities, const LabelInput& truth, std::int64_t n_labels, InOut<double> a,
                   InOut<double> b, std::optional<Floats> bound, std::optional<InOut<std::int64_t>> positives,
                   std::int64_t n_seen) {
    const CsrView P = probabilities.checked(n_labels, "P");
    check_csr(view(truth.indptr), view(truth.indices), n_labels, "Y");
    refuse_unless(P.indptr.size() == truth.indptr.size(), "P and Y differ in their number of rows");
    check_sorted(P.indptr, P.indices, "P");
    check_sorted(view(truth.indptr), view(truth.indices), "Y");
    const std::size_t n_slots = a.size();
    refuse_unless(n_slots == 1 || static_cast<std::int64_t>(n_slots) == n_labels, "a needs one value, or one a label");
    refuse_unless(b.size() == n_slots, "a and b differ in length");
    refuse_unless(!bound || bound->size() == n_slots, "bound and a differ in length");
    refuse_unless(!positives || (positives->size() == n_slots && static_cast<std::int64_t>(n_slots) == n_labels),
                  "positives needs a value for each label");
    for (double value : writable(b)) refuse_unless(value > 0, "b must be above zero");
    refuse_unless(n_seen >= 0, "n_seen must not be negative");
    OnlineF f{writable(a), writable(b), {}, {}, n_seen};
    if (bound) f.bound = view(*bound);
    if (positives) f.positives = writable(*positives);
    nb::gil_scoped_release released;
    f.pass(P, view(truth.indptr), view(truth.indices));
}

std::int64_t ascend_budget(const std::string& measure, std::int64_t k, const CsrInput& probabilities, Longs order,
                           InOut<double> hits, InOut<double> predicted, Doubles positive, double n_rows,
                           InOut<std::uint8_t> is_chosen) {
    const std::size_t n_labels = hits.size();
    const CsrView P = probabilities.checked(static_cast<std::int64_t>(n_labels), "P");
    refuse_unless(k >= 1, "k must be at least 1");
    refuse_unless(predicted.size() == n_labels && positive.size() == n_labels,
                  "hits, predicted and positive differ in length");
    refuse_unless(is_chosen.size() == P.indices.size(), "is_chosen needs a value for each entry of P");
    for (std::int64_t i : view(order)) refuse_unless(i >= 0 && i < P.n_rows(), "order must hold row numbers");
    for (float p : P.data) refuse_unless(std::isfinite(p), "P must be finite");
    ExpectedCounts counts{writable(hits), writable(predicted), view(positive), n_rows};
    auto run = [&]<class Gain>() {
        nb::gil_scoped_release released;
        return ascend<Gain>(P, k, view(order), counts, writable(is_chosen));
    };
    if (measure == "macro_f1") return run.operator()<CountGain<MacroF>>();
    if (measure == "macro_jaccard") return run.operator()<CountGain<MacroJaccard>>();
    if (measure == "macro_recall") return run.operator()<CountGain<MacroRecall>>();
    if (measure == "macro_balanced_accuracy") return run.operator()<CountGain<MacroBalancedAccuracy>>();
    if (measure == "coverage") return run.operator()<CoverageGain>();
    throw nb::value_error(("unknown measure " + measure).c_str());
}

}  // namespace

void bind_decide(nb::module_& m) {
    m.def("online_f_pass", &online_f_pass, "P"_a, "Y"_a, "n_labels"_a, "a"_a.noconvert(), "b"_a.noconvert(),
          "bound"_a.none(), "positives"_a.none().noconvert(), "n_seen"_a,
          "Online F-measure optimisation over rows in their order; changes a, b and positives.");
    m.def(
        "ascend_budget", &ascend_budget, "measure"_a, "k"_a, "P"_a, "order"_a, "hits"_a.noconvert(),
        "predicted"_a.noconvert(), "positive"_a, "n_rows"_a, "is_chosen"_a.noconvert(),
        "One pass of block coordinate ascent; changes hits, predicted and is_chosen. The number of rows that changed.");
}
