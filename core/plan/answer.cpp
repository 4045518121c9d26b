#include "core/plan/answer.hpp"

#include "core/base/text.hpp"
#include "core/graph/types.hpp"

#include <tessera/cpp/node.hpp>

#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

namespace tessera {
namespace {

std::string layouts_fault(const tsr_kernel_plan& plan, const tsr_node& node, uint32_t index, const Registry& registry) {
    const char* const* list = plan.layouts[index];
    if (!list) return {};
    const tsr_tensor& tensor = sdk::operand(node, index);
    for (uint32_t i = 0; list[i]; ++i) {
        if (i == kMaxLayouts) {
            return fmt::format("layouts[{}] has no end: expected at most {} names and then NULL", index, kMaxLayouts);
        }
        const std::string name = printable({list[i], ::strnlen(list[i], 100)}, 100);
        if (name.empty()) continue;
        if (tensor.role != TSR_ROLE_WEIGHT && tensor.role != TSR_ROLE_CACHE) {
            return fmt::format("layouts[{}] asks for the layout {} of {}; only weights and caches can have one", index,
                               name, tensor.role == TSR_ROLE_INPUT ? "an input" : "an activation");
        }
        const tsr_layout* layout = registry.find_layout(list[i]);
        if (!layout) return fmt::format("layouts[{}] names the layout {}, which no loaded plugin brings", index, name);
        if (layout->type != tensor.type) {
            return fmt::format("layouts[{}] names {}, a layout of {}, for an operand of {}", index, name,
                               type_info(layout->type).name, type_info(tensor.type).name);
        }
    }
    return {};
}

}  // namespace

std::string answer_fault(const tsr_kernel_plan& plan, const tsr_node& node, const Registry& registry) {
    if (plan.supported > 1) return fmt::format("supported is {}, expected 0 or 1", plan.supported);
    if (!std::memchr(plan.reason, '\0', sizeof plan.reason)) {
        return fmt::format("reason has no end within its {} bytes", sizeof plan.reason);
    }
    if (!plan.supported) return {};

    const std::pair<const char*, double> estimates[] = {{"seconds_one_row", plan.seconds_one_row},
                                                        {"seconds_all_rows", plan.seconds_all_rows},
                                                        {"seconds_one_row_full", plan.seconds_one_row_full},
                                                        {"seconds_all_rows_full", plan.seconds_all_rows_full},
                                                        {"bytes_one_row", plan.bytes_one_row},
                                                        {"bytes_all_rows", plan.bytes_all_rows}};
    for (const auto& [name, value] : estimates) {
        if (!std::isfinite(value) || value < 0) {
            return fmt::format("{} is {}, expected a finite number that is not negative", name, value);
        }
    }
    const std::pair<const char*, uint64_t> sizes[] = {{"workspace_bytes", plan.workspace_bytes},
                                                      {"minimum_scratch_bytes", plan.minimum_scratch_bytes}};
    for (const auto& [name, value] : sizes) {
        if (value > kMaxWorkspaceBytes) {
            return fmt::format("{} is {}, expected at most {}", name, value, kMaxWorkspaceBytes);
        }
    }
    for (uint32_t i = 0; i < node.input_count + node.output_count; ++i) {
        if (std::string why = layouts_fault(plan, node, i, registry); !why.empty()) return why;
    }
    return {};
}

}  // namespace tessera
