#include "common.hpp"

#include "../layouts/byte_pages.hpp"
#include "../layouts/int16_pages.hpp"

#include <algorithm>

namespace tessera::x86 {

namespace {

bool is_own_layout(const tsr_tensor& tensor) noexcept {
    if (tensor.role == TSR_ROLE_CACHE) return has_int16_layout(tensor) || byte_pages_of(tensor).elements > 0;
    const WeightKernels* kernels = find_weight_kernels(tensor.type);
    return kernels && std::strcmp(kernels->layout, tensor.layout) == 0 && packable(tensor);
}

}  // namespace

CanonicalNode::CanonicalNode(const tsr_node& node) noexcept : node_(node) {
    uint32_t count = 0;
    const auto copy = [&](const tsr_tensor* const* list, uint32_t n) {
        const tsr_tensor** first = pointers_.data() + count;
        for (uint32_t i = 0; i < n && count < TSR_MAX_OPERANDS; ++i, ++count) {
            pointers_[count] = list[i];
            if (!sdk::present(list[i]) || sdk::canonical(*list[i])) continue;
            if (!is_own_layout(*list[i])) continue;
            tensors_[count] = *list[i];
            tensors_[count].layout = nullptr;
            pointers_[count] = &tensors_[count];
        }
        return first;
    };
    // A node of more operands than the ABI allows keeps its own lists: checks of the count refuse it.
    if (node.input_count + node.output_count > TSR_MAX_OPERANDS) return;
    node_.inputs = copy(node.inputs, node.input_count);
    node_.outputs = copy(node.outputs, node.output_count);
}

Weight::Weight(const tsr_node& node, uint32_t index) noexcept : operand(index) {
    const tsr_tensor& tensor = sdk::operand(node, index);
    kernels = find_weight_kernels(tensor.type);
    k = tensor.dims[0];
    n = tensor.dims[1];
    row_bytes = tensor.strides[1];
    batch_bytes = tensor.strides[2];
    packed = !sdk::canonical(tensor);
}

WeightRows Weight::rows(const tsr_node& node, const tsr_run& run, int64_t batch) const noexcept {
    return {sdk::operand_data<unsigned char>(node, run, operand) + batch * batch_bytes, row_bytes, n, packed};
}

bool packable(const tsr_tensor& weight) noexcept {
    const auto row = static_cast<int64_t>(cpu::format_bytes(weight.type, static_cast<size_t>(weight.dims[0])));
    const int64_t group = row * kLanes;
    if (row == 0 || weight.rank < 2 || weight.strides[1] != row || weight.dims[1] % kLanes != 0) return false;
    if (weight.offset % group != 0) return false;
    return weight.rank == 2 || weight.strides[2] % group == 0;
}

void Cost::add(const Weight& weight, double matrices_one, double rows_one, double matrices_all, double rows_all,
               const Macs& macs) noexcept {
    // Codes are taken apart once for a block of rows, which is as much work as some rows more.
    constexpr double kDecodingRows = 1.2;
    one.bytes += matrices_one * weight.bytes();
    all.bytes += matrices_all * weight.bytes();
    const double rate = rows_all > kVectorRows * matrices_all ? macs.many_rows : macs.few_rows;
    one.seconds += (rows_one + kDecodingRows * matrices_one) * weight.macs() / macs.few_rows;
    all.seconds += (rows_all / rate + kDecodingRows * matrices_all / macs.few_rows) * weight.macs();
}

void Cost::write(const tsr_device_info* device, int barriers, tsr_kernel_plan& plan) const noexcept {
    Estimate(device).write(plan, barriers, one, all, one, all);
}

}  // namespace tessera::x86
