#include "rows.hpp"

#include <tessera/cpu/elementwise/pointwise.hpp>
#include <tessera/cpu/isa/avx2_vectors.hpp>

namespace tessera::x86 {

using Isa = cpu::isa::Avx2Vectors;
namespace elementwise = cpu::elementwise;

void run_rms_norm(const tsr_node& node, const tsr_run& run) {
    elementwise::run_rms_norm<Isa>(node, run);
}
void run_rope(const tsr_node& node, const elementwise::RopeTable& table, const tsr_run& run) {
    elementwise::run_rope<Isa>(node, table, run);
}
void run_add(const tsr_node& node, const tsr_run& run) {
    elementwise::run_add<Isa>(node, run);
}
void run_mul(const tsr_node& node, const tsr_run& run) {
    elementwise::run_mul<Isa>(node, run);
}
void run_silu_mul(const tsr_node& node, const tsr_run& run) {
    elementwise::run_silu_mul<Isa>(node, run);
}
void run_weighted_sum(const tsr_node& node, const tsr_run& run) {
    elementwise::run_weighted_sum<Isa>(node, run);
}

}  // namespace tessera::x86
