// The attention kernels against the reference, in all forms and cache types, with poisoned caches,
// workspaces and outputs.
#include "attention_nodes.hpp"
#include "kernels/plain/plain.hpp"

#include <tessera/cpu/checks/attention.hpp>
#include <tessera/formats/half.hpp>
#include <tessera/ops.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <tuple>

namespace tessera::tests {
namespace {

struct Sequence {
    int first_position;  // of its new rows; tokens before are cached
    int rows;
};

struct Setting {
    std::string name;
    cpu::AttentionForm form;
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

void PrintTo(const Setting& s, std::ostream* out) {
    *out << s.name;
}

using Form = cpu::AttentionForm;

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
        const bool projected = s.form == Form::kProjected;
        const int k_elements = projected ? s.latent + s.dk - projected_key() : s.kv_heads * s.dk;

        Operand& q = node.add(true, TSR_TYPE_F32, {s.dk, s.heads, all}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS, 12);
        Operand& k = node.add(true, s.type, {k_elements, 64, pages}, TSR_ROLE_CACHE);
        if (s.form == Form::kPlain)
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
                    fill_cached(k, t % 64, id, random, s.form != Form::kPlain);
                    if (s.form == Form::kPlain) fill_cached(node.input(2), t % 64, id, random, false);
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

// What arithmetic may add, storage aside: the oracle reads the same cache. In int8, no more than storing did.
double tolerance(AttentionCase& at, const std::vector<float>& wanted) {
    if (at.setting.type == TSR_TYPE_F32) return 1e-5;
    const bool bytes =
        std::string_view(at.plan.reason).find("int8") != std::string_view::npos && at.node.input(1).tensor.layout;
    if (!bytes) return 1e-3;
    Setting exact = at.setting;
    exact.type = TSR_TYPE_F32;
    return relative_error(wanted, AttentionCase(exact).reference());
}

// q8_0 has pages of its own on processors that multiply bytes.
bool multiplies_bytes() {
    const std::string_view flag = plugin_name().starts_with("cpu_avx512") ? "avx512_vnni" : "avx_vnni";
    for (const char* const* f = device_of(1).cpu_flags; *f; ++f) {
        if (flag == *f) return true;
    }
    return false;
}

// Whether the test cannot run here: the layout is one of other processors.
bool lacks_layout(AttentionCase& at) {
    if (!at.setting.own_layout) return false;
    const bool packed = at.pack();
    EXPECT_EQ(packed, at.setting.type != TSR_TYPE_Q8_0 || multiplies_bytes());
    return !packed;
}

class Attention : public testing::TestWithParam<Setting> {};

TEST_P(Attention, AgreesWithTheReferenceForAnyNumberOfWorkers) {
    AttentionCase at(GetParam());
    const auto wanted = at.reference();
    if (lacks_layout(at)) GTEST_SKIP() << "other processors have pages of this layout";
    const auto one = at.tested(1);
    EXPECT_LE(relative_error(one, wanted), tolerance(at, wanted));
    for (const uint32_t workers : {2u, 3u, 8u}) EXPECT_EQ(at.tested(workers), one) << workers << " workers";
}

// Whether pages of a layout of its own are there for a setting, on some processor.
bool has_own_layout(const Setting& s) {
    if (s.form == Form::kPlain || (s.form == Form::kPrefix && s.heads <= 4)) return false;
    if (s.type == TSR_TYPE_Q8_0) return (s.form == Form::kProjected ? s.latent : s.dv) % 32 == 0;
    if (s.type != TSR_TYPE_F16 && s.type != TSR_TYPE_BF16) return false;
    return s.form == Form::kProjected ? s.latent == 512 : s.dv == 512;
}

// All that a kernel can attend to in pages of a layout of its own, in that too.
void add_own_layouts(std::vector<Setting>& all) {
    const size_t canonical = all.size();
    for (size_t i = 0; i < canonical; ++i) {
        Setting s = all[i];
        if (!has_own_layout(s)) continue;
        s.name += "_own_layout";
        s.own_layout = true;
        all.push_back(s);
    }
}

std::vector<Setting> settings() {
    std::vector<Setting> all;
    const auto add = [&](std::string name, Setting s) {
        s.name = name;
        all.push_back(s);
    };
    const std::pair<tsr_type, const char*> types[] = {
        {TSR_TYPE_F32, "f32"}, {TSR_TYPE_F16, "f16"}, {TSR_TYPE_BF16, "bf16"}, {TSR_TYPE_Q8_0, "q8_0"}};
    for (const auto& [type, t] : types) {
        const std::string end = std::string("_") + t;
        // One token, few, a chunk and its neighbours, many.
        for (const int position : {0, 1, 6, 63, 64, 127, 128, 512, 1500}) {
            add("LatentGeneration" + std::to_string(position) + end,
                {"", Form::kPrefix, type, 16, 1, 576, 512, 0, 0, {{position, 1}}});
        }
        add("LatentOneHead" + end, {"", Form::kPrefix, type, 1, 1, 576, 512, 0, 0, {{400, 1}}});
        add("LatentManyHeads" + end, {"", Form::kPrefix, type, 128, 1, 576, 512, 0, 0, {{700, 1}}});
        add("LatentPrompt" + end, {"", Form::kPrefix, type, 16, 1, 576, 512, 0, 0, {{0, 100}}});
        add("LatentPromptAtDepth" + end, {"", Form::kPrefix, type, 5, 1, 576, 512, 0, 0, {{300, 37}}});
        add("LatentSequences" + end, {"",
                                      Form::kPrefix,
                                      type,
                                      16,
                                      1,
                                      576,
                                      512,
                                      0,
                                      0,
                                      {{600, 1}, {5, 1}, {0, 40}, {333, 2}, {0, 1}, {900, 1}, {130, 1}, {700, 3}}});
        add("Plain192" + end, {"", Form::kPlain, type, 4, 4, 192, 128, 0, 0, {{0, 150}, {140, 1}}});
        add("PlainGeneration192" + end, {"", Form::kPlain, type, 4, 4, 192, 128, 0, 0, {{700, 1}}});
        add("Groups128" + end, {"", Form::kPlain, type, 32, 4, 128, 128, 0, 0, {{0, 33}, {520, 1}}});
        add("Groups64" + end, {"", Form::kPlain, type, 14, 2, 64, 64, 0, 0, {{250, 20}}});
        add("Projected" + end, {"", Form::kProjected, type, 3, 1, 192, 128, 512, TSR_TYPE_F32, {{0, 70}, {200, 20}}});
        add("ProjectedQuantised" + end, {"", Form::kProjected, type, 2, 1, 192, 128, 256, TSR_TYPE_Q4_0, {{90, 120}}});
    }
    for (const auto& [type, t] : std::initializer_list<std::pair<tsr_type, const char*>>{
             {TSR_TYPE_F32, "f32"}, {TSR_TYPE_F16, "f16"}, {TSR_TYPE_BF16, "bf16"}}) {
        const std::string end = std::string("_") + t;
        add("OddSizes" + end, {"", Form::kPlain, type, 6, 3, 20, 13, 0, 0, {{0, 9}, {77, 1}}});
        add("OddPrefix" + end, {"", Form::kPrefix, type, 3, 1, 45, 37, 0, 0, {{0, 9}, {150, 1}}});
        add("ProjectedSmall" + end, {"", Form::kProjected, type, 2, 1, 48, 20, 64, TSR_TYPE_F16, {{10, 3}}});
        add("Heads80" + end, {"", Form::kPlain, type, 4, 4, 80, 80, 0, 0, {{60, 10}}});
    }
    for (const auto& [type, t] : std::initializer_list<std::pair<tsr_type, const char*>>{{TSR_TYPE_Q8_KV, "q8_KV"},
                                                                                         {TSR_TYPE_Q6_0, "q6_0"},
                                                                                         {TSR_TYPE_Q5_0, "q5_0"},
                                                                                         {TSR_TYPE_Q5_1, "q5_1"},
                                                                                         {TSR_TYPE_Q4_0, "q4_0"},
                                                                                         {TSR_TYPE_Q4_1, "q4_1"},
                                                                                         {TSR_TYPE_IQ4_NL, "iq4_nl"}}) {
        const std::string end = std::string("_") + t;
        add("LowLatentGeneration" + end, {"", Form::kPrefix, type, 16, 1, 576, 512, 0, 0, {{512, 1}}});
        add("LowLatentSequences" + end, {"", Form::kPrefix, type, 5, 1, 576, 512, 0, 0, {{130, 1}, {0, 40}, {333, 2}}});
        add("LowPlain192" + end, {"", Form::kPlain, type, 4, 4, 192, 128, 0, 0, {{0, 70}, {140, 1}}});
        add("LowProjected" + end,
            {"", Form::kProjected, type, 3, 1, 192, 128, 512, TSR_TYPE_F32, {{0, 70}, {200, 20}}});
        add("LowUnalignedBlocks" + end, {"", Form::kPlain, type, 4, 4, 80, 72, 0, 0, {{60, 10}, {200, 1}}});
    }
    for (const auto& [type, t] : types) {
        const auto window = [&](const char* name, int tokens, bool sinks, Setting s) {
            s.window = tokens;
            s.sinks = sinks;
            add(std::string(name) + std::to_string(tokens) + "_" + t, s);
        };
        const std::vector<Sequence> sequences = {{600, 1}, {5, 1}, {0, 240}, {333, 2}, {0, 1}, {1900, 1}, {700, 20}};
        for (const int tokens : {1, 60, 128, 300, 1000}) {
            window("LatentWindow", tokens, false, {"", Form::kPrefix, type, 16, 1, 576, 512, 0, 0, sequences});
            window("GroupsWindow", tokens, true, {"", Form::kPlain, type, 16, 2, 64, 64, 0, 0, sequences});
            window("FewLanesWindow", tokens, true, {"", Form::kPlain, type, 4, 2, 128, 128, 0, 0, sequences});
            window("ProjectedWindow", tokens, true,
                   {"", Form::kProjected, type, 3, 1, 192, 128, 512, TSR_TYPE_F32, {{0, 170}, {400, 20}}});
        }
        window("LatentWindowOfOneSequence", 1000, false, {"", Form::kPrefix, type, 16, 1, 576, 512, 0, 0, {{9000, 1}}});
        window("WindowUnderACap", 100, true,
               {"", Form::kPrefix, type, 16, 1, 576, 512, 0, 0, {{800, 2}, {0, 130}}, 2 << 20});
        add(std::string("Sinks_") + t,
            {"", Form::kPlain, type, 8, 2, 64, 64, 0, 0, {{900, 1}, {0, 70}}, 0, 3, false, 0, true});
    }
    // Keys of one block, values that are whole keys, values that end inside of a block.
    add("LatentOneBlock_q8_0", {"", Form::kPrefix, TSR_TYPE_Q8_0, 16, 1, 32, 32, 0, 0, {{200, 1}, {0, 40}}});
    add("LatentWholeKeys_q8_0", {"", Form::kPrefix, TSR_TYPE_Q8_0, 16, 1, 96, 96, 0, 0, {{200, 1}, {0, 40}}});
    add("LatentPartOfBlock_q8_0", {"", Form::kPrefix, TSR_TYPE_Q8_0, 16, 1, 96, 80, 0, 0, {{200, 1}, {0, 40}}});
    // Latent rows of one block, and such that end inside of a block.
    add("ProjectedOneBlock_q8_0",
        {"", Form::kProjected, TSR_TYPE_Q8_0, 3, 1, 96, 40, 32, TSR_TYPE_F16, {{0, 9}, {150, 20}}});
    add("ProjectedPartOfBlock_q8_0", {"", Form::kProjected, TSR_TYPE_Q8_0, 2, 1, 48, 20, 48, TSR_TYPE_F16, {{10, 3}}});
    add("UnalignedBlocks_q8_0", {"", Form::kPlain, TSR_TYPE_Q8_0, 4, 4, 80, 72, 0, 0, {{60, 10}, {200, 1}}});
    // Elements far stronger than the rest must cost the rest little. Scores are then far apart, too.
    for (const auto& [type, t] : types) {
        add(std::string("Outliers_") + t, {"", Form::kPrefix, type, 16, 1, 576, 512, 0, 0, {{500, 1}, {0, 70}}, 0, 20});
    }
    add("UnderACap", {"", Form::kPrefix, TSR_TYPE_F16, 16, 1, 576, 512, 0, 0, {{800, 2}, {0, 30}}, 2 << 20});
    add("ProjectedUnderACap",
        {"", Form::kProjected, TSR_TYPE_F16, 4, 1, 192, 128, 512, TSR_TYPE_F32, {{0, 130}}, 3 << 20});
    add_own_layouts(all);
    return all;
}

INSTANTIATE_TEST_SUITE_P(Forms, Attention, testing::ValuesIn(settings()), [](const auto& of) { return of.param.name; });

TEST(AttentionPlan, TakesEitherOpAndKeepsToTheCap) {
    const Setting s{"", Form::kPrefix, TSR_TYPE_F16, 16, 1, 576, 512, 0, 0, {{700, 3}}, 1 << 20};
    AttentionCase at(s, TSR_OP_TILED_ATTENTION);
    const auto wanted = at.reference();
    EXPECT_LE(relative_error(at.tested(4), wanted), 1e-3);
    EXPECT_LE(at.plan.workspace_bytes, uint64_t{1 << 20});
    EXPECT_LE(at.plan.minimum_scratch_bytes, at.plan.workspace_bytes);

    Setting tight = s;
    tight.cap = static_cast<int64_t>(at.plan.minimum_scratch_bytes) - 1;
    AttentionCase refused(tight);
    try {
        refused.tested(1);
        FAIL() << "took a cap below the least";
    } catch (const std::runtime_error& e) {
        EXPECT_NE(std::string(e.what()).find("missing: 1 bytes"), std::string::npos) << e.what();
    }
}

// With room for more tokens than the window, so that it counts.
TEST(AttentionRun, AWindowThatIsNotCrossedChangesNoBit) {
    for (const Form form : {Form::kPlain, Form::kPrefix}) {
        const bool plain = form == Form::kPlain;
        Setting s{"",
                  form,
                  TSR_TYPE_F16,
                  16,
                  plain ? 4 : 1,
                  plain ? 128 : 576,
                  plain ? 128 : 512,
                  0,
                  0,
                  {{900, 1}, {0, 140}, {333, 2}}};
        s.spare = 500;
        AttentionCase without(s);
        s.window = 901;
        AttentionCase with(s);
        for (const uint32_t workers : {1u, 3u}) EXPECT_EQ(with.tested(workers), without.tested(workers));
    }
}

// Rows of one batch have one beginning, alone each has its own.
TEST(AttentionRun, ARowWithAWindowDoesNotDependOnTheRestOfTheBatch) {
    for (const tsr_type type : {TSR_TYPE_F32, TSR_TYPE_F16, TSR_TYPE_Q8_0}) {
        for (const int window : {100, 700}) {
            Setting s{"", Form::kPrefix, type, 16, 1, 576, 512, 0, 0, {{1800, 1}, {700, 150}, {2000, 3}}};
            s.window = window;
            AttentionCase at(s);
            const auto together = at.tested(3);
            tsr_range& rows = at.ranges[TSR_RANGE_ROWS];
            const size_t row_elements = size_t(s.heads) * size_t(s.dv);
            const int first = rows.begin, end = rows.end;
            for (int row = first; row < end; row += 9) {
                rows = {row, row + 1};
                const auto alone = at.tested(2);
                EXPECT_TRUE(std::equal(alone.begin(), alone.end(),
                                       together.begin() + std::ptrdiff_t(size_t(row - first) * row_elements)))
                    << "row " << row << ", window " << window << ", type " << type;
            }
        }
    }
}

TEST(AttentionRun, OneSequenceDoesNotDependOnTheRestOfTheBatch) {
    // More sequences than can be spread over several workers at once.
    const Setting s{"",
                    Form::kPrefix,
                    TSR_TYPE_Q8_0,
                    16,
                    1,
                    576,
                    512,
                    0,
                    0,
                    {{900, 1}, {600, 1}, {0, 40}, {333, 2}, {0, 1}, {1900, 1}, {130, 1}, {700, 3}, {2000, 1}}};
    AttentionCase at(s);
    if (multiplies_bytes()) {
        ASSERT_TRUE(at.pack());
    }
    const auto together = at.tested(3);
    const size_t row_elements = size_t(s.heads) * size_t(s.dv);
    tsr_range& rows = at.ranges[TSR_RANGE_ROWS];
    int row = rows.begin;
    size_t first = 0;
    for (const Sequence& sequence : s.sequences) {
        rows = {row, row + sequence.rows};
        const auto alone = at.tested(2);
        ASSERT_EQ(alone.size(), sequence.rows * row_elements);
        EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + std::ptrdiff_t(first)))
            << "at position " << sequence.first_position;
        row += sequence.rows;
        first += alone.size();
    }
}

// No encoder writes blocks of a negative scale, but they are q8_0.
TEST(AttentionRun, NegativeScalesOfQ8_0AreScales) {
    const Setting setting{"", Form::kPrefix, TSR_TYPE_Q8_0, 16, 1, 576, 512, 0, 0, {{300, 1}}};
    AttentionCase usual(setting), negative(setting);
    constexpr int kBlock = 34;  // an f16 scale and 32 codes
    const tsr_tensor& cache = negative.node.input(1).tensor;
    for (int64_t i = 0; i < cache.dims[1] * cache.dims[2]; i += 3) {
        auto* row = reinterpret_cast<uint8_t*>(negative.node.input(1).data()) + i * cache.strides[1];
        for (int64_t block = 0; block < cache.dims[0] / 32; ++block, row += kBlock) {
            row[1] ^= 0x80;
            for (int code = 2; code < kBlock; ++code) row[code] = static_cast<uint8_t>(-row[code]);
        }
    }
    EXPECT_LE(relative_error(negative.tested(2), usual.tested(2)), 1e-4);
    if (!multiplies_bytes()) return;
    ASSERT_TRUE(usual.pack() && negative.pack());
    EXPECT_EQ(negative.tested(2), usual.tested(2)) << "in pages of bytes";
}

// Of the first block of token 2: -128 has no opposite.
TEST(AttentionRun, TheLeastCodeUnderANegativeScaleIsTheLargestInPagesOfBytes) {
    if (!multiplies_bytes()) GTEST_SKIP() << "other processors have pages of this layout";
    const Setting setting{"", Form::kPrefix, TSR_TYPE_Q8_0, 16, 1, 64, 32, 0, 0, {{4, 1}}};
    AttentionCase largest(setting), least(setting);
    for (AttentionCase* at : {&largest, &least}) {
        Operand& cache = at->node.input(1);
        for (int64_t page = 0; page < cache.tensor.dims[2]; ++page) {
            auto* block =
                reinterpret_cast<uint8_t*>(cache.data()) + page * cache.tensor.strides[2] + 2 * cache.tensor.strides[1];
            block[1] = static_cast<uint8_t>((block[1] & 0x7F) | (at == &least ? 0x80 : 0));
            std::memset(block + 2, at == &least ? -128 : 127, 32);
        }
        ASSERT_TRUE(at->pack());
    }
    EXPECT_EQ(least.tested(1), largest.tested(1));
}

// A cached number that is none is seen in the results, not lost: the first of a row, or the scale of its first block.
TEST(AttentionRun, WhatIsNoNumberInTheCacheIsNoneInTheResults) {
    for (const auto& [type, nan, bytes] :
         std::initializer_list<std::tuple<tsr_type, uint32_t, size_t>>{{TSR_TYPE_F32, 0x7FC00000, 4},
                                                                       {TSR_TYPE_F16, 0x7E00, 2},
                                                                       {TSR_TYPE_BF16, 0x7FC0, 2},
                                                                       {TSR_TYPE_Q8_0, 0x7E00, 2},
                                                                       {TSR_TYPE_Q6_0, 0x7E00, 2}}) {
        for (const int heads : {2, 16}) {
            for (const bool own : {false, true}) {
                AttentionCase at({"", Form::kPrefix, type, heads, 1, 576, 512, 0, 0, {{300, 1}}});
                Operand& cache = at.node.input(1);
                for (int64_t page = 0; page < cache.tensor.dims[2]; ++page) {
                    std::memcpy(cache.data() + page * cache.tensor.strides[2] + 7 * cache.tensor.strides[1], &nan,
                                bytes);
                }
                if (own && !has_own_layout(at.setting)) continue;
                at.setting.own_layout = own;
                if (lacks_layout(at)) continue;
                const auto got = at.tested(2);
                EXPECT_TRUE(std::ranges::any_of(got, [](float x) { return x != x; }))
                    << cpu::format_name(type) << ", " << heads << " heads, " << (own ? "own layout" : "canonical");
            }
        }
    }
}

// A NaN in an input of a prompt (queries, cache, weights) reaches the results that depend on it; one of a cached token
// changes none before that.
TEST(AttentionRun, NansInInputsOfPromptsReachTheirResults) {
    constexpr int kRows = 140, kToken = 56;  // of each page
    const Setting prefix{"", Form::kPrefix, TSR_TYPE_F16, 16, 1, 576, 512, 0, 0, {{0, kRows}}};
    const Setting projected{"", Form::kProjected, TSR_TYPE_F16, 2, 1, 192, 128, 512, TSR_TYPE_F32, {{0, kRows}}};
    const Setting general{"", Form::kProjected, TSR_TYPE_F16, 2, 1, 48, 20, 48, TSR_TYPE_F32, {{0, kRows}}};
    const Setting plain{"", Form::kPlain, TSR_TYPE_F16, 12, 2, 64, 64, 0, 0, {{0, kRows}}};
    for (Setting setting : {prefix, projected, general, plain}) {
        for (const tsr_type type : {TSR_TYPE_F16, TSR_TYPE_Q8_0}) {
            for (const bool own : {false, true}) {
                setting.type = type;
                setting.own_layout = own;
                if (own && !has_own_layout(setting)) continue;
                for (const size_t input : {0, 1, 2, 6, 7}) {
                    if (input == 2 && setting.form != Form::kPlain) continue;
                    if (input > 2 && setting.form != Form::kProjected) continue;
                    const bool cache = input == 1 || input == 2;
                    AttentionCase usual(setting), at(setting);
                    Operand& o = at.node.input(input);
                    const uint32_t nan = cache ? 0x7E00 : 0x7FC00000;
                    for (int64_t i = 0; i < o.tensor.dims[2]; ++i)
                        std::memcpy(o.data() + i * o.tensor.strides[2] + (cache ? kToken : 1) * o.tensor.strides[1],
                                    &nan, cache ? 2 : 4);
                    if (lacks_layout(at) || lacks_layout(usual)) continue;
                    const auto got = at.tested(2), wanted = usual.tested(2);
                    const std::string what = std::string(cpu::format_name(type)) + (own ? " in its own layout" : "") +
                                             ", " + std::to_string(setting.dk) + ", input " + std::to_string(input);
                    const auto row = static_cast<std::ptrdiff_t>(got.size()) / kRows;
                    for (std::ptrdiff_t r = 0; r < kRows; ++r) {
                        const auto begin = got.begin() + r * row;
                        if (cache && r < kToken)
                            EXPECT_TRUE(std::equal(begin, begin + row, wanted.begin() + r * row)) << what << ", " << r;
                        else
                            EXPECT_TRUE(std::any_of(begin, begin + row, [](float x) { return x != x; }))
                                << what << ", " << r;
                    }
                }
            }
        }
    }
}

// The scratch memory is planned before the layout of the cache is known.
TEST(AttentionPlan, ScratchMemoryIsEnoughForEitherLayoutOfTheCache) {
    for (const Setting& s : std::initializer_list<Setting>{
             {"", Form::kPrefix, TSR_TYPE_Q8_0, 16, 1, 576, 512, 0, 0, {{700, 3}}},
             {"", Form::kProjected, TSR_TYPE_Q8_0, 3, 1, 192, 128, 512, TSR_TYPE_F32, {{200, 20}}}}) {
        for (const int64_t cap : {int64_t{0}, int64_t{2} << 20}) {
            for (const uint32_t workers : {1u, 3u, 8u}) {
                Setting setting = s;
                setting.cap = cap;
                AttentionCase at(setting);
                const tsr_kernel_plan before = at.planned(device_of(workers));
                at.setting.own_layout = true;
                if (lacks_layout(at)) continue;
                EXPECT_LE(at.planned(device_of(workers)).workspace_bytes, before.workspace_bytes)
                    << workers << " workers, " << cap << " bytes";
            }
        }
    }
}

// What has to stay canonical, or has no instructions for it, does not ask for pages of bytes.
TEST(AttentionPlan, PagesOfBytesAreForManyHeadsWholeBlocksAndVnni) {
    const auto packs = [](int heads, int dv, bool vnni) {
        AttentionCase at({"", Form::kPrefix, TSR_TYPE_Q8_0, heads, 1, 96, dv, 0, 0, {{70, 1}}});
        tsr_device_info device = device_of(1);
        static const char* const kNone[] = {nullptr};
        if (!vnni) device.cpu_flags = kNone;
        const tsr_kernel_plan answer = at.planned(device);
        return answer.layouts[1] && answer.layouts[1][0][0];
    };
    EXPECT_EQ(packs(16, 64, true), multiplies_bytes());
    EXPECT_FALSE(packs(16, 64, false));
    EXPECT_FALSE(packs(4, 64, true));
    EXPECT_FALSE(packs(16, 80, true));
}

// One token of 16 heads over q8_0, where every 16th cached token is far from the queries and its values are `loud`
// times as large. `strength` is a factor of the queries.
std::vector<float> beside_loud_tokens(float strength, float loud) {
    AttentionCase at({"", Form::kPrefix, TSR_TYPE_Q8_0, 16, 1, 576, 512, 0, 0, {{383, 1}}});
    constexpr int kBlock = 34;  // an f16 scale and 32 codes
    const tsr_tensor& q = at.node.input(0).tensor;
    for (int head = 0; head < 16; ++head) {
        auto* row = reinterpret_cast<float*>(at.node.input(0).data() + head * q.strides[1] + 2 * q.strides[2]);
        for (int i = 0; i < 575; ++i) row[i] *= strength;
        row[575] = 3;
    }
    const auto multiply_scale = [](char* block, float factor) {
        uint16_t scale;
        std::memcpy(&scale, block, sizeof scale);
        scale = formats::f32_to_f16(factor * formats::f16_to_f32(scale));
        std::memcpy(block, &scale, sizeof scale);
    };
    const tsr_tensor& cache = at.node.input(1).tensor;
    for (int64_t i = 5; i < cache.dims[1] * cache.dims[2]; i += 16) {
        char* row = at.node.input(1).data() + i * cache.strides[1];
        for (int block = 0; block < 16; ++block) multiply_scale(row + block * kBlock, loud);
        char* last = row + 17 * kBlock;
        multiply_scale(last, 500);
        std::memset(last + 2, 0, kBlock - 2);
        last[kBlock - 1] = -127;
    }
    if (multiplies_bytes() && !at.pack()) throw std::runtime_error("the kernel names no layout");
    return at.tested(2);
}

// In int8, weights are multiplied by the scales of values before they are rounded: tokens of no weight, whose scales
// are much larger, must not take the others' precision. Of weights that are nearly alike, and of a few large ones.
TEST(AttentionRun, ScalesOfOtherTokensTakeNoPrecision) {
    for (const float strength : {0.05f, 0.3f, 1.0f}) {
        EXPECT_LE(relative_error(beside_loud_tokens(strength, 20), beside_loud_tokens(strength, 1)), 0.008)
            << "queries times " << strength;
    }
}

// Eight rows of one sequence, whose positions cross the ends of chunks and spans. Each has the same bits when it is
// computed alone or with some of the others, by any number of workers and within any cap.
class AttentionRows : public testing::TestWithParam<Setting> {};

bool same_bits(const std::vector<float>& some, const std::vector<float>& all, size_t first) {
    return first + some.size() <= all.size() &&
           std::memcmp(some.data(), all.data() + first, some.size() * sizeof(float)) == 0;
}

TEST_P(AttentionRows, HaveTheSameBitsInAnyCompanyForAnyNumberOfWorkersWithinAnyCap) {
    const Setting& setting = GetParam();
    AttentionCase at(setting);
    if (lacks_layout(at)) GTEST_SKIP() << "other processors have pages of this layout";
    const auto wanted = at.tested(1);
    const uint64_t minimum = at.minimum, whole = std::max(minimum, at.plan.workspace_bytes);
    const tsr_range all = at.ranges[TSR_RANGE_ROWS];
    const size_t row_elements = size_t(setting.heads) * size_t(setting.dv);
    ASSERT_EQ(all.end - all.begin, 8);
    for (const int together : {1, 2, 4}) {
        for (int row = 0; row < 8; row += together) {
            at.ranges[TSR_RANGE_ROWS] = {all.begin + row, all.begin + row + together};
            EXPECT_TRUE(same_bits(at.tested(1 + uint32_t(row) % 3), wanted, size_t(row) * row_elements))
                << together << " rows from " << row << " on";
        }
    }
    for (const uint64_t cap : {uint64_t{0}, minimum + (whole - minimum) / 2, minimum}) {
        Setting capped = setting;
        capped.cap = static_cast<int64_t>(cap);
        AttentionCase within(capped);
        if (capped.own_layout) {
            ASSERT_TRUE(within.pack());
        }
        for (const uint32_t workers : {1u, 2u, 3u, 8u}) {
            within.ranges[TSR_RANGE_ROWS] = all;
            EXPECT_TRUE(same_bits(within.tested(workers), wanted, 0)) << workers << " workers, " << cap << " bytes";
            if (cap > 0) {
                EXPECT_LE(within.plan.workspace_bytes, cap);
            }
            within.ranges[TSR_RANGE_ROWS] = {all.begin + 5, all.begin + 6};
            EXPECT_TRUE(same_bits(within.tested(workers), wanted, 5 * row_elements))
                << "one row, " << workers << " workers, " << cap << " bytes";
        }
    }
}

std::vector<Setting> rows_of_a_sequence() {
    std::vector<Setting> all;
    const auto add = [&](std::string name, Setting s) {
        s.name = name;
        all.push_back(s);
    };
    for (const auto& [type, t] : std::initializer_list<std::pair<tsr_type, const char*>>{
             {TSR_TYPE_F32, "f32"}, {TSR_TYPE_F16, "f16"}, {TSR_TYPE_Q8_0, "q8_0"}, {TSR_TYPE_Q6_0, "q6_0"}}) {
        const std::string end = std::string("_") + t;
        for (const int position : {0, 124, 2045, 4093}) {
            if (position > 2000 && type != TSR_TYPE_F16 && type != TSR_TYPE_Q8_0) continue;
            add("Latent" + std::to_string(position) + end,
                {"", Form::kPrefix, type, 16, 1, 576, 512, 0, 0, {{position, 8}}});
        }
        add("LatentFiveHeads" + end, {"", Form::kPrefix, type, 5, 1, 576, 512, 0, 0, {{380, 8}}});
        add("Plain192" + end, {"", Form::kPlain, type, 4, 4, 192, 128, 0, 0, {{1021, 8}}});
        add("Groups128" + end, {"", Form::kPlain, type, 16, 4, 128, 128, 0, 0, {{1021, 8}}});
        add("GroupsOfEight" + end, {"", Form::kPlain, type, 16, 2, 64, 64, 0, 0, {{510, 8}}});
    }
    add("LatentManyHeads", {"", Form::kPrefix, TSR_TYPE_F16, 128, 1, 576, 512, 0, 0, {{700, 8}}});
    add("OddPrefix", {"", Form::kPrefix, TSR_TYPE_F16, 3, 1, 45, 37, 0, 0, {{252, 8}}});
    add_own_layouts(all);
    return all;
}

INSTANTIATE_TEST_SUITE_P(Forms, AttentionRows, testing::ValuesIn(rows_of_a_sequence()),
                         [](const auto& of) { return of.param.name; });

// Rows that cost f16 and bf16 no precision are the same bytes whether a kernel writes them or canonical rows are
// packed, by workers that write rows of the same four tokens.
TEST(CacheWrite, WritesTheLayoutThatAttentionReads) {
    for (const tsr_type type : {TSR_TYPE_F16, TSR_TYPE_BF16, TSR_TYPE_Q8_0}) {
        if (type == TSR_TYPE_Q8_0 && !multiplies_bytes()) continue;
        constexpr int kRows = 5, kElements = 576, kPages = 3;
        NodeCase node(TSR_OP_CACHE_WRITE);
        Operand& x = node.add(true, TSR_TYPE_F32, {kElements, kRows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
        Operand& positions = node.add(true, TSR_TYPE_I32, {kRows}, TSR_ROLE_INPUT, TSR_RANGE_ROWS);
        Operand& sequences = node.add(true, TSR_TYPE_I32, {kRows}, TSR_ROLE_INPUT, TSR_RANGE_ROWS);
        Operand& table = node.add(true, TSR_TYPE_I32, {2, 1}, TSR_ROLE_INPUT);
        node.add(false, type, {kElements, 64, kPages}, TSR_ROLE_CACHE);
        Operand canonical = node.output();
        canonical.storage.assign(canonical.storage.size(), 0);
        table.integers()[0] = 2;
        table.integers()[1] = 0;
        std::mt19937 random(1);
        for (int r = 0; r < kRows; ++r) {
            positions.integers()[r] = 62 + r;  // over the end of a page
            sequences.integers()[r] = 0;
            float* row = x.floats() + r * kElements;
            for (int e = 0; e < kElements; ++e) row[e] = float(int(random() % 201) - 100) / 64;
            if (r == 2) std::fill_n(row, kElements, 0.0f);
            if (type != TSR_TYPE_Q8_0) {  // whose codes beside such a scale mean nothing
                if (r == 1) row[3] = std::numeric_limits<float>::infinity();
                if (r == 3) std::fill_n(row, kElements, 1e-40f);
            }
            const int page = table.integers()[(62 + r) / 64];
            cpu::encode_row(
                type, row, kElements,
                canonical.data() + page * canonical.tensor.strides[2] + (62 + r) % 64 * canonical.tensor.strides[1]);
        }
        const tsr_kernel& kernel = kernel_of(TSR_OP_CACHE_WRITE);
        const tsr_device_info device = device_of(2);
        tsr_kernel_plan plan{};
        plan.struct_size = sizeof plan;
        sdk::check(kernel.plan(&kernel, &node.node(), &device, &plan));
        ASSERT_TRUE(plan.supported) << plan.reason;
        Operand& written = node.output();
        written.storage.assign(written.storage.size(), 0);
        ASSERT_TRUE(pack_cache(written, plan.layouts[4]));
        ASSERT_TRUE(pack_cache(canonical, plan.layouts[4]));
        const tsr_range ranges[TSR_RANGE_COUNT] = {{0, kRows}, {0, 0}, {0, 0}, {0, 0}};
        node.run_kernel(kernel, kRows, ranges);
        const size_t bytes = written.storage.size() - 128;
        EXPECT_EQ(std::memcmp(written.data(), canonical.data(), bytes), 0) << cpu::format_name(type);
    }
}

// What is not finite is so in the cache, too.
TEST(CacheWrite, KeepsNansAndInfinities) {
    for (const tsr_type type : {TSR_TYPE_F32, TSR_TYPE_F16, TSR_TYPE_BF16, TSR_TYPE_Q8_0, TSR_TYPE_Q8_KV, TSR_TYPE_Q6_0,
                                TSR_TYPE_Q5_0, TSR_TYPE_Q5_1, TSR_TYPE_Q4_0, TSR_TYPE_Q4_1, TSR_TYPE_IQ4_NL}) {
        constexpr int kElements = 64;
        for (int i = 0; i < 96; ++i) {
            constexpr float kInfinity = std::numeric_limits<float>::infinity();
            const int at = i % 32;
            NodeCase node(TSR_OP_CACHE_WRITE);
            float* x = node.add(true, TSR_TYPE_F32, {kElements, 1}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS).floats();
            node.add(true, TSR_TYPE_I32, {1}, TSR_ROLE_INPUT, TSR_RANGE_ROWS).integers()[0] = 0;
            node.add(true, TSR_TYPE_I32, {1}, TSR_ROLE_INPUT, TSR_RANGE_ROWS).integers()[0] = 0;
            node.add(true, TSR_TYPE_I32, {1, 1}, TSR_ROLE_INPUT).integers()[0] = 0;
            node.add(false, type, {kElements, 64, 1}, TSR_ROLE_CACHE);
            std::fill_n(x, kElements, 0.5f);
            x[at] = i < 32 ? std::numeric_limits<float>::quiet_NaN() : i < 64 ? kInfinity : -kInfinity;
            const tsr_range ranges[TSR_RANGE_COUNT] = {{0, 1}, {0, 0}, {0, 0}, {0, 0}};
            node.run_kernel(kernel_of(TSR_OP_CACHE_WRITE), 1, ranges);
            float row[kElements];
            cpu::decode_row(type, node.output().data(), kElements, row);
            EXPECT_FALSE(std::isfinite(row[at])) << cpu::format_name(type) << ", " << x[at] << " at " << at;
            EXPECT_EQ(std::isfinite(row[kElements - 1]), type != TSR_TYPE_Q8_KV) << cpu::format_name(type);
        }
    }
}

TEST(AttentionRun, RejectsPagesThatDoNotExist) {
    AttentionCase at({"", Form::kPrefix, TSR_TYPE_F16, 2, 1, 64, 32, 0, 0, {{70, 1}}});
    at.node.input(5).integers()[1] = 1000;
    EXPECT_THROW(at.tested(2), std::runtime_error);
    at.node.input(5).integers()[1] = -1;
    EXPECT_THROW(at.tested(2), std::runtime_error);
}

TEST(AttentionRun, EmptyRangeDoesNothing) {
    AttentionCase at({"", Form::kPrefix, TSR_TYPE_F16, 2, 1, 64, 32, 0, 0, {{70, 1}}});
    at.ranges[TSR_RANGE_ROWS] = {2, 2};
    EXPECT_TRUE(at.tested(2).empty());
}

}  // namespace
}  // namespace tessera::tests
