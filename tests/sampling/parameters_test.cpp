#include "core/base/error.hpp"
#include "core/session/sampler.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <set>

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
    EXPECT_EQ(format_sampling_order(SamplingParameters().order),
              "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature;adaptive_p");
    // llama.cpp's default list, and SillyTavern's of today and of before.
    EXPECT_EQ(parse_sampling_order("penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature").size(), 9u);
    EXPECT_EQ(parse_sampling_order("penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature;adaptive_p"),
              default_sampling_order());
    EXPECT_EQ(format_sampling_order(parse_sampling_order("dry,top_k,tfs_z,typical_p,top_p,min_p,xtc,temperature")),
              "dry;top_k;typ_p;top_p;min_p;xtc;temperature");
    EXPECT_EQ(format_sampling_order(parse_sampling_order("top-k;typ-p;nucleus;min-p;top-n-sigma;temp;adaptive-p")),
              "top_k;typ_p;top_p;min_p;top_n_sigma;temperature;adaptive_p");
}

TEST(SamplingOrder, ReadsLetters) {
    EXPECT_EQ(format_sampling_order(parse_sampling_letters("edskypmxt")),
              "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature");
    EXPECT_EQ(format_sampling_order(parse_sampling_letters("ta")), "temperature;adaptive_p");
    EXPECT_EQ(format_sampling_order(parse_sampling_letters("dkfypmxntw")),
              "dry;top_k;typ_p;top_p;min_p;xtc;top_n_sigma;temperature;adaptive_p");
    EXPECT_TRUE(parse_sampling_letters("").empty());
    for (const std::string bad : {"kk", "sn", "z", "k;t", "i", "K", "ff"})
        EXPECT_THROW(parse_sampling_letters(bad), Error) << bad;
    EXPECT_THROW(parse_sampling_letters(std::string_view("\0", 1)), Error);
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
    EXPECT_THROW(parse_sampling_order("top_k;infill"), Error);
    // A step that is left out runs no more often than others.
    EXPECT_THROW(parse_sampling_order("tfs_z;tfs_z"), Error);
    EXPECT_THROW(parse_sampling_order("tfs;top_k;tfs-z"), Error);
}

TEST(SamplingOrder, ANameIsOneName) {
    using Names = std::vector<std::string>;
    EXPECT_EQ(parse_sampling_names(Names{"top-k", "tfs_z", "temp"}),
              (std::vector{SamplingStep::kTopK, SamplingStep::kTemperature}));
    EXPECT_TRUE(parse_sampling_names(Names{}).empty());
    for (const Names& wrong : {Names{"top_k;top_p"}, Names{"top_k,top_p"}, Names{""}, Names{" top_k"}, Names{"top_k "},
                               Names{"k"}, Names{"top_k", "top_k"}})
        EXPECT_THROW(parse_sampling_names(wrong), Error) << wrong.front();
}

TEST(SamplingOrder, IsBounded) {
    EXPECT_TRUE(parse_sampling_order(std::string(kMaximumSamplers, ';')).empty());
    for (const std::string& many : {std::string(kMaximumSamplers + 1, ';'), std::string(1 << 20, ',')}) {
        try {
            parse_sampling_order(many);
            FAIL();
        } catch (const Error& error) {
            EXPECT_THAT(error.what(), HasSubstr("32 names at most"));
        }
    }
    EXPECT_THROW(parse_sampling_letters(std::string(kMaximumSamplers + 1, 'f')), Error);
    EXPECT_THROW(parse_sampling_names(std::vector<std::string>(kMaximumSamplers + 1, "tfs")), Error);
}

TEST(SamplingSeed, SaysWhenItIsRandom) {
    EXPECT_EQ(given_seed(0), 0u);
    EXPECT_EQ(given_seed(42), 42u);
    EXPECT_EQ(given_seed(int64_t{1} << 40), uint64_t{1} << 40);
    EXPECT_FALSE(given_seed(-1));
    EXPECT_FALSE(given_seed(4294967295));
    EXPECT_EQ(following_seed(7, 0), 7u);
    EXPECT_EQ(following_seed(7, 2), 9u);
    EXPECT_EQ(following_seed(4294967294, 1), 4294967296u);
    EXPECT_EQ(following_seed(4294967293, 1), 4294967294u);
    EXPECT_EQ(following_seed(4294967296, 1), 4294967297u);
    std::set<uint64_t> seeds;
    for (int i = 0; i < 64; ++i) seeds.insert(random_seed());
    EXPECT_GT(seeds.size(), 60u);
    EXPECT_LT(*seeds.rbegin(), kRandomSeed);
}

TEST(SamplingFields, NamesAreUniqueAndLeadToTheirField) {
    std::set<std::string_view> names;
    for (const SamplingField& field : kSamplingFields) {
        EXPECT_TRUE(names.insert(field.name).second) << field.name;
        EXPECT_EQ(find_sampling_field(field.name), &field);
        EXPECT_NE(field.number == nullptr, field.integer == nullptr) << field.name;
        const SamplingParameters defaults;
        EXPECT_GE(field.of(defaults), field.minimum) << field.name;
        EXPECT_LE(field.of(defaults), field.maximum) << field.name;
        for (const double value : {field.minimum, std::min(field.maximum, 100.0), field.of(defaults)}) {
            SamplingParameters p;
            field.set(p, value);
            EXPECT_FLOAT_EQ(static_cast<float>(field.of(p)),
                            static_cast<float>(field.negative_is_zero ? std::max(value, 0.0) : value))
                << field.name;
        }
        SamplingParameters p;
        EXPECT_THROW(field.set(p, std::numeric_limits<double>::quiet_NaN()), Error) << field.name;
        EXPECT_THROW(field.set(p, field.maximum * 1.1 + 1), Error) << field.name;
        EXPECT_EQ(field.flag().empty(), field.flags.empty());
    }
    EXPECT_EQ(find_sampling_field("repetition_penalty")->name, "repeat_penalty");
    EXPECT_EQ(find_sampling_field("repetition"), nullptr);
    EXPECT_EQ(find_sampling_field(""), nullptr);
    SamplingParameters p;
    find_sampling_field("temperature")->set(p, -3);
    EXPECT_EQ(p.temperature, 0.0f);
    EXPECT_THROW(find_sampling_field("top_k")->set(p, 1.5), Error);
}

TEST(SamplingFields, SayWhatTheyTurnOn) {
    const auto on = [](std::string_view name, double value) {
        SamplingParameters p;
        const SamplingField& field = *find_sampling_field(name);
        field.set(p, value);
        return field.turns_on(p);
    };
    EXPECT_TRUE(on("top_k", 1) && !on("top_k", 0) && !on("top_k", -1));
    EXPECT_TRUE(on("top_n_sigma", 0.5) && !on("top_n_sigma", 0) && !on("top_n_sigma", -1));
    EXPECT_TRUE(on("adaptive_target", 0) && !on("adaptive_target", -0.01));
    EXPECT_TRUE(on("repeat_penalty", 1.1) && on("repeat_penalty", 0.9) && !on("repeat_penalty", 1));
    EXPECT_TRUE(on("dry_multiplier", -1) && !on("dry_multiplier", 0) && !on("dry_base", 2));
    EXPECT_TRUE(on("mirostat", 2) && !on("mirostat", 0) && !on("mirostat_tau", 3));
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
    for (const SamplingField& field : kSamplingFields) {
        for (const double bad : {field.minimum - 1, field.maximum + 1}) {
            if (field.is_integer() && bad > std::numeric_limits<int32_t>::max()) continue;
            expect(std::string(field.name).c_str(), [&](auto& p) {
                if (field.is_integer()) {
                    p.*field.integer = static_cast<int32_t>(bad);
                } else {
                    p.*field.number = static_cast<float>(bad);
                }
            });
        }
    }
    expect("dry_base", [](auto& p) {
        p.dry_multiplier = 1;
        p.dry_base = 0.5f;
    });
    expect("dry_sequence_breakers", [](auto& p) { p.dry_sequence_breakers = {"a", ""}; });
    expect("dry_sequence_breakers", [](auto& p) { p.dry_sequence_breakers = {std::string(41, 'a')}; });
    expect("dry_sequence_breakers", [](auto& p) { p.dry_sequence_breakers.assign(65, "a"); });
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
