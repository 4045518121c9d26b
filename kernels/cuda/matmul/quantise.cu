// Activations of products with block formats.
#include "quantise.hpp"

using namespace tessera::cuda_kernels;

SIMT_KERNEL(32 * kQuantiseWarps, 8) quantise_activations(Matmul a) {
    write_activations(a);
}

#if SIMT_ARCH >= 800  // as tensor cores read them
SIMT_KERNEL(32 * kQuantiseWarps, 8) quantise_columns(Matmul a) {
    write_columns(a);
}
#endif
