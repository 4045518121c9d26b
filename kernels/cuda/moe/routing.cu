// moe_route: a warp a row.
#include "routing.hpp"
#include "../overlap.hpp"

namespace tessera::cuda_kernels {
namespace {

using namespace simt;

struct Candidate {
    float score;
    int index;  // -1: none
};

// Higher scores first, of equals the lower index; not-a-number is below all others.
SIMT_DEVICE bool is_better(const Candidate& a, const Candidate& b) {
    if (a.index < 0 || b.index < 0) return b.index < 0 && a.index >= 0;
    const bool a_number = a.score == a.score, b_number = b.score == b.score;
    if (a_number != b_number) return a_number;
    if (a_number && a.score != b.score) return a.score > b.score;
    return a.index < b.index;
}

// The best of `n` scores whose mark is 0, in every lane.
SIMT_DEVICE int best_unmarked(const float* scores, const int* marks, int n) {
    Candidate best{0, -1};
    for (int i = static_cast<int>(lane()); i < n; i += 32) {
        if (marks[i]) continue;
        const Candidate candidate{scores[i], i};
        if (is_better(candidate, best)) best = candidate;
    }
    SIMT_UNROLL
    for (int mask = 16; mask > 0; mask /= 2) {
        const Candidate other{shuffle_xor(best.score, mask), shuffle_xor(best.index, mask)};
        if (is_better(other, best)) best = other;
    }
    return best.index;
}

// The best score of a group, or the sum of the best two.
SIMT_DEVICE float group_score(const float* scores, int n, bool sum_of_two) {
    float best = -infinity(), second = best;
    for (int i = 0; i < n; ++i) {
        if (scores[i] > best) {
            second = best;
            best = scores[i];
        } else if (scores[i] > second) {
            second = scores[i];
        }
    }
    return sum_of_two && n > 1 ? best + second : best;
}

SIMT_DEVICE void probabilities(const float* logits, int n, bool sigmoid, float* p) {
    const int first = static_cast<int>(lane());
    if (sigmoid) {
        for (int e = first; e < n; e += 32) p[e] = 1.f / (1.f + expf(-logits[e]));
        return;
    }
    float largest = -infinity(), sum = 0;
    for (int e = first; e < n; e += 32) largest = fmaxf(largest, logits[e]);
    largest = warp_maximum(largest);
    for (int e = first; e < n; e += 32) {
        p[e] = expf(logits[e] - largest);
        sum += p[e];
    }
    sum = warp_sum(sum);
    for (int e = first; e < n; e += 32) p[e] /= sum;
}

}  // namespace
}  // namespace tessera::cuda_kernels

using namespace tessera::cuda_kernels;

// Grid: x the maximum of rows or fewer.
SIMT_KERNEL(32, 4) moe_route(Route r) {
    SIMT_SHARED(float, p, kMaximumExperts);
    SIMT_SHARED(float, s, kMaximumExperts);
    SIMT_SHARED(int, marks, kMaximumExperts);
    SIMT_SHARED(float, groups, kMaximumGroups);
    SIMT_SHARED(int, group_marks, kMaximumGroups);
    SIMT_SHARED(float, chosen, kMaximumUsed);
    const RowRange range = awaited_rows(r.rows);
    const int first = static_cast<int>(lane()), size = r.experts / r.groups;
    for (int row = range.begin + static_cast<int>(block_index().x); row < range.end;
         row += static_cast<int>(grid_size().x)) {
        sync_warp();  // the row before has been read
        probabilities(at<float>(r.logits, row * r.logits_row), r.experts, r.sigmoid, p);
        for (int e = first; e < r.experts; e += 32) {
            s[e] = r.bias ? p[e] + at<float>(r.bias, 0)[e] : p[e];
            marks[e] = 0;
        }
        sync_warp();
        if (r.groups > 1) {
            for (int g = first; g < r.groups; g += 32) {
                groups[g] = group_score(s + g * size, size, r.sigmoid);
                group_marks[g] = 0;
            }
            sync_warp();
            for (int i = 0; i < r.groups_used; ++i) {
                const int best = best_unmarked(groups, group_marks, r.groups);
                sync_warp();
                if (first == 0 && best >= 0) group_marks[best] = 1;
                sync_warp();
            }
            for (int e = first; e < r.experts; e += 32) marks[e] = !group_marks[e / size];
            sync_warp();
        }
        for (int i = 0; i < r.used; ++i) {
            const int best = best_unmarked(s, marks, r.experts);
            sync_warp();
            if (first == 0 && best >= 0) {
                marks[best] = 1;
                chosen[i] = p[best];
                *at<int32_t>(r.ids, row * r.ids_row + i * r.ids_slot) = best;
            }
            sync_warp();
        }
        if (first == 0) {
            auto* weights = at<float>(r.weights, row * r.weights_row);
            float largest = chosen[0], sum = 0;
            for (int i = 1; i < r.used; ++i) largest = chosen[i] > largest ? chosen[i] : largest;
            for (int i = 0; i < r.used; ++i) {
                if (i >= r.keep_at_least && r.keep_ratio > 0 && !(chosen[i] >= r.keep_ratio * largest)) {
                    *at<int32_t>(r.ids, row * r.ids_row + i * r.ids_slot) = -1;
                    chosen[i] = 0;
                }
                sum += chosen[i];
            }
            const float divisor = r.normalize ? fmaxf(sum, 0x1p-14f) : 1.f;
            for (int i = 0; i < r.used; ++i) weights[i] = chosen[i] / divisor * r.scale;
        }
    }
}
