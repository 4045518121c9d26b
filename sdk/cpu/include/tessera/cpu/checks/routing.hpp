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

// moe_route: 0 logits, 1 bias?; outputs ids, weights.
inline void check_moe_route(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    check.counts(1, 2, 2);
    check.activation(0, "logits", 2);
    if (check && sdk::has_input(node, 1)) {
        check.activation(1, "bias", 1);
        if (check) check.dim(1, "bias", 0, check.at(0).dims[0]);
    }
    check.integers(check.out(0), "ids", 2);
    check.activation(check.out(1), "weights", 2);
    if (!check) return;
    const RouteAttributes want(node);
    const int64_t experts = check.at(0).dims[0];
    const std::string_view gating = sdk::string_attribute(node, "gating", "");
    if (gating != "softmax" && gating != "sigmoid") {
        check.no("moe_route: required another gating; supported: softmax, sigmoid; missing: that gating");
    }
    if (experts % want.groups != 0 || want.groups_used < 1 || want.groups_used > want.groups) {
        check.no("moe_route: required %lld of %lld groups of %lld experts; supported: equal groups; missing: that",
                 static_cast<long long>(want.groups_used), static_cast<long long>(want.groups),
                 static_cast<long long>(experts));
    }
    const int64_t choosable = want.groups > 1 ? experts / want.groups * want.groups_used : experts;
    if (want.used < 1 || want.used > choosable) {
        check.no("moe_route: required %lld experts chosen; supported: 1 to %lld; missing: that many",
                 static_cast<long long>(want.used), static_cast<long long>(choosable));
    }
    check.dims(check.out(0), "ids", {want.used, check.at(0).dims[1]});
    check.dims(check.out(1), "weights", {want.used, check.at(0).dims[1]});
    check.same_range(0, check.out(0));
    check.same_range(0, check.out(1));
    if (!check) return;
    work = row_work(check.at(0), 8);
    plan.supported = 1;
}

inline constexpr NamedCheck kRoutingChecks[] = {{TSR_OP_MOE_ROUTE, check_moe_route}};

}  // namespace tessera::cpu
