/// The frequency vector that counts a context once: for the most frequent label that the contexts left over have.
#pragma once

#include <cstdint>
#include <queue>
#include <span>
#include <utility>
#include <vector>

namespace ramify {

/// Rows of a 0/1 array by row and by column.
struct Incidence {
    std::span<const std::int64_t> row_start, column_start;
    std::span<const std::int32_t> labels_of_rows, rows_of_labels;

    auto labels(std::size_t row) const {
        return labels_of_rows.subspan(row_start[row], row_start[row + 1] - row_start[row]);
    }
    auto rows(std::size_t label) const {
        return rows_of_labels.subspan(column_start[label], column_start[label + 1] - column_start[label]);
    }
    std::size_t n_rows() const { return row_start.size() - 1; }
    std::size_t n_labels() const { return column_start.size() - 1; }
};

/// Paper: Baharav et al., "Enabling Efficiency-Precision Trade-offs for Label Trees in Extreme Classification",
/// algorithm 1. Of equally frequent labels the lower column comes first. An entry of the queue may be out of date: it
/// is put back when met. An entry of the array dates one entry of the queue at most, so that all takes O(nnz log
/// n_labels).
inline std::vector<double> greedy_frequency(const Incidence& incidence, std::span<const double> weight) {
    const std::size_t n_labels = incidence.n_labels();
    std::vector<double> found(n_labels, 0.0), mass(n_labels, 0.0);
    std::vector<std::int64_t> n_left(n_labels, 0);
    std::vector<bool> is_counted(incidence.n_rows(), false);
    using Entry = std::pair<double, std::int64_t>;  // mass, minus the label
    std::priority_queue<Entry> queue;
    for (std::size_t label = 0; label < n_labels; ++label) {
        for (std::int32_t row : incidence.rows(label)) mass[label] += weight[row];
        n_left[label] = static_cast<std::int64_t>(incidence.rows(label).size());
        if (mass[label] > 0) queue.emplace(mass[label], -static_cast<std::int64_t>(label));
    }
    while (!queue.empty()) {
        const auto [dated, minus_label] = queue.top();
        queue.pop();
        const auto label = static_cast<std::size_t>(-minus_label);
        if (n_left[label] == 0 || !(mass[label] > 0)) continue;
        if (mass[label] != dated) {
            queue.emplace(mass[label], minus_label);
            continue;
        }
        for (std::int32_t row : incidence.rows(label)) {
            if (is_counted[row]) continue;
            is_counted[row] = true;
            found[label] += weight[row];  // summed anew: differences of sums would not end at zero
            for (std::int32_t other : incidence.labels(row)) {
                mass[other] -= weight[row];
                --n_left[other];
            }
        }
    }
    return found;
}

}  // namespace ramify
