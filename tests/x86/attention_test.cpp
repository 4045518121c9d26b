// The attention kernels against the reference, in all variants and cache types, and their plans.
#include "attention_case.hpp"

#include <gtest/gtest.h>

#include <string_view>

namespace tessera::tests {
namespace {

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

class Attention : public testing::TestWithParam<Setting> {};

TEST_P(Attention, AgreesWithTheReferenceForAnyNumberOfWorkers) {
    AttentionCase at(GetParam());
    const auto wanted = at.reference();
    if (lacks_layout(at)) GTEST_SKIP() << "other processors have pages of this layout";
    const auto one = at.tested(1);
    EXPECT_LE(relative_error(one, wanted), tolerance(at, wanted));
    for (const uint32_t workers : {2u, 3u, 8u}) EXPECT_EQ(at.tested(workers), one) << workers << " workers";
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
        // One token, few, a strip and its neighbours, many.
        for (const int position : {0, 1, 6, 63, 64, 127, 128, 512, 1500}) {
            add("LatentGeneration" + std::to_string(position) + end,
                {"", kPrefix, type, 16, 1, 576, 512, 0, 0, {{position, 1}}});
        }
        add("LatentOneHead" + end, {"", kPrefix, type, 1, 1, 576, 512, 0, 0, {{400, 1}}});
        add("LatentManyHeads" + end, {"", kPrefix, type, 128, 1, 576, 512, 0, 0, {{700, 1}}});
        add("LatentPrompt" + end, {"", kPrefix, type, 16, 1, 576, 512, 0, 0, {{0, 100}}});
        add("LatentPromptAtDepth" + end, {"", kPrefix, type, 5, 1, 576, 512, 0, 0, {{300, 37}}});
        add("LatentSequences" + end, {"",
                                      kPrefix,
                                      type,
                                      16,
                                      1,
                                      576,
                                      512,
                                      0,
                                      0,
                                      {{600, 1}, {5, 1}, {0, 40}, {333, 2}, {0, 1}, {900, 1}, {130, 1}, {700, 3}}});
        add("Plain192" + end, {"", kPlain, type, 4, 4, 192, 128, 0, 0, {{0, 150}, {140, 1}}});
        add("PlainGeneration192" + end, {"", kPlain, type, 4, 4, 192, 128, 0, 0, {{700, 1}}});
        add("Groups128" + end, {"", kPlain, type, 32, 4, 128, 128, 0, 0, {{0, 33}, {520, 1}}});
        add("Groups64" + end, {"", kPlain, type, 14, 2, 64, 64, 0, 0, {{250, 20}}});
        // Single rows of each number of heads that share a key, whose values are whole and partial tiles.
        for (const int group : {1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 16, 17}) {
            add("GroupsOf" + std::to_string(group) + end,
                {"", kPlain, type, 3 * group, 3, 64, group % 2 == 0 ? 96 : 224, 0, 0, {{333, 1}, {30, 3}}});
        }
        add("Projected" + end, {"", kProjected, type, 3, 1, 192, 128, 512, TSR_TYPE_F32, {{0, 70}, {200, 20}}});
        add("ProjectedQuantised" + end, {"", kProjected, type, 2, 1, 192, 128, 256, TSR_TYPE_Q4_0, {{90, 120}}});
    }
    for (const auto& [type, t] : std::initializer_list<std::pair<tsr_type, const char*>>{
             {TSR_TYPE_F32, "f32"}, {TSR_TYPE_F16, "f16"}, {TSR_TYPE_BF16, "bf16"}}) {
        const std::string end = std::string("_") + t;
        add("OddSizes" + end, {"", kPlain, type, 6, 3, 20, 13, 0, 0, {{0, 9}, {77, 1}}});
        add("OddPrefix" + end, {"", kPrefix, type, 3, 1, 45, 37, 0, 0, {{0, 9}, {150, 1}}});
        add("ProjectedSmall" + end, {"", kProjected, type, 2, 1, 48, 20, 64, TSR_TYPE_F16, {{10, 3}}});
        add("Heads80" + end, {"", kPlain, type, 4, 4, 80, 80, 0, 0, {{60, 10}}});
    }
    for (const auto& [type, t] : std::initializer_list<std::pair<tsr_type, const char*>>{{TSR_TYPE_Q8_KV, "q8_KV"},
                                                                                         {TSR_TYPE_Q6_0, "q6_0"},
                                                                                         {TSR_TYPE_Q5_0, "q5_0"},
                                                                                         {TSR_TYPE_Q5_1, "q5_1"},
                                                                                         {TSR_TYPE_Q4_0, "q4_0"},
                                                                                         {TSR_TYPE_Q4_1, "q4_1"},
                                                                                         {TSR_TYPE_IQ4_NL, "iq4_nl"}}) {
        const std::string end = std::string("_") + t;
        add("LowLatentGeneration" + end, {"", kPrefix, type, 16, 1, 576, 512, 0, 0, {{512, 1}}});
        add("LowLatentSequences" + end, {"", kPrefix, type, 5, 1, 576, 512, 0, 0, {{130, 1}, {0, 40}, {333, 2}}});
        add("LowPlain192" + end, {"", kPlain, type, 4, 4, 192, 128, 0, 0, {{0, 70}, {140, 1}}});
        add("LowProjected" + end, {"", kProjected, type, 3, 1, 192, 128, 512, TSR_TYPE_F32, {{0, 70}, {200, 20}}});
        add("LowUnalignedBlocks" + end, {"", kPlain, type, 4, 4, 80, 72, 0, 0, {{60, 10}, {200, 1}}});
    }
    for (const auto& [type, t] : types) {
        const auto window = [&](const char* name, int tokens, bool sinks, Setting s) {
            s.window = tokens;
            s.sinks = sinks;
            add(std::string(name) + std::to_string(tokens) + "_" + t, s);
        };
        const std::vector<Sequence> sequences = {{600, 1}, {5, 1}, {0, 240}, {333, 2}, {0, 1}, {1900, 1}, {700, 20}};
        for (const int tokens : {1, 60, 128, 300, 1000}) {
            window("LatentWindow", tokens, false, {"", kPrefix, type, 16, 1, 576, 512, 0, 0, sequences});
            window("GroupsWindow", tokens, true, {"", kPlain, type, 16, 2, 64, 64, 0, 0, sequences});
            window("FewLanesWindow", tokens, true, {"", kPlain, type, 4, 2, 128, 128, 0, 0, sequences});
            window("ProjectedWindow", tokens, true,
                   {"", kProjected, type, 3, 1, 192, 128, 512, TSR_TYPE_F32, {{0, 170}, {400, 20}}});
        }
        window("LatentWindowOfOneSequence", 1000, false, {"", kPrefix, type, 16, 1, 576, 512, 0, 0, {{9000, 1}}});
        window("WindowUnderACap", 100, true, {"", kPrefix, type, 16, 1, 576, 512, 0, 0, {{800, 2}, {0, 130}}, 2 << 20});
        add(std::string("Sinks_") + t,
            {"", kPlain, type, 8, 2, 64, 64, 0, 0, {{900, 1}, {0, 70}}, 0, 3, false, 0, true});
    }
    // Keys of one block, values that are whole keys, values that end inside of a block.
    add("LatentOneBlock_q8_0", {"", kPrefix, TSR_TYPE_Q8_0, 16, 1, 32, 32, 0, 0, {{200, 1}, {0, 40}}});
    add("LatentWholeKeys_q8_0", {"", kPrefix, TSR_TYPE_Q8_0, 16, 1, 96, 96, 0, 0, {{200, 1}, {0, 40}}});
    add("LatentPartOfBlock_q8_0", {"", kPrefix, TSR_TYPE_Q8_0, 16, 1, 96, 80, 0, 0, {{200, 1}, {0, 40}}});
    // Latent rows of one block, and such that end inside of a block.
    add("ProjectedOneBlock_q8_0", {"", kProjected, TSR_TYPE_Q8_0, 3, 1, 96, 40, 32, TSR_TYPE_F16, {{0, 9}, {150, 20}}});
    add("ProjectedPartOfBlock_q8_0", {"", kProjected, TSR_TYPE_Q8_0, 2, 1, 48, 20, 48, TSR_TYPE_F16, {{10, 3}}});
    add("UnalignedBlocks_q8_0", {"", kPlain, TSR_TYPE_Q8_0, 4, 4, 80, 72, 0, 0, {{60, 10}, {200, 1}}});
    // Elements far stronger than the rest must cost the rest little. Scores are then far apart, too.
    for (const auto& [type, t] : types) {
        add(std::string("Outliers_") + t, {"", kPrefix, type, 16, 1, 576, 512, 0, 0, {{500, 1}, {0, 70}}, 0, 20});
    }
    add("UnderACap", {"", kPrefix, TSR_TYPE_F16, 16, 1, 576, 512, 0, 0, {{800, 2}, {0, 30}}, 2 << 20});
    add("ProjectedUnderACap", {"", kProjected, TSR_TYPE_F16, 4, 1, 192, 128, 512, TSR_TYPE_F32, {{0, 130}}, 3 << 20});
    add_own_layouts(all);
    return all;
}

INSTANTIATE_TEST_SUITE_P(Variants, Attention, testing::ValuesIn(settings()),
                         [](const auto& of) { return of.param.name; });

TEST(AttentionPlan, TakesEitherOpAndKeepsToTheCap) {
    const Setting s{"", kPrefix, TSR_TYPE_F16, 16, 1, 576, 512, 0, 0, {{700, 3}}, 1 << 20};
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

// The scratch memory is planned before the layout of the cache is known.
TEST(AttentionPlan, ScratchMemoryIsEnoughForEitherLayoutOfTheCache) {
    for (const Setting& s : std::initializer_list<Setting>{
             {"", kPrefix, TSR_TYPE_Q8_0, 16, 1, 576, 512, 0, 0, {{700, 3}}},
             {"", kProjected, TSR_TYPE_Q8_0, 3, 1, 192, 128, 512, TSR_TYPE_F32, {{200, 20}}}}) {
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
        AttentionCase at({"", kPrefix, TSR_TYPE_Q8_0, heads, 1, 96, dv, 0, 0, {{70, 1}}});
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

// With room for more tokens than the window, so that it counts.
TEST(AttentionRun, AWindowThatIsNotCrossedChangesNoBit) {
    for (const cpu::AttentionVariant variant : {kPlain, kPrefix}) {
        const bool plain = variant == kPlain;
        Setting s{"",
                  variant,
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

TEST(AttentionRun, RejectsPagesThatDoNotExist) {
    AttentionCase at({"", kPrefix, TSR_TYPE_F16, 2, 1, 64, 32, 0, 0, {{70, 1}}});
    at.node.input(5).integers()[1] = 1000;
    EXPECT_THROW(at.tested(2), std::runtime_error);
    at.node.input(5).integers()[1] = -1;
    EXPECT_THROW(at.tested(2), std::runtime_error);
}

TEST(AttentionRun, EmptyRangeDoesNothing) {
    AttentionCase at({"", kPrefix, TSR_TYPE_F16, 2, 1, 64, 32, 0, 0, {{70, 1}}});
    at.ranges[TSR_RANGE_ROWS] = {2, 2};
    EXPECT_TRUE(at.tested(2).empty());
}

}  // namespace
}  // namespace tessera::tests
