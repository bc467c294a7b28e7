/// Distinct terms, numbered in order of arrival: open addressing, with the bytes of short terms in the table itself.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "base/hashing.hpp"
#include "base/parallel.hpp"

namespace ramify {

/// The bytes of a term. At least 16 bytes from its begin, and from 8 bytes before its end, can be read.
struct Term {
    const char* data;
    std::size_t size;

    std::string_view view() const { return {data, size}; }
};

/// Of a term of at most 16 bytes the key is the term itself: equal keys and sizes are equal terms. Of a longer one it
/// is a hash.
struct TermKey {
    std::uint64_t low, high;

    bool operator==(const TermKey&) const = default;
};

namespace term_bytes {

inline constexpr std::size_t max_short = 16;

inline std::uint64_t load(const char* from) {
    std::uint64_t word;
    std::memcpy(&word, from, 8);
    return word;
}

/// Which bits of the first 16 bytes belong to a term, by its size.
inline constexpr auto masks = [] {
    std::array<TermKey, max_short + 1> masks{};
    for (std::size_t size = 0; size <= max_short; ++size)
        for (std::size_t byte = 0; byte < size; ++byte)
            (byte < 8 ? masks[size].low : masks[size].high) |= std::uint64_t{0xff} << 8 * (byte % 8);
    return masks;
}();

/// Both halves of a product: the basic step of wyhash and its kind.
inline std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
    const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

/// For terms of more than 16 bytes.
inline std::uint64_t hash_long(const char* from, std::size_t size) {
    std::uint64_t h = golden_ratio;
    std::size_t at = 0;
    for (; at + 16 < size; at += 16)
        h = fold(load(from + at) ^ 0xa0761d6478bd642full, load(from + at + 8) ^ 0xe7037ed1a0b428dbull ^ h);
    const std::size_t last = size - at > 8 ? at : size - 8;
    return fold(load(from + last) ^ 0x8ebc6af09c88c6e3ull ^ h, load(from + size - 8) ^ 0x589965cc75374cc3ull);
}

}  // namespace term_bytes

class TermTable {
public:
    TermTable() : slots_(16), mask_(slots_.size() - 1), offsets_{0}, bytes_(room, '\0') {}

    std::size_t size() const { return offsets_.size() - 1; }
    Term term(std::size_t number) const {
        return {bytes_.data() + offsets_[number], offsets_[number + 1] - offsets_[number]};
    }
    std::size_t n_bytes() const { return offsets_.back(); }  ///< of all terms
    std::size_t bytes() const {
        return slots_.capacity() * sizeof(Slot) + bytes_.capacity() + offsets_.capacity() * sizeof(std::size_t);
    }

    [[gnu::always_inline]] static TermKey key_of(Term term) {
        if (term.size <= term_bytes::max_short) {  // without a branch on the size, which would often be mispredicted
            const TermKey& mask = term_bytes::masks[term.size];
            return {term_bytes::load(term.data) & mask.low, term_bytes::load(term.data + 8) & mask.high};
        }
        return {term_bytes::hash_long(term.data, term.size), term_bytes::load(term.data)};
    }

    /// The number of a term; -1 if it is not in the table.
    std::int32_t find(Term term) const {
        const TermKey key = key_of(term);
        return slots_[place_of(term, key, home(key, term.size))].number;
    }

    /// Calls take(number) for every term, -1 if it is not in the table. Much faster than one by one, because the slots
    /// of some terms come from memory at the same time.
    template <class Take>
    void find_all(std::span<const Term> terms, Take&& take) const {
        in_batches(terms,
                   [&](Term term, TermKey key, std::size_t home) { take(slots_[place_of(term, key, home)].number); });
    }

    std::int32_t find_or_add(Term term) {
        const TermKey key = key_of(term);
        return find_or_add(term, key, home(key, term.size));
    }

    /// Calls take(number) for every term.
    template <class Take>
    void find_or_add_all(std::span<const Term> terms, Take&& take) {
        in_batches(terms, [&](Term term, TermKey key, std::size_t home) { take(find_or_add(term, key, home)); });
    }

    /// Makes room for this many terms.
    void reserve(std::size_t n_terms, std::size_t n_bytes) {
        offsets_.reserve(n_terms + 1);
        bytes_.reserve(n_bytes + room);
        std::size_t n_slots = slots_.size();
        while (is_full(n_terms, n_slots)) n_slots *= 2;
        if (n_slots > slots_.size()) rehash(n_slots);
    }

    /// Forgets the terms from this number on.
    void shrink(std::size_t n_terms) {
        while (size() > n_terms) {
            const Term last = term(size() - 1);
            const TermKey key = key_of(last);
            clear(place_of(last, key, home(key, last.size)));
            offsets_.pop_back();
        }
    }

    /// The same terms, where the one with number order[k] has number k. Two threads share the work: slots, and bytes.
    TermTable renumbered(std::span<const std::int32_t> order, int n_threads = 1) const {
        TermTable table;
        parallel_for(2, size() < 10'000 ? 1 : n_threads, [&](std::size_t task, int) {
            if (task == 0)
                copy_slots(order, table);
            else
                copy_bytes(order, table);
        });
        return table;
    }

    /// The numbers of the terms in order of their characters.
    std::vector<std::int32_t> sorted(int n_threads = 1) const {
        struct Entry {
            std::uint64_t start, next;  ///< the first 16 bytes, so that most comparisons are those of numbers
            std::int32_t number;
        };
        // By the first two bytes, then each such bucket on its own.
        constexpr int shift = 48;
        struct Start {
            std::uint64_t start, next;
        };
        std::vector<Start> starts(size());
        std::vector<std::size_t> bucket_end((std::size_t{1} << (64 - shift)) + 1, 0);
        for (std::size_t k = 0; k < size(); ++k) {
            const Term t = term(k);
            const TermKey& mask = term_bytes::masks[std::min(t.size, term_bytes::max_short)];
            starts[k] = {__builtin_bswap64(term_bytes::load(t.data) & mask.low),
                         __builtin_bswap64(term_bytes::load(t.data + 8) & mask.high)};
            ++bucket_end[(starts[k].start >> shift) + 1];
        }
        std::partial_sum(bucket_end.begin(), bucket_end.end(), bucket_end.begin());
        std::vector<Entry> entries(size());
        for (std::size_t k = 0; k < size(); ++k)
            entries[bucket_end[starts[k].start >> shift]++] = {starts[k].start, starts[k].next,
                                                               static_cast<std::int32_t>(k)};
        constexpr std::size_t n_parts = 256;
        const std::size_t part = (bucket_end.size() - 1) / n_parts;
        std::vector<std::int32_t> order(size());
        parallel_for(n_parts, size() < 10'000 ? 1 : n_threads, [&](std::size_t task, int) {
            std::size_t begin = task == 0 ? 0 : bucket_end[task * part - 1];
            for (std::size_t bucket = task * part; bucket < (task + 1) * part; begin = bucket_end[bucket++])
                std::sort(entries.begin() + std::ptrdiff_t(begin), entries.begin() + std::ptrdiff_t(bucket_end[bucket]),
                          [&](const Entry& a, const Entry& b) {
                              if (a.start != b.start) return a.start < b.start;
                              if (a.next != b.next) return a.next < b.next;
                              return term(std::size_t(a.number)).view() < term(std::size_t(b.number)).view();
                          });
            const std::size_t first = task == 0 ? 0 : bucket_end[task * part - 1];
            for (std::size_t k = first; k < bucket_end[(task + 1) * part - 1]; ++k) order[k] = entries[k].number;
        });
        return order;
    }

private:
    static constexpr std::size_t room = 16;  ///< after the last term, for reading in words

    struct Slot {
        TermKey key{};
        std::int32_t number = -1;
        std::uint32_t size = 0;
    };

    static bool is_full(std::size_t n_terms, std::size_t n_slots) { return 2 * n_terms > n_slots; }

    void copy_slots(std::span<const std::int32_t> order, TermTable& table) const {
        std::vector<std::int32_t> number_of(size());
        for (std::size_t k = 0; k < order.size(); ++k)
            number_of[static_cast<std::size_t>(order[k])] = static_cast<std::int32_t>(k);
        table.slots_ = slots_;
        table.mask_ = mask_;
        for (Slot& slot : table.slots_)
            if (slot.number >= 0) slot.number = number_of[static_cast<std::size_t>(slot.number)];
    }

    void copy_bytes(std::span<const std::int32_t> order, TermTable& table) const {
        table.bytes_.resize(n_bytes() + room);
        table.offsets_.reserve(size() + 1);
        constexpr std::size_t ahead = 16;
        for (std::size_t k = 0; k < order.size(); ++k) {
            if (k + ahead < order.size()) __builtin_prefetch(term(static_cast<std::size_t>(order[k + ahead])).data);
            const Term from = term(static_cast<std::size_t>(order[k]));
            std::memcpy(table.bytes_.data() + table.offsets_.back(), from.data, from.size);
            table.offsets_.push_back(table.offsets_.back() + from.size);
        }
    }

    template <class Work>
    [[gnu::always_inline]] void in_batches(std::span<const Term> terms, Work&& work) const {
        constexpr std::size_t batch = 64;
        struct Waiting {
            TermKey key;
            std::size_t home;
        };
        std::array<Waiting, batch> waiting;
        for (; !terms.empty(); terms = terms.subspan(std::min(batch, terms.size()))) {
            const std::size_t n = std::min(batch, terms.size());
            for (std::size_t k = 0; k < n; ++k) {
                const TermKey key = key_of(terms[k]);
                const std::size_t at = home(key, terms[k].size);
                __builtin_prefetch(&slots_[at & mask_]);
                waiting[k] = {key, at};
            }
            for (std::size_t k = 0; k < n; ++k) work(terms[k], waiting[k].key, waiting[k].home);
        }
    }

    /// The slot that has the term, or the free one where it would go.
    [[gnu::always_inline]] std::size_t place_of(Term term, TermKey key, std::size_t home) const {
        for (std::size_t at = home & mask_;; at = (at + 1) & mask_) {
            const Slot& slot = slots_[at];
            if (slot.key == key && slot.size == term.size && slot.number >= 0 &&
                (term.size <= term_bytes::max_short || has_bytes(slot, term)))
                return at;
            if (slot.number < 0) return at;
        }
    }

    [[gnu::always_inline]] std::int32_t find_or_add(Term term, TermKey key, std::size_t home) {
        const std::size_t at = place_of(term, key, home);
        const std::int32_t number = slots_[at].number;
        return number >= 0 ? number : add(at, term, key, home);
    }

    [[gnu::noinline]] bool has_bytes(const Slot& slot, Term term) const {
        return std::memcmp(bytes_.data() + offsets_[static_cast<std::size_t>(slot.number)], term.data, term.size) == 0;
    }

    [[gnu::always_inline]] static std::size_t home(TermKey key, std::size_t size) {
        return static_cast<std::size_t>(
            term_bytes::fold(key.low ^ 0xa0761d6478bd642full, (key.high + size) ^ 0xe7037ed1a0b428dbull));
    }

    [[gnu::noinline]] std::int32_t add(std::size_t at, Term term, TermKey key, std::size_t home) {
        if (size() >= std::numeric_limits<std::int32_t>::max() - 1 ||
            term.size > std::numeric_limits<std::uint32_t>::max())
            throw std::length_error("there are too many terms");
        if (is_full(size() + 1, slots_.size())) {
            rehash(slots_.size() * 2);
            at = place_of(term, key, home);
        }
        const auto number = static_cast<std::int32_t>(size());
        slots_[at] = {key, number, static_cast<std::uint32_t>(term.size)};
        const std::size_t end = offsets_.back() + term.size;
        if (bytes_.size() < end + room) bytes_.resize((end + room) * 3 / 2);
        std::memcpy(bytes_.data() + offsets_.back(), term.data, term.size);
        offsets_.push_back(end);
        return number;
    }

    void rehash(std::size_t n_slots) {
        std::vector<Slot> old(n_slots);
        old.swap(slots_);
        mask_ = slots_.size() - 1;
        // In order of the slots: those of a larger table are then filled nearly one after the other, too.
        for (const Slot& slot : old) {
            if (slot.number < 0) continue;
            std::size_t at = home(slot.key, slot.size) & mask_;
            while (slots_[at].number >= 0) at = (at + 1) & mask_;
            slots_[at] = slot;
        }
    }

    /// Frees a slot, and moves those behind it that would not be found otherwise.
    void clear(std::size_t at) {
        for (std::size_t next = (at + 1) & mask_; slots_[next].number >= 0; next = (next + 1) & mask_) {
            const std::size_t wanted = home(slots_[next].key, slots_[next].size) & mask_;
            if (((next - wanted) & mask_) < ((next - at) & mask_)) continue;
            slots_[at] = slots_[next];
            at = next;
        }
        slots_[at] = Slot{};
    }

    std::vector<Slot> slots_;
    std::size_t mask_;
    std::vector<std::size_t> offsets_;
    std::vector<char> bytes_;
};

}  // namespace ramify
