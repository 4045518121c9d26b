#include "core/plan/answer.hpp"

#include "core/base/text.hpp"

#include <tessera/cpp/plan_fault.hpp>

namespace tessera {

std::string answer_fault(const tsr_kernel_plan& plan, const tsr_node& node, const Registry& registry) {
    return printable(sdk::plan_fault(plan, node, [&](const char* name) { return registry.find_layout(name); }), 1000);
}

}  // namespace tessera
