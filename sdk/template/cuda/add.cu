// The kernel. tessera/cuda/simt.hpp lists what it may use; it is compiled for each card, and for the emulator.
#include "add.hpp"

#include <tessera/cuda/simt.hpp>

// A block for each row of the inner dimensions (x), and for rows of the slowest one in steps of the grid (y): the launch is as
// large as the step may be, the range on the device says which rows there are.
SIMT_KERNEL(example::kThreads, 8) add(example::Add args) {
    using namespace simt;
    const example::RowRange rows = args.rows ? *args.rows : example::RowRange{0, args.all};
    const auto inner = static_cast<int>(block_index().x);
    const int index[2] = {inner % args.inner[0], inner / args.inner[0]};
    for (int row = rows.begin + static_cast<int>(block_index().y); row < rows.end; row += static_cast<int>(grid_size().y)) {
        const auto offset = [&](const int64_t* strides) {
            return index[0] * strides[0] + index[1] * strides[1] + row * strides[2];
        };
        const char* const a = args.a + offset(args.strides[0]);
        const char* const b = args.b + offset(args.strides[1]);
        char* const y = args.y + offset(args.strides[2]);
        for (int i = static_cast<int>(thread_index().x); i < args.n; i += example::kThreads) {
            // Plain loads, not load_global: y may be a or b.
            const float sum = reinterpret_cast<const float*>(a)[i] + reinterpret_cast<const float*>(b)[i];
            store_global(reinterpret_cast<float*>(y) + i, sum);
        }
    }
}
