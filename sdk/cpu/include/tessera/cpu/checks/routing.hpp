// The check of moe_route, and its attributes; see checks/elementwise.hpp.
#pragma once

#include <tessera/cpu/check.hpp>
#include <tessera/cpu/checks/named.hpp>
#include <tessera/ops.h>

namespace tessera::cpu {

struct RouteAttributes {
    int64_t used = 0, groups = 1, groups_used = 1, keep_at_least = 0;
    bool sigmoid = false, normalize = false;
    double scale = 1, keep_ratio = 0;

    explicit RouteAttributes(const tsr_node& node) noexcept {
        used = sdk::int_attribute(node, "used", 0);
        groups = std::max<int64_t>(1, sdk::int_attribute(node, "groups", 1));
        groups_used = sdk::int_attribute(node, "groups_used", 1);
        keep_at_least = sdk::int_attribute(node, "keep_at_least", used);
        sigmoid = sdk::string_attribute(node, "gating", "") == "sigmoid";
        normalize = sdk::int_attribute(node, "normalize", 0) != 0;
        scale = sdk::float_attribute(node, "scale", 1);
        keep_ratio = sdk::float_attribute(node, "keep_ratio", 0);
    }
};

inline void check_moe_route(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    check.operands();
    const std::string_view gating = sdk::string_attribute(node, "gating", "");
    if (gating != "softmax" && gating != "sigmoid") {
        check.no("moe_route: required another gating; supported: softmax, sigmoid; missing: that gating");
    }
    if (!check) return;
    work = row_work(check.at(0), 8);
    plan.supported = 1;
}

inline constexpr NamedCheck kRoutingChecks[] = {{TSR_OP_MOE_ROUTE, check_moe_route}};

}  // namespace tessera::cpu
