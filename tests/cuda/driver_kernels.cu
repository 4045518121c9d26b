// What tests of the emulated driver launch.
#include <tessera/cuda/simt.hpp>

using namespace simt;

SIMT_KERNEL(256, 1) fill(int* out, int n, int value) {
    const int i = static_cast<int>(block_index().x * block_size().x + thread_index().x);
    if (i < n) out[i] = value;
}

SIMT_KERNEL(32, 1) architecture(int* out) {
    if (thread_index().x == 0) *out = SIMT_ARCH;
}

SIMT_KERNEL(256, 1) add_one(int* values, int n) {
    const int i = static_cast<int>(block_index().x * block_size().x + thread_index().x);
    if (i < n) values[i] += 1;
}

struct Scaling {
    const float* in;
    float* out;
    double factor;
    int n;
};

SIMT_KERNEL(128, 2) scale(const Scaling s) {
    SIMT_SHARED(float, tile, 128);
    const int t = static_cast<int>(thread_index().x), i = static_cast<int>(block_index().x) * 128 + t;
    tile[t] = i < s.n ? load_global<float>(s.in + i) : 0.0f;
    sync_block();
    if (i < s.n) s.out[i] = tile[t] * static_cast<float>(s.factor);
}

// Reads the last of n bytes of dynamic shared memory after it wrote all of them.
SIMT_KERNEL(32, 1) use_shared(int* out, int n) {
    SIMT_DYNAMIC_SHARED(bytes);
    for (int i = static_cast<int>(lane()); i < n; i += 32) bytes[i] = static_cast<unsigned char>(i);
    sync_warp();
    if (lane() == 0) *out = bytes[n - 1];
}

SIMT_KERNEL(32, 1) at_offset(int* base, long long bytes) {
    if (thread_index().x == 0) *reinterpret_cast<int*>(reinterpret_cast<char*>(base) + bytes) = 1;
}

SIMT_KERNEL(64, 1) race(int* out) {
    out[0] = static_cast<int>(thread_index().x);
}

SIMT_KERNEL(32, 1) wait_for_flag(unsigned* flag) {
    while (atomic_cas(flag, 0, 0) == 0) {
    }
}
