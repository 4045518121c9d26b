// What attention gives for a row does not depend on the rows beside it, on workers or on memory.
#include "attention_case.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace tessera::tests {
namespace {

// Rows of one batch have one beginning, alone each has its own.
TEST(AttentionRun, ARowWithAWindowDoesNotDependOnTheRestOfTheBatch) {
    for (const tsr_type type : {TSR_TYPE_F32, TSR_TYPE_F16, TSR_TYPE_Q8_0}) {
        for (const int window : {100, 700}) {
            Setting s{"", kPrefix, type, 16, 1, 576, 512, 0, 0, {{1800, 1}, {700, 150}, {2000, 3}}};
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
                    kPrefix,
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

// Eight rows of one sequence, whose positions cross the ends of strips and spans. Each has the same bits when it is
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
            add("Latent" + std::to_string(position) + end, {"", kPrefix, type, 16, 1, 576, 512, 0, 0, {{position, 8}}});
        }
        add("LatentFiveHeads" + end, {"", kPrefix, type, 5, 1, 576, 512, 0, 0, {{380, 8}}});
        add("Plain192" + end, {"", kPlain, type, 4, 4, 192, 128, 0, 0, {{1021, 8}}});
        add("Groups128" + end, {"", kPlain, type, 16, 4, 128, 128, 0, 0, {{1021, 8}}});
        add("GroupsOfEight" + end, {"", kPlain, type, 16, 2, 64, 64, 0, 0, {{510, 8}}});
        add("GroupsOfTwelve" + end, {"", kPlain, type, 96, 8, 64, 64, 0, 0, {{1021, 8}}});
        add("PairsOfHeads" + end, {"", kPlain, type, 10, 5, 64, 64, 0, 0, {{253, 8}}});
    }
    add("LatentManyHeads", {"", kPrefix, TSR_TYPE_F16, 128, 1, 576, 512, 0, 0, {{700, 8}}});
    add("OddPrefix", {"", kPrefix, TSR_TYPE_F16, 3, 1, 45, 37, 0, 0, {{252, 8}}});
    add_own_layouts(all);
    return all;
}

INSTANTIATE_TEST_SUITE_P(Variants, AttentionRows, testing::ValuesIn(rows_of_a_sequence()),
                         [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace tessera::tests
