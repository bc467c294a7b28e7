/// The core's hash map: 32-bit keys, open addressing with linear probing, keys and values side by side in one array.
///
/// There is no erase: owners that drop keys rebuild the map. Owners count their keys and reserve room before they
/// add some, so that adding moves nothing: pointers to values stay valid until the next reserve.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/hashing.hpp"

namespace ramify {

/// `MaxLoad`: how full the table may be, in percent. 75 saves memory; 50 is faster where most lookups find nothing.
template <class Value, int MaxLoad>
class HashMap {
public:
    static constexpr std::uint32_t free_key = 0xffffffffu;  ///< marks a free slot; never a key

    struct Slot {
        std::uint32_t key = free_key;
        Value value{};
    };

    std::size_t bytes() const { return slots_.capacity() * sizeof(Slot); }

    void prefetch(std::uint32_t key) const {
        if (!slots_.empty()) __builtin_prefetch(&slots_[home(key)]);
    }

    /// The value of a key, or null.
    const Value* find(std::uint32_t key) const {
        return find(key, [](const Value&) { return true; });
    }

    /// The same where several entries may have the key: the one whose value is_it accepts.
    template <class IsIt>
    const Value* find(std::uint32_t key, IsIt&& is_it) const {
        if (slots_.empty()) return nullptr;
        for (std::size_t at = home(key);; at = next(at)) {
            const Slot& slot = slots_[at];
            if (slot.key == key && is_it(slot.value)) return &slot.value;
            if (slot.key == free_key) return nullptr;
        }
    }

    /// Makes room for this many keys in all.
    void reserve(std::size_t n_keys) {
        if (100 * n_keys <= MaxLoad * slots_.size()) return;
        std::vector<Slot> old(std::bit_ceil(std::max<std::size_t>(16, n_keys * 100 / MaxLoad + 1)));
        old.swap(slots_);
        for (const Slot& slot : old)
            if (slot.key != free_key) place(slot);
    }

    /// The value of a key, and whether the key is new (then the value is Value{}). Call reserve first.
    std::pair<Value&, bool> find_or_add(std::uint32_t key) {
        for (std::size_t at = home(key);; at = next(at)) {
            Slot& slot = slots_[at];
            if (slot.key == key) return {slot.value, false};
            if (slot.key == free_key) {
                slot.key = key;
                return {slot.value, true};
            }
        }
    }

    /// Adds an entry without looking for its key. Call reserve first.
    void add(std::uint32_t key, const Value& value) { place({key, value}); }

    /// All entries, in the order of the table.
    template <class Work>
    void for_each(Work&& work) const {
        for (const Slot& slot : slots_)
            if (slot.key != free_key) work(slot.key, slot.value);
    }

    /// All entries in order of key.
    std::vector<Slot> sorted() const {
        std::vector<Slot> entries;
        for_each([&](std::uint32_t key, const Value& value) { entries.push_back({key, value}); });
        std::ranges::sort(entries, {}, &Slot::key);
        return entries;
    }

private:
    /// Fibonacci hashing: keys that differ by a constant, as the features of a row often do, spread evenly.
    std::size_t home(std::uint32_t key) const { return (key * golden_ratio >> 32) & (slots_.size() - 1); }
    std::size_t next(std::size_t at) const { return (at + 1) & (slots_.size() - 1); }

    void place(const Slot& slot) {
        std::size_t at = home(slot.key);
        while (slots_[at].key != free_key) at = next(at);
        slots_[at] = slot;
    }

    std::vector<Slot> slots_;
};

}  // namespace ramify
