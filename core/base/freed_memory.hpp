/// Memory that was freed goes back to the system while data move from many small arrays into one large one. The C
/// library keeps freed memory for later, so that such a move would need room for both copies.
#pragma once

#include <atomic>
#include <cstddef>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace ramify {

class FreedMemory {
public:
    /// So many bytes were freed; any thread may say so.
    void add(std::size_t n_bytes) {
        if ((n_bytes_ += n_bytes) < n_at_once) return;
        n_bytes_ = 0;
#if defined(__GLIBC__)
        ::malloc_trim(0);
#endif
    }

private:
    static constexpr std::size_t n_at_once = std::size_t{16} << 20;
    std::atomic<std::size_t> n_bytes_ = 0;
};

}  // namespace ramify
