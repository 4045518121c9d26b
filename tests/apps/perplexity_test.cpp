// Statistics, saved runs, and comparisons of them.
#include "apps/tessera/perplexity.hpp"

#include "core/base/error.hpp"
#include "tests/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

namespace tessera::app {
namespace {

using testing::HasSubstr;

TEST(Mean, HasAStandardError) {
    Mean mean;
    EXPECT_EQ(mean.error(), 0);
    for (const double value : {1.0, 2.0, 3.0, 6.0}) mean.add(value);
    EXPECT_DOUBLE_EQ(mean.mean(), 3);
    EXPECT_NEAR(mean.error(), std::sqrt((4.0 + 1 + 0 + 9) / 3 / 4), 1e-12);
    Mean large;
    for (int i = 0; i < 1000; ++i) large.add(1e9 + i % 2);
    EXPECT_NEAR(large.error(), 0.5 / std::sqrt(999.0), 1e-6);
}

TEST(LogProbs, AreCodedWithinHalfAStep) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0, 3);
    for (const size_t vocabulary : {size_t{7}, size_t{1000}}) {
        std::vector<float> logits(vocabulary);
        for (float& logit : logits) logit = normal(random);
        logits[3] = -100;
        const CodedLogProbs coded = code_log_probs(logits);
        const double shift = log_sum_exp(logits);
        double sum = 0;
        for (size_t i = 0; i < vocabulary; ++i) {
            sum += std::exp(coded.at(i));
            if (i == 3) continue;
            EXPECT_NEAR(coded.at(i), logits[i] - shift, coded.step * 0.51 + 1e-5);
        }
        EXPECT_EQ(coded.codes[3], 0);
        EXPECT_NEAR(sum, 1, 1e-3);
    }
    const std::vector<float> flat(9, 2.0f);
    EXPECT_NEAR(code_log_probs(flat).at(4), -std::log(9.0), 1e-6);
}

TEST(Divergence, OfItselfIsNothingAndOfAnotherIsTheSum) {
    const std::vector<float> base = {std::log(0.5f), std::log(0.25f), std::log(0.25f)},
                             other = {std::log(0.2f), std::log(0.7f), std::log(0.1f)};
    Divergence same;
    same.add(base, code_log_probs(base), 1);
    EXPECT_NEAR(same.divergence.mean(), 0, 1e-4);
    EXPECT_NEAR(same.nll.mean(), std::log(4.0), 1e-4);
    EXPECT_EQ(same.same_best.mean(), 1);
    Divergence d;
    d.add(other, code_log_probs(base), 1);
    EXPECT_NEAR(d.divergence.mean(),
                0.5 * std::log(0.5 / 0.2) + 0.25 * std::log(0.25 / 0.7) + 0.25 * std::log(0.25 / 0.1), 1e-4);
    EXPECT_NEAR(d.change.mean(), 0.45, 1e-4);
    EXPECT_NEAR(d.nll_difference.mean(), std::log(0.25 / 0.7), 1e-4);
    EXPECT_EQ(d.same_best.mean(), 0);
}

TEST(Quantile, LiesBetweenNeighbours) {
    const std::vector<float> values = {1, 2, 3, 7};
    EXPECT_EQ(quantile(values, 0), 1);
    EXPECT_EQ(quantile(values, 1), 7);
    EXPECT_EQ(quantile(values, 0.5), 2.5);
    EXPECT_EQ(quantile(std::vector<float>{4}, 0.99), 4);
}

class SavedRun : public testing::Test {
  protected:
    SavedRun() {
        head_.tokens.resize(16);
        for (size_t i = 0; i < 16; ++i) head_.tokens[i] = static_cast<Token>(i % 5);
        SavedRunWriter writer(path_, head_);
        for (uint32_t place = 0; place < 2 * scored_places(8).count(); ++place) writer.add(logits_of(place));
        writer.finish();
        std::ifstream file(path_, std::ios::binary);
        bytes_.assign(std::istreambuf_iterator<char>(file), {});
    }

    static std::vector<float> logits_of(uint32_t place) { return {0, 1, 2, 3, static_cast<float>(place)}; }

    void rewrite(const std::string& bytes) { std::ofstream(path_, std::ios::binary) << bytes; }

    const test::TemporaryFolder folder_;
    const std::string path_ = folder_.file("tessera-saved-run");
    SavedRunHead head_{8, 5, {}};
    std::string bytes_;
};

TEST_F(SavedRun, IsReadBack) {
    // 8 + 3 * 4 bytes, 16 tokens, and for each of 2 * 3 places 8 bytes of scale, 5 codes and one of padding.
    EXPECT_EQ(bytes_.size(), 20u + 64 + 6 * (8 + 12));
    SavedRunReader reader(path_);
    EXPECT_EQ(reader.head().chunks(), 2u);
    EXPECT_EQ(reader.head().tokens, head_.tokens);
    for (uint32_t place = 0; place < 6; ++place) {
        const CodedLogProbs coded = reader.next();
        const std::vector<float> logits = logits_of(place);
        EXPECT_NEAR(coded.at(4), logits[4] - log_sum_exp(logits), 1e-3);
    }
    EXPECT_THROW(reader.next(), Error);
}

TEST_F(SavedRun, ThatIsDamagedIsRefused) {
    const auto changed = [&](size_t at, uint32_t value) {
        std::string bytes = bytes_;
        bytes.replace(at, 4, reinterpret_cast<const char*>(&value), 4);
        return bytes;
    };
    for (const std::string& bytes :
         {std::string(), bytes_.substr(0, 19), bytes_.substr(0, 60), bytes_.substr(0, bytes_.size() - 1), bytes_ + "x",
          changed(0, 7), changed(8, 0), changed(8, 0xFFFFFFFF), changed(12, 0), changed(12, 7), changed(16, 3),
          changed(16, 0x7FFFFFFF), changed(16, 0x01000000), changed(20, 5), changed(20, 0xFFFFFFFF)}) {
        rewrite(bytes);
        try {
            const SavedRunReader reader(path_);
            ADD_FAILURE() << bytes.size();
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), TSR_CORRUPT_DATA) << error.what();
            EXPECT_THAT(error.what(), HasSubstr("tessera-saved-run"));
        }
    }
}

}  // namespace
}  // namespace tessera::app
