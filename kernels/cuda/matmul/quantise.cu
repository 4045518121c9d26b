// Activations of products with block formats.
#include "quantise.hpp"

using namespace tessera::cuda_kernels;
using namespace simt;

SIMT_KERNEL(32 * kQuantiseWarps, 8) quantise_activations(Matmul a) {
    write_activations(a);
}

#if SIMT_ARCH >= 800  // as tensor cores read them
SIMT_KERNEL(32 * kQuantiseWarps, 8) quantise_columns(Matmul a) {
    write_columns(a, [&](const RowRange& range, int row, int64_t byte) {
        return load_global<float>(at<char>(a.x, (range.begin + row) * a.x_row + byte));
    });
}
SIMT_KERNEL(32 * kQuantiseWarps, 8) quantise_gated_columns(GatedActivations g) {
    write_columns(g.matmul, [&](const RowRange&, int row, int64_t byte) {
        const int64_t place = row * g.matmul.x_row + byte;
        const auto gate = load_global<float>(at<char>(g.matmul.x, place));
        return gate / (1.f + expf(-gate)) * load_global<float>(at<char>(g.up, place));
    });
}
#endif
