// Not compiled but by a test: what the compiler can tell of variables without a value is an error.
#include <tessera/cuda/simt.hpp>

SIMT_KERNEL(32, 1) uninitialised(int* out, int n) {
    int last;
    for (int i = 0; i < n; ++i) last = out[i];
    out[simt::lane()] = last;
}
