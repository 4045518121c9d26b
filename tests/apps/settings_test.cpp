// From flags to what the core is asked.
#include "apps/tessera/flag_values.hpp"
#include "apps/tessera/read_settings.hpp"

#include <tessera/formats/formats.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tessera::app {
namespace {

ModelSettings settings_of(std::vector<std::string> words) {
    Arguments arguments(Command::kRun, words);
    return read_model_settings(arguments);
}

TEST(Overrides, SeveralAreSeparatedByCommasThatAKeyFollows) {
    EXPECT_EQ(split_overrides("a=int:1"), (std::vector<std::string>{"a=int:1"}));
    EXPECT_EQ(split_overrides("a=str:x,y,b.c=bool:true,d=str:"),
              (std::vector<std::string>{"a=str:x,y", "b.c=bool:true", "d=str:"}));
    EXPECT_EQ(split_overrides("a=str:k=v,w"), (std::vector<std::string>{"a=str:k=v,w"}));
    EXPECT_EQ(split_overrides(""), (std::vector<std::string>{""}));
    EXPECT_EQ(split_overrides(",="), (std::vector<std::string>{",="}));
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

TEST(Settings, SeedsThatAreRandom) {
    for (const char* random : {"-1", "4294967295"}) {
        const ModelSettings a = settings_of({"-s", random}), b = settings_of({"-s", random});
        EXPECT_FALSE(a.seed_given) << random;
        EXPECT_NE(a.sampling.seed, b.sampling.seed) << random;
        EXPECT_LT(a.sampling.seed, session::kRandomSeed);
    }
    EXPECT_TRUE(settings_of({"-s", "4294967294"}).seed_given);
    EXPECT_EQ(settings_of({"-s", "4294967296"}).sampling.seed, 4294967296u);
}

TEST(Settings, SamplersOfLlamaCpp) {
    const session::SamplingParameters p = settings_of({"--dynatemp-range",
                                                       "0.5",
                                                       "--dynatemp-exp",
                                                       "2",
                                                       "--top-n-sigma",
                                                       "1.5",
                                                       "--xtc-probability",
                                                       "0.3",
                                                       "--xtc-threshold",
                                                       "0.2",
                                                       "--dry-multiplier",
                                                       "0.8",
                                                       "--dry-base",
                                                       "2",
                                                       "--dry-allowed-length",
                                                       "3",
                                                       "--dry-penalty-last-n",
                                                       "-1",
                                                       "--dry-sequence-breaker",
                                                       "\\n",
                                                       "--dry-sequence-breaker",
                                                       "User:",
                                                       "--adaptive-target",
                                                       "0.4",
                                                       "--adaptive-decay",
                                                       "0.99",
                                                       "--mirostat",
                                                       "2",
                                                       "--mirostat-ent",
                                                       "4",
                                                       "--mirostat-lr",
                                                       "0.2",
                                                       "--sampler-seq",
                                                       "edskypmxt"})
                                              .sampling;
    EXPECT_FLOAT_EQ(p.temperature_range, 0.5f);
    EXPECT_FLOAT_EQ(p.temperature_exponent, 2.0f);
    EXPECT_FLOAT_EQ(p.top_n_sigma, 1.5f);
    EXPECT_FLOAT_EQ(p.xtc_probability, 0.3f);
    EXPECT_FLOAT_EQ(p.xtc_threshold, 0.2f);
    EXPECT_FLOAT_EQ(p.dry_multiplier, 0.8f);
    EXPECT_FLOAT_EQ(p.dry_base, 2.0f);
    EXPECT_EQ(p.dry_allowed_length, 3);
    EXPECT_EQ(p.dry_last_n, -1);
    EXPECT_EQ(p.dry_sequence_breakers, (std::vector<std::string>{"\n", "User:"}));
    EXPECT_FLOAT_EQ(p.adaptive_target, 0.4f);
    EXPECT_FLOAT_EQ(p.adaptive_decay, 0.99f);
    EXPECT_EQ(p.mirostat, 2);
    EXPECT_FLOAT_EQ(p.mirostat_tau, 4.0f);
    EXPECT_FLOAT_EQ(p.mirostat_eta, 0.2f);
    EXPECT_EQ(session::format_sampling_order(p.order),
              "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature");
    EXPECT_TRUE(settings_of({"--dry-sequence-breaker", "none"}).sampling.dry_sequence_breakers.empty());
    EXPECT_EQ(settings_of({"--temp", "-1"}).sampling.temperature, 0.0f);
    for (const std::vector<std::string>& bad : {std::vector<std::string>{"--mirostat", "3"},
                                                {"--xtc-probability", "1.5"},
                                                {"--adaptive-decay", "1"},
                                                {"--sampler-seq", "z"},
                                                {"--sampler-seq", "k", "--samplers", "top_k"},
                                                {"--samplers", "infill"},
                                                {"--dry-sequence-breaker", ""},
                                                {"--tfs", "0.5"}}) {
        EXPECT_THROW(settings_of(bad), UsageError) << bad[0];
    }
}

TEST(Settings, SamplersThatAreLeftOutAreSaid) {
    const auto remarks = [](std::vector<std::string> words) {
        Arguments arguments(Command::kRun, words);
        read_model_settings(arguments);
        return arguments.remarks();
    };
    EXPECT_TRUE(remarks({"--xtc-probability", "0.5"}).empty());
    EXPECT_TRUE(remarks({"--samplers", "top_k;temperature", "--repeat-penalty", "1.1"}).empty());
    const auto said = remarks({"--samplers", "top_k;temperature", "--xtc-probability", "0.5"});
    ASSERT_EQ(said.size(), 1u);
    EXPECT_EQ(said[0], "--xtc-probability: without effect, since xtc is not among the samplers");
}

TEST(Settings, RopeInPlaceOfTheFile) {
    const RopeSettings rope = settings_of({"--rope-scaling", "yarn", "--rope-scale", "4", "--rope-freq-base", "5e5",
                                           "--yarn-orig-ctx", "4096", "--yarn-ext-factor", "0", "--yarn-attn-factor",
                                           "1.5", "--yarn-beta-fast", "16", "--yarn-beta-slow", "2"})
                                  .common.rope;
    EXPECT_EQ(rope.scaling, "yarn");
    EXPECT_EQ(rope.factor, 4.0f);
    EXPECT_EQ(rope.base, 5e5f);
    EXPECT_EQ(rope.original_context, 4096);
    EXPECT_EQ(rope.ext_factor, 0.0f);
    EXPECT_EQ(rope.attn_factor, 1.5f);
    EXPECT_EQ(rope.beta_fast, 16.0f);
    EXPECT_EQ(rope.beta_slow, 2.0f);
    EXPECT_EQ(settings_of({"--rope-freq-scale", "0.25"}).common.rope.factor, 4.0f);
    // What others take for "as the file says".
    const RopeSettings none =
        settings_of({"--rope-freq-base", "0", "--rope-freq-scale", "0", "--yarn-orig-ctx", "0", "--yarn-ext-factor",
                     "-1", "--yarn-attn-factor", "-1", "--yarn-beta-fast", "-1", "--yarn-beta-slow", "-1"})
            .common.rope;
    EXPECT_FALSE(none.factor || none.base || none.original_context || none.ext_factor || none.attn_factor ||
                 none.beta_fast || none.beta_slow || none.scaling);
    for (const std::vector<std::string>& bad : {std::vector<std::string>{"--rope-scaling", "ntk"},
                                                {"--rope-scale", "-2"},
                                                {"--rope-freq-base", "nan"},
                                                {"--rope-scale", "4", "--rope-freq-scale", "0.25"},
                                                {"--yarn-beta-fast", "0"},
                                                {"--yarn-orig-ctx", "-1"},
                                                {"--grp-attn-n", "2"}}) {
        EXPECT_THROW(settings_of(bad), UsageError) << bad[0];
    }
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
        EXPECT_THROW(parse_tensor_rules(bad), WrongValue) << bad;
    }
}

// What rows can be encoded in, and nothing else.
TEST(Settings, TypesOfCaches) {
    for (const auto& [type, name] : std::initializer_list<std::pair<tsr_type, const char*>>{
#define TSR_ADD(id, number, name, ...) {TSR_TYPE_##id, name},
             TSR_TYPES(TSR_ADD)
#undef TSR_ADD
         }) {
        if (formats::can_encode_rows(type)) {
            EXPECT_EQ(parse_cache_type(name), type);
        } else {
            EXPECT_THROW(parse_cache_type(name), RefusedValue) << name;
        }
    }
}

TEST(Settings, Unescape) {
    EXPECT_EQ(unescape("a\\nb\\tc\\\\d\\\"e\\'f\\x41g\\q\\"), "a\nb\tc\\d\"e'fAg\\q\\");
    EXPECT_EQ(settings_of({"-e", "-p", "a\\nb"}).prompt, "a\nb");
    EXPECT_EQ(settings_of({"-p", "a\\nb"}).prompt, "a\\nb");
}

}  // namespace
}  // namespace tessera::app
