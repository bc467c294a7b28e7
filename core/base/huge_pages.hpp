/// Large arrays on huge pages, where the system has them: far fewer page faults when they are first written, and
/// cheaper access in random order afterwards.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace ramify {

inline constexpr std::size_t huge_page = std::size_t{2} << 20;

/// Says so before the array is written. Whether the system follows is its own affair; nothing depends on it.
inline void ask_for_huge_pages([[maybe_unused]] void* begin, [[maybe_unused]] std::size_t n_bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    const auto at = reinterpret_cast<std::uintptr_t>(begin);
    const std::uintptr_t first = (at + huge_page - 1) / huge_page * huge_page,
                         end = (at + n_bytes) / huge_page * huge_page;
    if (end > first) ::madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
#endif
}

}  // namespace ramify
