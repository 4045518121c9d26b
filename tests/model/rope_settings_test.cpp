// Values of a user in place of the file's keys of rotary embeddings.
#include "core/model/rope_settings.hpp"

#include "core/base/error.hpp"
#include "core/session/engine.hpp"
#include "tests/model/edited_model.hpp"
#include "tests/support.hpp"
#include "tests/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace tessera::test {
namespace {

using testing::HasSubstr;

std::filesystem::path golden(std::string_view name) {
    return std::filesystem::path(TSR_GOLDENS) / (std::string(name) + ".gguf");
}

std::vector<float> logits(gguf::GgufFile file) {
    static const Hardware hardware = Hardware::detect();
    static const Registry registry = Registry::load(plugins_without({"cpu_avx2", "cpu_avx512"}), hardware);
    EngineOptions options;
    options.context = 64;
    options.rows = options.output_rows = 16;
    options.cache_type_k = options.cache_type_v = TSR_TYPE_F32;
    Engine engine(std::move(file), registry, hardware, options);
    const std::vector<Token> tokens = {1, 7, 3, 22, 9, 14, 2, 30};
    const BatchEntry entry{engine.cache().create(), tokens, true, true};
    std::vector<float> result;
    for (const auto row : engine.step({&entry, 1})) result.insert(result.end(), row.begin(), row.end());
    return result;
}

std::vector<float> logits_with(std::string_view model, const RopeSettings& settings) {
    gguf::GgufFile file = gguf::GgufFile::open(golden(model));
    file.override_metadata(rope_overrides(settings, file.metadata()));
    return logits(std::move(file));
}

using Keys = std::vector<std::pair<std::string, gguf::Value>>;

std::vector<float> logits_of_keys(std::string_view model, const Keys& keys) {
    const TemporaryFolder folder;
    EditedModel edited(golden(model));
    for (const auto& [key, value] : keys) edited.set(key, value);
    return logits(gguf::GgufFile::open(edited.write(folder.path() / "model.gguf")));
}

TEST(RopeSettings, ComputeWhatTheSameKeysOfAFileDo) {
    const auto none = logits(gguf::GgufFile::open(golden("llama-plain")));
    EXPECT_EQ(logits_with("llama-plain", {}), none);
    struct Case {
        const char* name;
        RopeSettings settings;
        Keys keys;
    };
    const std::string prefix = "llama.rope.";
    const Case cases[] = {
        {"base", {.base = 5000.0f}, {{prefix + "freq_base", 5000.0f}}},
        {"factor",
         {.factor = 4.0f},
         {{prefix + "scaling.type", std::string("linear")}, {prefix + "scaling.factor", 4.0f}}},
        {"yarn",
         {.scaling = "yarn",
          .factor = 4.0f,
          .original_context = 32,
          .attn_factor = 1.25f,
          .beta_fast = 16.0f,
          .beta_slow = 2.0f},
         {{prefix + "scaling.type", std::string("yarn")},
          {prefix + "scaling.factor", 4.0f},
          {prefix + "scaling.original_context_length", uint32_t{32}},
          {prefix + "scaling.attn_factor", 1.25f},
          {prefix + "scaling.yarn_beta_fast", 16.0f},
          {prefix + "scaling.yarn_beta_slow", 2.0f}}},
        {"ext",
         {.scaling = "yarn", .factor = 4.0f, .original_context = 32, .ext_factor = 0.5f},
         {{prefix + "scaling.type", std::string("yarn")},
          {prefix + "scaling.factor", 4.0f},
          {prefix + "scaling.original_context_length", uint32_t{32}},
          {prefix + "scaling.yarn_ext_factor", 0.5f}}},
    };
    std::map<std::vector<float>, const char*> seen = {{none, "none"}};
    for (const Case& one : cases) {
        const auto found = logits_with("llama-plain", one.settings);
        EXPECT_EQ(found, logits_of_keys("llama-plain", one.keys)) << one.name;
        EXPECT_TRUE(seen.emplace(found, one.name).second) << one.name << " computes what " << seen[found] << " does";
    }
}

TEST(RopeSettings, ReplaceWhatTheFileSays) {
    const auto as_file = logits(gguf::GgufFile::open(golden("v3-yarn")));
    RopeSettings settings;
    settings.beta_fast = 4.0f;
    EXPECT_NE(logits_with("v3-yarn", settings), as_file);
    EXPECT_EQ(logits_with("v3-yarn", settings),
              logits_of_keys("v3-yarn", {{"deepseek2.rope.scaling.yarn_beta_fast", 4.0f}}));
}

TEST(RopeSettings, AnotherKindTakesYarnFromAFile) {
    const auto yarn = logits(gguf::GgufFile::open(golden("v3-yarn")));
    const auto none = logits_with("v3-yarn", {.scaling = "none"}),
               linear = logits_with("v3-yarn", {.scaling = "linear"});
    EXPECT_NE(none, yarn);
    EXPECT_NE(linear, yarn);
    EXPECT_NE(none, linear);
    EXPECT_EQ(none, logits_with("v3-yarn", {.scaling = "linear", .factor = 1.0f}));
}

std::map<std::string, gguf::Value> overrides(const RopeSettings& settings, const Keys& keys) {
    gguf::Metadata metadata;
    metadata.add("general.architecture", std::string("llama"));
    for (const auto& [key, value] : keys) metadata.add("llama.rope." + key, value);
    std::map<std::string, gguf::Value> result;
    for (const gguf::Override& one : rope_overrides(settings, metadata)) result[one.key] = one.value;
    return result;
}

TEST(RopeSettings, AttentionIsMultipliedAndOldKeysFollow) {
    const auto yarn =
        overrides({.attn_factor = 2.0f}, {{"scaling.type", std::string("yarn")}, {"scaling.attn_factor", 1.5f}});
    EXPECT_EQ(std::get<float>(yarn.at("llama.rope.scaling.attn_factor")), 3.0f);
    const auto zero =
        overrides({.attn_factor = 2.0f}, {{"scaling.type", std::string("yarn")}, {"scaling.attn_factor", 0.0f}});
    EXPECT_EQ(std::get<float>(zero.at("llama.rope.scaling.attn_factor")), 2.0f);
    const auto old = overrides({.factor = 2.0f}, {{"scale_linear", 8.0f}});
    EXPECT_EQ(std::get<float>(old.at("llama.rope.scale_linear")), 2.0f);
    EXPECT_TRUE(overrides({}, {{"scaling.type", std::string("yarn")}}).empty());
}

TEST(RopeSettings, WhatWouldHaveNoEffectIsRefused) {
    Notice last;
    const auto error = [&](const RopeSettings& settings, const Keys& keys = {}) -> std::string {
        try {
            overrides(settings, keys);
        } catch (const Error& refusal) {
            last = refusal.notice();
            return refusal.what();
        }
        return "";
    };
    EXPECT_THAT(error({.scaling = "none", .factor = 2.0f}), HasSubstr("positions are not scaled"));
    EXPECT_EQ(last.about, std::vector{Setting::kRopeScale});
    EXPECT_EQ(last.value, "2");
    EXPECT_THAT(error({.factor = 2.0f}, {{"scaling.type", std::string("none")}}), HasSubstr("llama.rope.scaling.type"));
    EXPECT_EQ(error({.factor = 2.0f}), "");
    EXPECT_EQ(error({.scaling = "none", .factor = 1.0f}), "");
    for (const RopeSettings& yarn :
         {RopeSettings{.original_context = 100}, RopeSettings{.ext_factor = 1.0f}, RopeSettings{.attn_factor = 2.0f},
          RopeSettings{.beta_fast = 3.0f}, RopeSettings{.beta_slow = 3.0f}}) {
        EXPECT_THAT(error(yarn), HasSubstr("YaRN"));
        EXPECT_EQ(last.advice, std::vector{(Advice{AdviceCode::kRopeScaling, "yarn"})});
        EXPECT_THAT(error(yarn, {{"scaling.factor", 2.0f}}), HasSubstr("'linear'"));
        EXPECT_EQ(error(yarn, {{"scaling.type", std::string("yarn")}}), "");
    }
    EXPECT_EQ(error({.ext_factor = 0.0f, .attn_factor = 1.0f}), "");
}

}  // namespace
}  // namespace tessera::test
