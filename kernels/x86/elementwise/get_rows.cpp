#include "../row_conversion.hpp"
#include "rows.hpp"

#include <tessera/cpp/status.hpp>
#include <tessera/cpu/isa/avx2_vectors.hpp>
#include <tessera/cpu/rows.hpp>
#include <tessera/ops.h>

#include <algorithm>
#include <string>

namespace tessera::x86 {
namespace {

void run_get_rows(const tsr_node& node, const tsr_run& run) {
    const cpu::View table = cpu::input(node, run, 0);
    const cpu::View ids = cpu::input(node, run, 1);
    const cpu::View out = cpu::output(node, run);
    const int64_t n = table.dim(0);
    const int64_t pieces = (n + kConvertedElements - 1) / kConvertedElements;
    const tsr_range rows = sdk::actual_rows(*ids.tensor, run);
    const cpu::Share part = cpu::share(std::max(0, rows.end - rows.begin) * pieces, run);
    for (int64_t item = part.begin; item < part.end; ++item) {
        const int64_t r = rows.begin + item / pieces;
        const int64_t first = item % pieces * kConvertedElements;
        const int32_t id = ids.integer(r);
        if (id < 0 || id >= table.dim(1)) {
            throw sdk::Failure(TSR_INVALID_ARGUMENT,
                               std::string("get_rows ") + (node.name ? node.name : "") + ": expected a row from 0 to " +
                                   std::to_string(table.dim(1) - 1) + ", found " + std::to_string(id));
        }
        decode_floats<cpu::isa::Avx2Vectors>(table.tensor->type, table.row(id), first,
                                             std::min(kConvertedElements, n - first), out.floats(r) + first);
    }
}

}  // namespace

constinit const RowOp kGetRows[] = {{TSR_OP_GET_ROWS, run_row_op<run_get_rows>}, {}};

}  // namespace tessera::x86
