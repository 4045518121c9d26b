#include "common.hpp"

#include <algorithm>

namespace tessera::cpu_x86 {

namespace {

// Of host memory, where the device does not say: two channels of DDR4.
constexpr double kBandwidth = 25e9;
// What a node costs beside its work: two barriers and the way to the kernel.
constexpr double kCall = 2e-6;

}  // namespace

CanonicalNode::CanonicalNode(const tsr_node& node) noexcept : node_(node) {
    uint32_t count = 0;
    const auto copy = [&](const tsr_tensor* const* list, uint32_t n) {
        const tsr_tensor** first = pointers_.data() + count;
        for (uint32_t i = 0; i < n && count < TSR_MAX_OPERANDS; ++i, ++count) {
            pointers_[count] = list[i];
            if (!sdk::present(list[i]) || sdk::canonical(*list[i])) continue;
            const WeightKernels* kernels = find_weight_kernels(list[i]->type);
            if (!kernels || std::strcmp(kernels->layout, list[i]->layout) != 0 || !packable(*list[i])) continue;
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

void Cost::add(const Weight& weight, double matrices_one, double rows_one, double matrices_all,
               double rows_all) noexcept {
    bytes_one_row += matrices_one * weight.bytes();
    bytes_all_rows += matrices_all * weight.bytes();
    seconds_one_row += rows_one * weight.macs() / weight.kernels->macs;
    seconds_all_rows += rows_all * weight.macs() / weight.kernels->macs;
}

void Cost::write(const tsr_device_info* device, tsr_kernel_plan& plan) const noexcept {
    const double bandwidth = device && device->memory_bandwidth > 0 ? device->memory_bandwidth : kBandwidth;
    const double workers = slots_of(device);
    plan.seconds_one_row = kCall + std::max(bytes_one_row / bandwidth, seconds_one_row / workers);
    plan.seconds_all_rows = kCall + std::max(bytes_all_rows / bandwidth, seconds_all_rows / workers);
}

}  // namespace tessera::cpu_x86
