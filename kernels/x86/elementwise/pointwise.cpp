#include "rows.hpp"

#include <tessera/cpu/elementwise/pointwise.hpp>
#include <tessera/cpu/elementwise/rope.hpp>
#include <tessera/cpu/isa/avx2_vectors.hpp>
#include <tessera/ops.h>

namespace tessera::x86 {
namespace {

using Isa = cpu::isa::Avx2Vectors;
namespace elementwise = cpu::elementwise;

void run_rope(const RowNode& of, const tsr_run& run) {
    elementwise::run_rope<Isa>(of.node, *static_cast<const elementwise::RopeTable*>(of.prepared), run);
}

std::shared_ptr<const void> prepare_rope(const tsr_node& node) {
    return std::make_shared<const elementwise::RopeTable>(node);
}

}  // namespace

constinit const RowOp kPointwise[] = {
    {TSR_OP_RMS_NORM, run_row_op<elementwise::run_rms_norm<Isa>>},
    {.op = TSR_OP_ROPE, .run = run_rope, .longest = 2 * elementwise::kMaxPairs, .prepare = prepare_rope},
    {TSR_OP_SCALE_BY_POSITION, run_row_op<elementwise::run_scale_by_position<Isa>>},
    {TSR_OP_SCALE, run_row_op<elementwise::run_scale<Isa>>},
    {TSR_OP_SIGMOID_MUL, run_row_op<elementwise::run_sigmoid_mul<Isa>>},
    {TSR_OP_ADD, run_row_op<elementwise::run_add<Isa>>},
    {TSR_OP_MUL, run_row_op<elementwise::run_mul<Isa>>},
    {TSR_OP_SILU_MUL, run_row_op<elementwise::run_silu_mul<Isa>>},
    {TSR_OP_GLU, run_row_op<elementwise::run_glu<Isa>>},
    {TSR_OP_ADD_ID, run_row_op<elementwise::run_add_id<Isa>>},
    {TSR_OP_WEIGHTED_SUM, run_row_op<elementwise::run_weighted_sum<Isa>>},
    {}};

}  // namespace tessera::x86
