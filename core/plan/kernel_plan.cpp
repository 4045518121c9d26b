#include "core/plan/kernel_plan.hpp"

#include "core/base/text.hpp"

#include <tessera/cpp/plan_fault.hpp>

namespace tessera {

std::string kernel_plan_fault(const tsr_kernel_plan& plan, const tsr_node& node, std::string_view interop,
                              const Registry& registry) {
    const auto find = [&](const char* name, std::string_view packs_on) {
        return packs_on.empty() ? registry.find_layout(name) : registry.find_device_layout(name, packs_on);
    };
    const auto group_bytes = [&](const tsr_layout& layout, int64_t elements) {
        return call_plugin(registry.call(layout, "group_bytes"), [&] { return layout.group_bytes(&layout, elements); });
    };
    return printable(sdk::plan_fault(plan, node, interop, find, group_bytes), 1000);
}

}  // namespace tessera
