#include "core/session/probabilities.hpp"

#include "core/base/error.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tessera::session {
namespace {

TEST(Probabilities, AreThoseOfASoftmax) {
    const std::vector<float> logits = {1.0f, 3.0f, 2.0f, -std::numeric_limits<float>::infinity()};
    const double sum = std::exp(1.0) + std::exp(3.0) + std::exp(2.0);
    const TokenProbabilities found = probabilities_of(logits, 0, 3);
    EXPECT_EQ(found.token, 0);
    EXPECT_NEAR(found.log_probability, 1 - std::log(sum), 1e-6);
    ASSERT_EQ(found.best.size(), 3u);
    EXPECT_EQ(found.best[0].first, 1);
    EXPECT_EQ(found.best[1].first, 2);
    EXPECT_EQ(found.best[2].first, 0);
    EXPECT_NEAR(found.best[0].second, 3 - std::log(sum), 1e-6);
    EXPECT_EQ(probabilities_of(logits, 3, 0).log_probability, -std::numeric_limits<float>::infinity());
    EXPECT_EQ(probabilities_of(logits, 0, 20).best.size(), 4u);
}

TEST(Probabilities, TiesGoToTheLowerToken) {
    const std::vector<float> logits(5, 2.5f);
    const TokenProbabilities found = probabilities_of(logits, 4, 2);
    EXPECT_EQ(found.best[0].first, 0);
    EXPECT_EQ(found.best[1].first, 1);
    EXPECT_NEAR(found.log_probability, -std::log(5.0), 1e-6);
}

TEST(Probabilities, LogitsThatAreNoneAreAnError) {
    const std::vector<float> logits(5, -std::numeric_limits<float>::infinity());
    EXPECT_THROW(probabilities_of(logits, 0, 1), Error);
}

}  // namespace
}  // namespace tessera::session
