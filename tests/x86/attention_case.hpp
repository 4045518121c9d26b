// A node of attention over a cache, in any variant and type of the cache, with poisoned caches, workspaces and outputs:
// as the kernel of the plugin computes it, and as the reference does.
#pragma once

#include "attention_nodes.hpp"
#include "kernels/plain/plain.hpp"

#include <tessera/cpu/checks/attention.hpp>
#include <tessera/ops.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

namespace tessera::tests {

struct Sequence {
    int first_position;  // of its new rows; tokens before are cached
    int rows;
};

struct Setting {
    std::string name;
    cpu::AttentionVariant variant;
    tsr_type type;
    int heads, kv_heads, dk, dv;
    int latent = 0;
    tsr_type weight_type = TSR_TYPE_F32;
    std::vector<Sequence> sequences;
    int64_t cap = 0;
    float strong = 3;         // factor of the rotary part of latent rows, and of one element in 97 of the rest
    bool own_layout = false;  // of the cache: the first that the kernel names
    int window = 0;
    bool sinks = false;
    int spare = 0;  // tokens that there is room for beside those of the sequences
};

inline void PrintTo(const Setting& s, std::ostream* out) {
    *out << s.name;
}

using enum cpu::AttentionVariant;

// A node over pages in scattered order; rows begin at a range that does not start at 0.
class AttentionCase {
  public:
    explicit AttentionCase(const Setting& s, const char* op = TSR_OP_FLASH_ATTENTION) : setting(s), node(op) {
        std::mt19937 random(static_cast<unsigned>(s.heads * 31 + s.dk * 7 + s.sequences.size()));
        int rows = 0, most = 1;
        for (const auto& q : s.sequences) {
            rows += q.rows;
            most = std::max(most, q.first_position + q.rows);
        }
        constexpr int kBefore = 2, kAfter = 3;
        ranges[TSR_RANGE_ROWS] = {kBefore, kBefore + rows};
        const int all = kBefore + rows + kAfter;
        const int pages_of_sequence = (most + s.spare + 63) / 64;
        const int count = static_cast<int>(s.sequences.size());
        const int pages = pages_of_sequence * count + 1;
        const bool projected = s.variant == kProjected;
        const int k_elements = projected ? s.latent + s.dk - projected_key() : s.kv_heads * s.dk;

        Operand& q = node.add(true, TSR_TYPE_F32, {s.dk, s.heads, all}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS, 12);
        Operand& k = node.add(true, s.type, {k_elements, 64, pages}, TSR_ROLE_CACHE);
        if (s.variant == kPlain)
            node.add(true, s.type, {s.kv_heads * s.dv, 64, pages}, TSR_ROLE_CACHE);
        else
            node.add_absent();
        Operand& positions = node.add(true, TSR_TYPE_I32, {all}, TSR_ROLE_INPUT, TSR_RANGE_ROWS);
        Operand& slots = node.add(true, TSR_TYPE_I32, {all}, TSR_ROLE_INPUT, TSR_RANGE_ROWS);
        Operand& table = node.add(true, TSR_TYPE_I32, {pages_of_sequence + 1, count + 1}, TSR_ROLE_INPUT);
        if (projected) {
            fill_weight(node.add(true, s.weight_type, {s.latent, projected_key(), s.heads}, TSR_ROLE_WEIGHT), random);
            fill_weight(node.add(true, s.weight_type, {s.latent, s.dv, s.heads}, TSR_ROLE_WEIGHT), random);
        } else if (s.sinks) {
            node.add_absent();
            node.add_absent();
        }
        if (s.sinks)
            fill_normal(node.add(true, TSR_TYPE_F32, {s.heads}, TSR_ROLE_WEIGHT).floats(), size_t(s.heads), random);
        node.add(false, TSR_TYPE_F32, {s.dv, s.heads, all}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS, 8);
        node.attribute("scale", 1.5 / std::sqrt(double(s.dk)));
        node.attribute("kv_heads", int64_t{s.kv_heads});
        node.attribute("head_dim_v", int64_t{s.dv});
        node.attribute("scratch_bytes", s.cap);
        node.attribute("max_tokens", int64_t{most + s.spare});
        if (s.window > 0) node.attribute("window", int64_t{s.window});

        for (int r = kBefore; r < kBefore + rows; ++r) {
            for (int h = 0; h < s.heads; ++h) fill_normal(float_row(q, h, r), size_t(s.dk), random);
        }
        int row = kBefore;
        std::vector<int> order(pages - 1);
        for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
        std::shuffle(order.begin(), order.end(), random);
        for (int i = 0; i < count; ++i) {
            const int slot = count - 1 - i;
            const auto& sequence = s.sequences[size_t(i)];
            const int tokens = sequence.first_position + sequence.rows;
            // Pages before a window have no entry and hold nothing.
            const int seen = s.window > 0 ? std::max(0, sequence.first_position - s.window + 1) : 0;
            for (int page = seen / 64; page < (tokens + 63) / 64; ++page) {
                const int id = order[size_t(i * pages_of_sequence + page)];
                table.integers()[slot * (pages_of_sequence + 1) + page] = id;
                for (int t = page * 64; t < std::min(tokens, page * 64 + 64); ++t) {
                    fill_cached(k, t % 64, id, random, s.variant != kPlain);
                    if (s.variant == kPlain) fill_cached(node.input(2), t % 64, id, random, false);
                }
            }
            for (int r = 0; r < sequence.rows; ++r, ++row) {
                positions.integers()[row] = sequence.first_position + r;
                slots.integers()[row] = slot;
            }
        }
    }

    std::vector<float> reference() {
        tsr_kernel_plan answer{};
        answer.struct_size = sizeof answer;
        plain::Work work;
        const tsr_node& described = node.node();
        plain::plan_attention(described, 2, answer, work);
        if (!answer.supported) throw std::runtime_error(answer.reason);
        node.run(2, answer.workspace_bytes, ranges,
                 [&](const tsr_run& run) { plain::run_attention(described, 2, run); });
        return take_output();
    }
    tsr_kernel_plan planned(const tsr_device_info& device) {
        const tsr_kernel& kernel = kernel_of(node.node().op);
        tsr_kernel_plan answer{};
        answer.struct_size = sizeof answer;
        sdk::check(kernel.plan(&kernel, &node.node(), &device, &answer));
        if (!answer.supported) throw std::runtime_error(answer.reason);
        return answer;
    }
    // Packs the cache into the layout that the kernel names first. False: it names none.
    bool pack() {
        const tsr_kernel_plan answer = planned(device_of(1));
        minimum = answer.minimum_scratch_bytes;  // that of canonical pages counts too
        return pack_cache(node.input(1), answer.layouts[1]);
    }
    std::vector<float> tested(uint32_t workers) {
        plan = node.run_kernel(kernel_of(node.node().op), workers, ranges);
        minimum = std::max(minimum, plan.minimum_scratch_bytes);
        return take_output();
    }

    Setting setting;
    NodeCase node;
    tsr_kernel_plan plan{};
    uint64_t minimum = 0;  // of scratch memory
    tsr_range ranges[TSR_RANGE_COUNT] = {};

  private:
    int projected_key() const { return setting.dk * 2 / 3; }
    static float* float_row(Operand& o, int i1, int i2) {
        return reinterpret_cast<float*>(o.data() + i1 * o.tensor.strides[1] + i2 * o.tensor.strides[2]);
    }
    void fill_weight(Operand& o, std::mt19937& random) const {
        std::vector<float> row(size_t(setting.latent));
        for (int64_t i = 0; i < o.tensor.dims[1] * o.tensor.dims[2]; ++i) {
            fill_normal(row.data(), row.size(), random, 1 / std::sqrt(float(setting.latent)));
            cpu::encode_row(setting.weight_type, row.data(), row.size(), o.data() + i * o.tensor.strides[1]);
        }
    }
    void fill_cached(Operand& o, int t, int page, std::mt19937& random, bool strong_end) const {
        std::vector<float> row(size_t(o.tensor.dims[0]));
        fill_normal(row.data(), row.size(), random);
        // The rotary part of a latent row may be much larger than the rest.
        if (strong_end) {
            for (size_t i = row.size() * 8 / 9; i < row.size(); ++i) row[i] *= setting.strong;
            for (size_t i = 50; i < row.size() * 8 / 9; i += 97) row[i] *= setting.strong;
        }
        cpu::encode_row(setting.type, row.data(), row.size(),
                        o.data() + t * o.tensor.strides[1] + page * o.tensor.strides[2]);
    }
    std::vector<float> take_output() {
        Operand& o = node.output();
        std::vector<float> values;
        const tsr_range rows = ranges[TSR_RANGE_ROWS];
        for (int r = 0; r < o.tensor.dims[2]; ++r) {
            for (int h = 0; h < setting.heads; ++h) {
                float* at = float_row(o, h, r);
                for (int d = 0; d < setting.dv; ++d) {
                    if (r >= rows.begin && r < rows.end)
                        values.push_back(at[d]);
                    else
                        EXPECT_NE(at[d], at[d]) << "written outside of the range at row " << r;
                }
                for (int d = setting.dv; d < setting.dv + 2; ++d) EXPECT_NE(at[d], at[d]) << "written past a row";
                std::fill_n(at, setting.dv, std::numeric_limits<float>::quiet_NaN());
            }
        }
        return values;
    }
};

// q8_0 has pages of its own on processors that multiply bytes.
inline bool multiplies_bytes() {
    const std::string_view flag = plugin_name().starts_with("cpu_avx512") ? "avx512_vnni" : "avx_vnni";
    for (const char* const* f = device_of(1).cpu_flags; *f; ++f) {
        if (flag == *f) return true;
    }
    return false;
}

// Whether the test cannot run here: the layout is one of other processors.
inline bool lacks_layout(AttentionCase& at) {
    if (!at.setting.own_layout) return false;
    const bool packed = at.pack();
    EXPECT_EQ(packed, at.setting.type != TSR_TYPE_Q8_0 || multiplies_bytes());
    return !packed;
}

// Whether pages of a layout of its own are there for a setting, on some processor.
inline bool has_own_layout(const Setting& s) {
    if (s.variant == kPlain || (s.variant == kPrefix && s.heads <= 4)) return false;
    if (s.type == TSR_TYPE_Q8_0) return (s.variant == kProjected ? s.latent : s.dv) % 32 == 0;
    if (s.type != TSR_TYPE_F16 && s.type != TSR_TYPE_BF16) return false;
    return s.variant == kProjected ? s.latent == 512 : s.dv == 512;
}

// All that a kernel can attend to in pages of a layout of its own, in that too.
inline void add_own_layouts(std::vector<Setting>& all) {
    const size_t canonical = all.size();
    for (size_t i = 0; i < canonical; ++i) {
        Setting s = all[i];
        if (!has_own_layout(s)) continue;
        s.name += "_own_layout";
        s.own_layout = true;
        all.push_back(s);
    }
}

}  // namespace tessera::tests
