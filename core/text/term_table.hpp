/// Distinct terms, numbered in order of arrival: open addressing, with the bytes of short terms in the table itself.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "base/hashing.hpp"

namespace ramify {

/// The bytes of a term. At least 8 bytes from its begin, and from 8 bytes before its end, can be read.
struct Term {
    const char* data;
    std::size_t size;

    std::string_view view() const { return {data, size}; }
};

namespace term_bytes {

inline std::uint64_t load(const char* from) {
    std::uint64_t word;
    std::memcpy(&word, from, 8);
    return word;
}

/// The first bytes of a term of at most 8, the rest zero.
inline std::uint64_t load_short(const char* from, std::size_t size) {
    return size == 0 ? 0 : load(from) & (~std::uint64_t{0} >> (64 - 8 * size));
}

/// Both halves of a product: the basic step of wyhash and its kind.
inline std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
    const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

/// For terms of more than 8 bytes.
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
    TermTable() : slots_(16), offsets_{0}, bytes_(room, '\0') {}

    std::size_t size() const { return offsets_.size() - 1; }
    Term term(std::size_t number) const {
        return {bytes_.data() + offsets_[number], offsets_[number + 1] - offsets_[number]};
    }
    std::size_t bytes() const {
        return slots_.capacity() * sizeof(Slot) + bytes_.capacity() + offsets_.capacity() * sizeof(std::size_t);
    }

    /// Of a term of at most 8 bytes the key is the term itself: equal keys and sizes are equal terms.
    static std::uint64_t key_of(Term term) {
        return term.size <= 8 ? term_bytes::load_short(term.data, term.size)
                              : term_bytes::hash_long(term.data, term.size);
    }

    void prefetch(Term term, std::uint64_t key) const {
        __builtin_prefetch(&slots_[home(key, term.size) & (slots_.size() - 1)]);
    }

    /// The number of a term; -1 if it is not in the table.
    std::int32_t find(Term term) const { return find(term, key_of(term)); }
    std::int32_t find(Term term, std::uint64_t key) const { return slots_[place_of(term, key)].number; }

    std::int32_t find_or_add(Term term) { return find_or_add(term, key_of(term)); }
    std::int32_t find_or_add(Term term, std::uint64_t key) {
        std::size_t at = place_of(term, key);
        if (slots_[at].number >= 0) return slots_[at].number;
        if (size() >= std::numeric_limits<std::int32_t>::max() - 1 ||
            term.size > std::numeric_limits<std::uint32_t>::max())
            throw std::length_error("there are too many terms");
        if (2 * (size() + 1) > slots_.size()) {
            grow();
            at = place_of(term, key);
        }
        const auto number = static_cast<std::int32_t>(size());
        slots_[at] = {key, number, static_cast<std::uint32_t>(term.size)};
        const std::size_t end = offsets_.back() + term.size;
        if (bytes_.size() < end + room) bytes_.resize((end + room) * 3 / 2);
        std::memcpy(bytes_.data() + offsets_.back(), term.data, term.size);
        offsets_.push_back(end);
        return number;
    }

    /// Forgets the terms from this number on. The last ones to come leave first, so that no probe sequence breaks.
    void shrink(std::size_t n_terms) {
        while (size() > n_terms) {
            const Term last = term(size() - 1);
            slots_[place_of(last, key_of(last))] = Slot{};
            offsets_.pop_back();
        }
    }

    /// The numbers of the terms in order of their characters.
    std::vector<std::int32_t> sorted() const {
        struct Entry {
            std::uint64_t start;  ///< the first 8 bytes, so that most comparisons are those of numbers
            std::int32_t number;
        };
        std::vector<Entry> entries(size());
        for (std::size_t k = 0; k < size(); ++k) {
            const Term t = term(k);
            entries[k] = {__builtin_bswap64(term_bytes::load_short(t.data, std::min<std::size_t>(t.size, 8))),
                          static_cast<std::int32_t>(k)};
        }
        std::ranges::sort(entries, [&](const Entry& a, const Entry& b) {
            if (a.start != b.start) return a.start < b.start;
            return term(static_cast<std::size_t>(a.number)).view() < term(static_cast<std::size_t>(b.number)).view();
        });
        std::vector<std::int32_t> order(size());
        std::ranges::transform(entries, order.begin(), &Entry::number);
        return order;
    }

private:
    static constexpr std::size_t room = 16;  ///< after the last term, for reading in words

    struct Slot {
        std::uint64_t key = 0;
        std::int32_t number = -1;
        std::uint32_t size = 0;
    };

    /// The slot that has the term, or the free one where it would go.
    std::size_t place_of(Term term, std::uint64_t key) const {
        const std::size_t mask = slots_.size() - 1;
        for (std::size_t at = home(key, term.size) & mask;; at = (at + 1) & mask) {
            const Slot& slot = slots_[at];
            if (slot.number < 0) return at;
            if (slot.key == key && slot.size == term.size &&
                (term.size <= 8 || std::memcmp(bytes_.data() + offsets_[static_cast<std::size_t>(slot.number)],
                                               term.data, term.size) == 0))
                return at;
        }
    }

    static std::size_t home(std::uint64_t key, std::size_t size) {
        return static_cast<std::size_t>(term_bytes::fold(key ^ 0xa0761d6478bd642full, size ^ 0xe7037ed1a0b428dbull));
    }

    void grow() {
        std::vector<Slot> old(slots_.size() * 2);
        old.swap(slots_);
        const std::size_t mask = slots_.size() - 1;
        // In order of arrival, so that `shrink` may take the last ones out again.
        std::vector<const Slot*> by_number(size(), nullptr);
        for (const Slot& slot : old)
            if (slot.number >= 0) by_number[static_cast<std::size_t>(slot.number)] = &slot;
        for (const Slot* slot : by_number) {
            std::size_t at = home(slot->key, slot->size) & mask;
            while (slots_[at].number >= 0) at = (at + 1) & mask;
            slots_[at] = *slot;
        }
    }

    std::vector<Slot> slots_;
    std::vector<std::size_t> offsets_;
    std::vector<char> bytes_;
};

/// Terms that wait for their slot to arrive from memory, in order: without them every other lookup would stall.
/// The bytes of the terms must stay where they are until `flush`.
class WaitingTerms {
public:
    /// Calls take(term, key) for the term that has waited longest, if there is no room.
    template <class Take>
    void push(Term term, const TermTable& table, Take&& take) {
        Waiting& place = ring_[n_ % size];
        if (n_ >= size) take(place.term, place.key);
        place = {term, TermTable::key_of(term)};
        table.prefetch(term, place.key);
        ++n_;
    }

    template <class Take>
    void flush(Take&& take) {
        for (std::size_t k = n_ > size ? n_ - size : 0; k < n_; ++k) take(ring_[k % size].term, ring_[k % size].key);
        n_ = 0;
    }

private:
    static constexpr std::size_t size = 8;
    struct Waiting {
        Term term{};
        std::uint64_t key = 0;
    };
    std::array<Waiting, size> ring_;
    std::size_t n_ = 0;
};

}  // namespace ramify
