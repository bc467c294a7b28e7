/// The core's hash map: 32-bit keys, open addressing with linear probing, keys and values side by side in one array.
///
/// There is no erase: owners that drop keys rebuild the map. Room is reserved before keys are added, so that adding
/// moves nothing: pointers to values stay valid until the next reserve.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
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

    HashMap() = default;
    HashMap(const HashMap& other) : mask_(other.mask_), shift_(other.shift_), n_keys_(other.n_keys_) {
        if (!other.slots_) return;
        slots_ = std::make_unique_for_overwrite<Slot[]>(other.n_slots());
        std::copy_n(other.slots_.get(), other.n_slots(), slots_.get());
    }
    HashMap(HashMap&& other) noexcept
        : slots_(std::move(other.slots_)),
          mask_(other.mask_),
          shift_(other.shift_),
          n_keys_(std::exchange(other.n_keys_, 0)) {}
    HashMap& operator=(HashMap other) noexcept {
        std::swap(slots_, other.slots_);
        std::swap(mask_, other.mask_);
        std::swap(shift_, other.shift_);
        std::swap(n_keys_, other.n_keys_);
        return *this;
    }

    std::size_t size() const { return n_keys_; }
    std::size_t bytes() const { return n_slots() * sizeof(Slot); }

    void prefetch(std::uint32_t key) const {
        if (slots_) __builtin_prefetch(&slots_[home(key)]);
    }

    /// The value of a key, or null.
    const Value* find(std::uint32_t key) const {
        return find(key, [](const Value&) { return true; });
    }

    Value* find(std::uint32_t key) { return const_cast<Value*>(std::as_const(*this).find(key)); }

    /// The same where several entries may have the key: the one whose value is_it accepts.
    template <class IsIt>
    const Value* find(std::uint32_t key, IsIt&& is_it) const {
        if (!slots_) return nullptr;
        for (std::size_t at = home(key);; at = next(at)) {
            const Slot& slot = slots_[at];
            if (slot.key == key && is_it(slot.value)) return &slot.value;
            if (slot.key == free_key) return nullptr;
        }
    }

    /// Makes room for this many more keys.
    void reserve_more(std::size_t n) {
        const std::size_t needed = n_keys_ + n, n_old = n_slots();
        if (100 * needed <= MaxLoad * n_old) return;
        const std::size_t n_new = std::bit_ceil(std::max<std::size_t>(16, needed * 100 / MaxLoad + 1));
        if (n_new > std::size_t{1} << 32) throw std::length_error("a hash map cannot hold this many keys");
        const auto old = std::exchange(slots_, std::make_unique<Slot[]>(n_new));
        mask_ = static_cast<std::uint32_t>(n_new - 1);
        shift_ = 64 - std::countr_zero(n_new);
        for (std::size_t k = 0; k < n_old; ++k)
            if (old[k].key != free_key) place(old[k]);
    }

    /// The value of a key, and whether the key is new (then the value is Value{}). Call reserve_more first.
    std::pair<Value&, bool> find_or_add(std::uint32_t key) {
        for (std::size_t at = home(key);; at = next(at)) {
            Slot& slot = slots_[at];
            if (slot.key == key) return {slot.value, false};
            if (slot.key == free_key) {
                slot.key = key;
                ++n_keys_;
                return {slot.value, true};
            }
        }
    }

    /// Adds an entry without looking for its key. Call reserve_more first.
    void add(std::uint32_t key, const Value& value) {
        place({key, value});
        ++n_keys_;
    }

    /// All entries, in the order of the table.
    template <class Work>
    void for_each(Work&& work) const {
        for (std::size_t k = 0; k < n_slots(); ++k)
            if (slots_[k].key != free_key) work(slots_[k].key, slots_[k].value);
    }

    /// All entries in order of key.
    std::vector<Slot> sorted() const {
        std::vector<Slot> entries;
        entries.reserve(n_keys_);
        for_each([&](std::uint32_t key, const Value& value) { entries.push_back({key, value}); });
        std::ranges::sort(entries, {}, &Slot::key);
        return entries;
    }

private:
    std::size_t n_slots() const { return slots_ ? std::size_t{mask_} + 1 : 0; }

    /// Fibonacci hashing: the upper bits spread keys that differ by a constant, as features often do, evenly.
    std::size_t home(std::uint32_t key) const { return key * golden_ratio >> shift_; }
    std::size_t next(std::size_t at) const { return (at + 1) & mask_; }

    void place(const Slot& slot) {
        std::size_t at = home(slot.key);
        while (slots_[at].key != free_key) at = next(at);
        slots_[at] = slot;
    }

    std::unique_ptr<Slot[]> slots_;
    std::uint32_t mask_ = 0;
    int shift_ = 0;  ///< leaves as many bits as the mask has
    std::size_t n_keys_ = 0;
};

}  // namespace ramify
