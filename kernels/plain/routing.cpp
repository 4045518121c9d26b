// moe_route: the experts of a row and their weights. Sources: DeepSeek-V2 (arXiv 2405.04434), DeepSeek-V3
// (arXiv 2412.19437).
#include "plain.hpp"
#include "sums.hpp"

#include <tessera/cpu/checks/routing.hpp>

#include <cmath>
#include <limits>

namespace tessera::plain {

using namespace cpu;

// Of one worker: p and s of every expert, a score a group, and a mark on what has been chosen.
uint64_t route_slot_bytes(int64_t experts, int64_t groups) noexcept {
    return (static_cast<uint64_t>(experts) * 2 + static_cast<uint64_t>(groups)) * sizeof(float) +
           (static_cast<uint64_t>(experts) + static_cast<uint64_t>(groups) + 63) / 64 * 64;
}

void plan_moe_route(const tsr_node& node, uint32_t slots, tsr_kernel_plan& plan, Work& work) noexcept {
    check_moe_route(node, plan, work);
    if (!plan.supported) return;
    const RouteAttributes want(node);
    plan.workspace_bytes = slots * ((route_slot_bytes(node.inputs[0]->dims[0], want.groups) + 63) / 64 * 64);
}

namespace {

void probabilities(const float* logits, int64_t n, bool sigmoid, float* p) noexcept {
    if (sigmoid) {
        for (int64_t e = 0; e < n; ++e) p[e] = static_cast<float>(1 / (1 + std::exp(-static_cast<double>(logits[e]))));
        return;
    }
    const double largest = *std::max_element(logits, logits + n);
    double sum = 0;
    for (int64_t e = 0; e < n; ++e) sum += std::exp(logits[e] - largest);
    for (int64_t e = 0; e < n; ++e) p[e] = static_cast<float>(std::exp(logits[e] - largest) / sum);
}

// The largest of those not marked, the first of equals; -1 if none is left. NaN is below all others.
int64_t best_unmarked(const float* score, const char* marked, int64_t n) noexcept {
    int64_t best = -1;
    for (int64_t i = 0; i < n; ++i) {
        if (marked[i]) continue;
        if (best < 0 || score[i] > score[best] || (std::isnan(score[best]) && !std::isnan(score[i]))) best = i;
    }
    return best;
}

float group_score(const float* s, int64_t n, bool sigmoid) noexcept {
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

}  // namespace

void run_moe_route(const tsr_node& node, uint32_t slots, const tsr_run& run) {
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
        // With a bias the first one chosen need not have the largest weight.
        const double threshold = want.keep_ratio * *std::max_element(weight, weight + want.used);
        double sum = 0;
        for (int64_t i = 0; i < want.used; ++i) {
            if (i >= want.keep_at_least && want.keep_ratio > 0 && !(weight[i] >= threshold)) {
                id(i) = -1;
                weight[i] = 0;
            }
            sum += weight[i];
        }
        const double divisor = want.normalize ? std::max(sum, 0x1p-14) : 1.0;
        for (int64_t i = 0; i < want.used; ++i) weight[i] = static_cast<float>(weight[i] / divisor * want.scale);
    }
}

}  // namespace tessera::plain
