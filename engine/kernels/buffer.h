// A scratch buffer that grows and never shrinks, aligned to cache lines.

#pragma once

#include <cstdio>
#include <cstdlib>

namespace {

template <class T>
struct Buffer {
    T *get(size_t n) {
        if (n <= size) return data;
        std::free(data);
        data = static_cast<T *>(std::aligned_alloc(64, (n * sizeof(T) + 63) / 64 * 64));
        if (!data) {
            std::fprintf(stderr, "knapserve: no memory for %zu bytes of scratch\n", n * sizeof(T));
            std::abort();
        }
        size = n;
        return data;
    }
    ~Buffer() { std::free(data); }
    T *data = nullptr;
    size_t size = 0;
};

}  // namespace
