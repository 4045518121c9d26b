#include "rows.hpp"

namespace example {

namespace sdk = tessera::sdk;

bool accept_rows(const tsr_node& node, tsr_kernel_plan& plan) noexcept {
    const tsr_tensor& first = *node.inputs[0];
    for (uint32_t i = 0; i < node.input_count + node.output_count; ++i) {
        const tsr_tensor& tensor = sdk::operand(node, i);
        bool fits = tensor.type == TSR_TYPE_F32 && sdk::canonical(tensor) && tensor.rank == first.rank &&
                    tensor.strides[0] == static_cast<int64_t>(sizeof(float));
        for (uint32_t d = 0; fits && d < first.rank; ++d) fits = tensor.dims[d] == first.dims[d];
        if (!fits) {
            sdk::refuse(plan, "operand %u: required an f32 tensor of the first one's shape with dense rows", i);
            return false;
        }
    }
    return true;
}

Rows actual_rows(const tsr_node& node, const tsr_run& run) noexcept {
    const tsr_tensor& tensor = *node.inputs[0];
    if (tensor.rank == 1) return {0, 1};
    // The range counts the slowest dimension; each step of it holds this many rows.
    int64_t inner = 1;
    for (uint32_t d = 1; d + 1 < tensor.rank; ++d) inner *= tensor.dims[d];
    const tsr_range range = sdk::actual_rows(tensor, run);
    return {range.begin * inner, range.end * inner};
}

float* row_of(const tsr_node& node, const tsr_run& run, uint32_t index, int64_t row) noexcept {
    const tsr_tensor& tensor = sdk::operand(node, index);
    int64_t bytes = 0;
    for (uint32_t d = 1; d + 1 < tensor.rank; ++d) {
        bytes += row % tensor.dims[d] * tensor.strides[d];
        row /= tensor.dims[d];
    }
    if (tensor.rank > 1) bytes += row * tensor.strides[tensor.rank - 1];
    return reinterpret_cast<float*>(sdk::operand_data<char>(node, run, index) + bytes);
}

}  // namespace example
