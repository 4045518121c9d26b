#include "core/base/error.hpp"
#include "core/session/sampler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace tessera::session {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(SamplingOrder, ReadsWhatPeersWrite) {
    EXPECT_THAT(parse_sampling_order("top_k;typ_p;top_p;min_p;temperature"),
                ElementsAre(SamplingStep::kTopK, SamplingStep::kTypical, SamplingStep::kTopP, SamplingStep::kMinP,
                            SamplingStep::kTemperature));
    EXPECT_THAT(parse_sampling_order(" temp , penalties;"),
                ElementsAre(SamplingStep::kTemperature, SamplingStep::kPenalties));
    EXPECT_TRUE(parse_sampling_order("").empty());
    EXPECT_EQ(format_sampling_order(SamplingParameters().order), "top_k;typ_p;top_p;min_p;temperature");
}

TEST(SamplingOrder, UnknownAndRepeatedNamesAreErrors) {
    try {
        parse_sampling_order("top_k;mirostat");
        FAIL();
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("'mirostat'"));
        EXPECT_THAT(error.what(), HasSubstr("min_p"));
    }
    EXPECT_THROW(parse_sampling_order("temp;temperature"), Error);
}

TEST(SamplingParameters, EachOutOfRangeIsNamed) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float infinity = std::numeric_limits<float>::infinity();
    const auto expect = [](const char* name, const std::function<void(SamplingParameters&)>& change) {
        SamplingParameters p;
        change(p);
        try {
            Sampler sampler(p, 100);
            ADD_FAILURE() << name;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), TSR_INVALID_ARGUMENT);
            EXPECT_THAT(error.what(), HasSubstr(name));
        }
    };
    for (const float bad : {nan, infinity, -infinity, -0.1f}) {
        expect("temperature", [&](auto& p) { p.temperature = bad; });
        expect("top_p", [&](auto& p) { p.top_p = bad; });
        expect("min_p", [&](auto& p) { p.min_p = bad; });
        expect("typical_p", [&](auto& p) { p.typical_p = bad; });
        expect("repeat_penalty", [&](auto& p) { p.repetition_penalty = bad; });
        if (bad != -0.1f) {
            expect("frequency_penalty", [&](auto& p) { p.frequency_penalty = bad; });
            expect("presence_penalty", [&](auto& p) { p.presence_penalty = bad; });
        }
    }
    expect("top_p", [](auto& p) { p.top_p = 1.01f; });
    expect("min_p", [](auto& p) { p.min_p = 1.01f; });
    expect("repeat_penalty", [](auto& p) { p.repetition_penalty = 0.0f; });
    expect("repeat_last_n", [](auto& p) { p.penalty_last_n = -2; });
    expect("repeat_last_n", [](auto& p) { p.penalty_last_n = std::numeric_limits<int32_t>::max(); });
    expect("samplers", [](auto& p) { p.order = {SamplingStep::kTopK, SamplingStep::kTopK}; });
    expect("logit_bias", [](auto& p) { p.logit_bias = {{100, 1.0f}}; });
    expect("logit_bias", [](auto& p) { p.logit_bias = {{-1, 1.0f}}; });
    expect("logit_bias", [&](auto& p) { p.logit_bias = {{1, nan}}; });
    expect("logit_bias", [&](auto& p) { p.logit_bias = {{1, infinity}}; });
    EXPECT_THROW(Sampler(SamplingParameters(), 0), Error);
    EXPECT_NO_THROW(Sampler(SamplingParameters(), 100));
}

}  // namespace
}  // namespace tessera::session
