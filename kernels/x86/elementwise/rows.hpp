// Kernels for AVX2 of ops that work on one row at a time and have no version for wider vectors. Each file ends with the
// list of its own, and elementwise.cpp makes kernels of all lists.
#pragma once

#include <tessera/kernel.h>

#include <cstdint>
#include <limits>
#include <memory>

namespace tessera::x86 {

// A node that has passed its check of the CPU kit (tessera/cpu/checks/row_ops.hpp). Any number of workers; results do
// not depend on it.
struct RowNode {
    const tsr_node& node;
    const void* prepared;  // what RowOp::prepare made
};

struct RowOp {
    const char* op;
    // Throws sdk::Failure(TSR_INVALID_ARGUMENT) for data that is out of range, such as an id.
    void (*run)(const RowNode& of, const tsr_run& run);
    const char* variant = "one row at a time";
    int64_t longest = std::numeric_limits<int64_t>::max();  // elements of a row that it takes
    std::shared_ptr<const void> (*prepare)(const tsr_node& node) = nullptr;
};

// RowOp::run of a function that needs nothing prepared.
template <auto kRun>
void run_row_op(const RowNode& of, const tsr_run& run) {
    kRun(of.node, run);
}

// Lists, which end with an op of no name.
extern const RowOp kGetRows[], kPointwise[], kHadamard[], kRouting[], kStorage[];

}  // namespace tessera::x86
