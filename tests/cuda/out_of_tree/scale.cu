#include "scale.hpp"

#include <tessera/cuda/simt.hpp>

// y = factor * x
SIMT_KERNEL(128, 8) scale(Scale a) {
    using namespace simt;
    const int i = static_cast<int>(block_index().x * block_size().x + thread_index().x);
    if (i < a.n) a.y[i] = a.factor * load_global<float>(a.x + i);
}
