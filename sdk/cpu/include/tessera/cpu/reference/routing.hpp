// moe_route: which experts a row goes to, and with what weight. Sources: DeepSeek-V2 (arXiv 2405.04434), DeepSeek-V3
// (arXiv 2412.19437).
#pragma once

#include <tessera/cpu/reference/check.hpp>
#include <tessera/cpu/reference/rows.hpp>
#include <tessera/ops.h>

#include <cmath>
#include <limits>

namespace tessera::cpu::reference {

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

// Of one worker: p and s of every expert, a score a group, and a mark on what has been chosen.
inline uint64_t route_slot_bytes(int64_t experts, int64_t groups) noexcept {
    return (static_cast<uint64_t>(experts) * 2 + static_cast<uint64_t>(groups)) * sizeof(float) +
           (static_cast<uint64_t>(experts) + static_cast<uint64_t>(groups) + 63) / 64 * 64;
}

// 0 logits, 1 bias?; outputs ids, weights.
inline void plan_moe_route(const tsr_node& node, uint32_t slots, tsr_kernel_plan& plan, Work& work) noexcept {
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
    plan.workspace_bytes = slots * ((route_slot_bytes(experts, want.groups) + 63) / 64 * 64);
    plan.supported = 1;
}

namespace route_detail {

inline void probabilities(const float* logits, int64_t n, bool sigmoid, float* p) noexcept {
    if (sigmoid) {
        for (int64_t e = 0; e < n; ++e) p[e] = static_cast<float>(1 / (1 + std::exp(-static_cast<double>(logits[e]))));
        return;
    }
    const double largest = *std::max_element(logits, logits + n);
    double sum = 0;
    for (int64_t e = 0; e < n; ++e) sum += std::exp(logits[e] - largest);
    for (int64_t e = 0; e < n; ++e) p[e] = static_cast<float>(std::exp(logits[e] - largest) / sum);
}

// The largest of those not marked, the first of equals; -1 if none is left. Not-a-number loses to all others.
inline int64_t best_unmarked(const float* score, const char* marked, int64_t n) noexcept {
    int64_t best = -1;
    for (int64_t i = 0; i < n; ++i) {
        if (marked[i]) continue;
        if (best < 0 || score[i] > score[best] || (std::isnan(score[best]) && !std::isnan(score[i]))) best = i;
    }
    return best;
}

inline float group_score(const float* s, int64_t n, bool sigmoid) noexcept {
    float best = -std::numeric_limits<float>::infinity(), second = best;
    for (int64_t e = 0; e < n; ++e) {
        if (s[e] > best) {
            second = best;
            best = s[e];
        } else if (s[e] > second) {
            second = s[e];
        }
    }
    return sigmoid && n > 1 ? best + second : best;
}

}  // namespace route_detail

inline void run_moe_route(const tsr_node& node, uint32_t slots, const tsr_run& run) {
    using namespace route_detail;
    const View logits = input(node, run, 0);
    const View ids = output(node, run, 0);
    const View weights = output(node, run, 1);
    const float* bias = sdk::has_input(node, 1) ? input(node, run, 1).floats(0) : nullptr;
    const RouteAttributes want(node);
    const int64_t experts = logits.dim(0);
    const int64_t group_size = experts / want.groups;
    const uint64_t slot_bytes = (route_slot_bytes(experts, want.groups) + 63) / 64 * 64;
    const uint32_t workers = std::min(slots, run.workers);
    const tsr_range rows = sdk::actual_rows(*logits.tensor, run);
    const Share part = share(rows.end - rows.begin, run.worker, workers);
    if (part.begin == part.end) return;

    float* p = reinterpret_cast<float*>(static_cast<char*>(run.workspace) + slot_bytes * run.worker);
    float* s = p + experts;
    float* group = s + experts;
    char* marked = reinterpret_cast<char*>(group + want.groups);
    char* group_marked = marked + experts;
    for (int64_t r = rows.begin + part.begin; r < rows.begin + part.end; ++r) {
        probabilities(logits.floats(r), experts, want.sigmoid, p);
        for (int64_t e = 0; e < experts; ++e) s[e] = bias ? p[e] + bias[e] : p[e];
        std::fill_n(marked, experts, char{0});
        if (want.groups > 1) {
            for (int64_t g = 0; g < want.groups; ++g)
                group[g] = group_score(s + g * group_size, group_size, want.sigmoid);
            std::fill_n(group_marked, want.groups, char{0});
            for (int64_t i = 0; i < want.groups_used; ++i)
                group_marked[best_unmarked(group, group_marked, want.groups)] = 1;
            for (int64_t e = 0; e < experts; ++e) marked[e] = !group_marked[e / group_size];
        }
        float* weight = weights.floats(r);
        const auto id = [&](int64_t i) -> int32_t& {
            return *reinterpret_cast<int32_t*>(ids.row(r) + i * ids.tensor->strides[0]);
        };
        for (int64_t i = 0; i < want.used; ++i) {
            const int64_t best = best_unmarked(s, marked, experts);
            marked[best] = 1;
            id(i) = static_cast<int32_t>(best);
            weight[i] = p[best];
        }
        // With a bias the first one chosen need not weigh most.
        const double floor = want.keep_ratio * *std::max_element(weight, weight + want.used);
        double sum = 0;
        for (int64_t i = 0; i < want.used; ++i) {
            if (i >= want.keep_at_least && want.keep_ratio > 0 && !(weight[i] >= floor)) {
                id(i) = -1;
                weight[i] = 0;
            }
            sum += weight[i];
        }
        const double divisor = want.normalize ? std::max(sum, 0x1p-14) : 1.0;
        for (int64_t i = 0; i < want.used; ++i) weight[i] = static_cast<float>(weight[i] / divisor * want.scale);
    }
}

}  // namespace tessera::cpu::reference
