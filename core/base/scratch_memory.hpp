/// Memory for a large array: of the process, or of a file without a name that the system may write back and read again,
/// so that the array may be larger than the memory.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <string>
#include <system_error>

#include "base/huge_pages.hpp"

namespace ramify {

template <class T>
struct ScratchDelete {
    std::size_t n_mapped = 0;  ///< bytes of the mapped file; 0: the process's own memory
    void operator()(T* p) const {
        if (n_mapped > 0)
            ::munmap(static_cast<void*>(p), n_mapped);
        else
            delete[] p;
    }
};

template <class T>
using ScratchArray = std::unique_ptr<T[], ScratchDelete<T>>;

/// Not initialised. `directory` is where the file is made; empty: no file.
template <class T>
ScratchArray<T> scratch_array(std::size_t n, const std::string& directory) {
    if (directory.empty() || n == 0) {
        ScratchArray<T> array(new T[n]);
        ask_for_huge_pages(array.get(), n * sizeof(T));
        return array;
    }
    auto check = [&](bool is_fine, int error) {
        if (!is_fine) throw std::system_error(error, std::generic_category(), "scratch file in " + directory);
    };
    std::string name = directory + "/ramify-scratch-XXXXXX";
    const int file = ::mkstemp(name.data());
    check(file >= 0, errno);
    ::unlink(name.c_str());
    const std::size_t size = n * sizeof(T);
#if defined(__linux__)
    const int error =
        ::posix_fallocate(file, 0, static_cast<off_t>(size));  // a full disk is an error now, not a signal
#else
    const int error = ::ftruncate(file, static_cast<off_t>(size)) == 0 ? 0 : errno;
#endif
    void* memory = error == 0 ? ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    const int reason = error == 0 ? errno : error;
    ::close(file);
    check(memory != MAP_FAILED, reason);
    return ScratchArray<T>(static_cast<T*>(memory), {size});
}

}  // namespace ramify
