// Plans of models of published sizes: their weights and caches are counted by hand from the configurations.
#include "tests/apps/process.hpp"
#include "tests/apps/sparse_model.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::test {
namespace {

namespace fs = std::filesystem;

// Latent attention, as config.json has it: hidden_size, num_hidden_layers, first_k_dense_replace, num_attention_heads,
// q_lora_rank, kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim, intermediate_size, n_routed_experts,
// n_shared_experts, moe_intermediate_size, vocab_size, tie_word_embeddings.
struct Latent {
    const char* preset;
    double billions;  // of weights, as its publisher says, without layers of prediction and indexers
    int64_t hidden, layers, dense, heads, q_lora, kv_lora, nope, rope, v, intermediate, routed, shared, expert,
        vocabulary;
    bool tied = false;
    bool biased = true;  // routers
    bool longrope = false;

    int64_t key() const { return nope + rope; }
    int64_t attention() const {
        const int64_t q = q_lora > 0 ? hidden * q_lora + q_lora * heads * key() : hidden * heads * key();
        return q + hidden * (kv_lora + rope) + kv_lora * heads * (nope + v) + heads * v * hidden;
    }
    int64_t matrices() const {
        const int64_t experts = (routed + shared) * 3 * hidden * expert;
        return vocabulary * hidden * (tied ? 1 : 2) + layers * attention() + dense * 3 * hidden * intermediate +
               (layers - dense) * experts;
    }
    // Norms and routers, which are f32 in files.
    int64_t others() const {
        const int64_t router = hidden * routed + (biased ? routed : 0);
        const int64_t factors = longrope ? rope / 2 : 0;  // the table that the context takes
        return factors + hidden + layers * (2 * hidden + q_lora + kv_lora) + (layers - dense) * router;
    }
};

const Latent kLatent[] = {
    {"v3", 671, 7168, 61, 3, 128, 1536, 512, 128, 64, 128, 18432, 256, 1, 2048, 129280},
    {"kimi-k2", 1026, 7168, 61, 1, 64, 1536, 512, 128, 64, 128, 18432, 384, 1, 2048, 163840},
    {"moonlight", 16, 2048, 27, 1, 16, 0, 512, 128, 64, 128, 11264, 64, 2, 1408, 163840},
    {"glm-4.7-flash", 30, 2048, 47, 1, 20, 768, 512, 192, 64, 256, 10240, 64, 1, 1536, 154880},
    {"gigachat3", 10.7, 1536, 26, 1, 32, 0, 512, 128, 64, 192, 8960, 64, 1, 1280, 128256},
    {"youtu", 1.96, 2048, 32, 32, 16, 1536, 512, 128, 64, 128, 6144, 0, 0, 0, 128256, true},
    {"minicpm3", 4.07, 2560, 62, 62, 40, 768, 256, 64, 32, 64, 6400, 0, 0, 0, 73448, true, true, true},
    {"mistral-large-3", 673, 7168, 61, 3, 128, 1536, 512, 128, 64, 128, 16384, 128, 1, 4096, 131072, false, false},
    {"mistral-small-4", 119, 4096, 36, 0, 32, 1024, 256, 64, 64, 128, 12288, 128, 1, 2048, 131072, false, false},
    {"deepseek-v3.2", 671, 7168, 61, 3, 128, 1536, 512, 128, 64, 128, 18432, 256, 1, 2048, 129280},
    {"glm-5", 744, 6144, 78, 3, 64, 2048, 512, 192, 64, 256, 12288, 256, 1, 2048, 154880},
    {"glm-5.2", 744, 6144, 78, 3, 64, 2048, 512, 192, 64, 256, 12288, 256, 1, 2048, 154880},
};

// Grouped queries: hidden_size, num_hidden_layers, num_attention_heads, num_key_value_heads, head_dim, vocab_size, then
// dense layers and their intermediate_size, routed experts, their length and that of all shared ones.
struct Grouped {
    const char* preset;
    double billions;
    int64_t hidden, layers, heads, kv_heads, head, vocabulary, dense, intermediate, routed = 0, expert = 0, shared = 0;
    bool tied = false;
    int64_t norms = 2;       // of a layer, as long as a row
    int64_t head_norms = 0;  // elements of those of q and k
    bool qkv_biases = false;
    bool biased = false;  // routers
    bool shared_gate = false;
    // All but every `windows_of`th layer see so many tokens; 0: all see all.
    int64_t window = 0, windows_of = 0;
    bool all_biased = false;  // experts and outputs of attention, too, and a sink for each head

    int64_t with_window() const { return windows_of == 0 ? 0 : layers - layers / windows_of; }
    int64_t q() const { return heads * head; }
    int64_t kv() const { return kv_heads * head; }
    int64_t matrices() const {
        const int64_t attention = hidden * (2 * q() + 2 * kv()), experts = 3 * hidden * (routed * expert + shared);
        return vocabulary * hidden * (tied ? 1 : 2) + layers * attention + dense * 3 * hidden * intermediate +
               (layers - dense) * experts;
    }
    int64_t others() const {
        const int64_t router = hidden * routed + (biased ? routed : 0) + (shared_gate ? hidden : 0);
        const int64_t of_attention = all_biased ? hidden + heads : 0;
        const int64_t of_experts = all_biased ? routed * (2 * expert + hidden) : 0;
        return hidden + layers * (norms * hidden + head_norms + (qkv_biases ? q() + 2 * kv() : 0) + of_attention) +
               (layers - dense) * (router + of_experts);
    }
};

const Grouped kGrouped[] = {
    {"qwen2.5-7b", 7.6, 3584, 28, 28, 4, 128, 152064, 28, 18944, 0, 0, 0, false, 2, 0, true},
    {"qwen3-4b", 4.0, 2560, 36, 32, 8, 128, 151936, 36, 9728, 0, 0, 0, true, 2, 256},
    {"qwen3-235b-a22b", 235, 4096, 94, 64, 4, 128, 151936, 0, 0, 128, 1536, 0, false, 2, 256},
    {"qwen2-57b-a14b", 57.4, 3584, 28, 28, 4, 128, 151936, 0, 0, 64, 2560, 20480, false, 2, 0, true, false, true},
    {"mixtral-8x7b", 46.7, 4096, 32, 32, 8, 128, 32000, 0, 0, 8, 14336},
    {"glm-4.5", 353, 5120, 92, 96, 8, 128, 151552, 3, 12288, 160, 1536, 1536, false, 2, 256, true, true},
    {"glm-4.5-air", 107, 4096, 46, 96, 8, 128, 151552, 1, 10944, 128, 1408, 1408, false, 2, 0, true, true},
    {"glm-4-32b", 32.6, 6144, 61, 48, 2, 128, 151552, 61, 23040, 0, 0, 0, false, 4},
    {"minimax-m2", 229, 3072, 62, 48, 8, 128, 200064, 0, 0, 256, 1536, 0, false, 2, 7168, false, true},
    {"seed-oss-36b", 36.2, 5120, 64, 80, 8, 128, 155136, 64, 27648, 0, 0, 0, false, 2, 0, true},
    {"dots.llm1", 142.8, 4096, 62, 32, 32, 128, 152064, 1, 10944, 128, 1408, 2816, false, 2, 256, false, true},
    {"hunyuan-a13b", 80.4, 4096, 32, 32, 8, 128, 128167, 0, 0, 64, 3072, 3072, true, 2, 256},
    {"ling-flash-2", 103, 4096, 32, 32, 4, 128, 157184, 1, 9216, 256, 1024, 1024, false, 2, 256, false, true},
    {"ernie-4.5-21b", 21.8, 2560, 28, 20, 4, 128, 103424, 1, 12288, 64, 1536, 3072, true, 2, 0, false, true},
    {"smollm3-3b", 3.08, 2048, 36, 16, 4, 128, 128256, 36, 11008, 0, 0, 0, true},
    {"olmo2-7b", 7.3, 4096, 32, 32, 32, 128, 100352, 32, 11008, 0, 0, 0, false, 2, 8192},
    {"exaone-4-1.2b", 1.28, 2048, 30, 32, 8, 64, 102400, 30, 4096, 0, 0, 0, true, 2, 128},
    {"gpt-oss-20b", 20.9, 2880, 24, 64, 8, 64, 201088, 0, 0, 32, 2880, 0, false, 2, 0, true, true, false, 128, 2, true},
    {"gpt-oss-120b", 116.8, 2880,  36, 64, 8,    64,   201088, 0,   0, 128,
     2880,           0,     false, 2,  0,  true, true, false,  128, 2, true},
    {"gemma-3-4b", 3.88, 2560, 34, 8, 4, 256, 262208, 34, 10240, 0, 0, 0, true, 4, 512, false, false, false, 1024, 6},
    {"gemma-3-27b", 27.0, 5376, 62,    32,    16,    128,  262208, 62, 21504, 0, 0, 0,
     true,          4,    256,  false, false, false, 1024, 6},
    {"phi-4", 14.7, 5120, 40, 40, 10, 128, 100352, 40, 17920},
    {"granite-3.3-8b", 8.17, 4096, 40, 32, 8, 128, 49159, 40, 12800, 0, 0, 0, true},
    {"granite-3.1-3b-a800m", 3.3, 1536, 32, 24, 8, 64, 49155, 0, 0, 40, 512, 0, true},
    {"ministral-3-8b", 8.49, 4096, 34, 32, 8, 128, 131072, 34, 14336},
    {"hunyuan-7b", 7.5, 4096, 32, 32, 8, 128, 128167, 32, 14336, 0, 0, 0, true, 2, 256},
    {"ernie-4.5-0.3b", 0.36, 1024, 18, 16, 2, 128, 103424, 18, 3072, 0, 0, 0, true},
    {"glm-4-9b", 9.4, 4096, 40, 32, 2, 128, 151552, 40, 13696, 0, 0, 0, false, 2, 0, true},
    {"internlm2.5-7b", 7.74, 4096, 32, 32, 8, 128, 92544, 32, 14336},
    {"minicpm-2b", 2.72, 2304, 40, 36, 36, 64, 122753, 40, 5760, 0, 0, 0, true},
    {"exaone-4-32b", 32.0, 5120, 64,    40,    8,     128,  102400, 64, 27392, 0, 0, 0,
     false,          2,    256,  false, false, false, 4096, 4},
};

// Grouped queries whose heads differ between layers that see all tokens and those with a window: what both have, then
// what each has.
struct Windowed {
    const char* preset;
    double billions;
    int64_t hidden, key, value, vocabulary, dense, intermediate, routed, expert, shared, window;
    struct Kind {
        int64_t layers, heads, kv_heads;
    } all, local;
    bool sinks;           // of layers with a window
    bool gates = false;   // of heads, whose keys and queries are normalised, too
    int64_t factors = 0;  // of rotary embeddings that are computed with

    int64_t layers() const { return all.layers + local.layers; }
    int64_t attention(const Kind& kind) const {
        return kind.layers * hidden * ((kind.heads + kind.kv_heads) * (key + value) + (gates ? kind.heads : 0));
    }
    int64_t cached(const Kind& kind) const { return kind.layers * kind.kv_heads * (key + value); }
    int64_t matrices() const {
        return vocabulary * hidden * 2 + attention(all) + attention(local) + dense * 3 * hidden * intermediate +
               (layers() - dense) * 3 * hidden * (routed * expert + shared);
    }
    int64_t others() const {
        return hidden + factors + layers() * 2 * (hidden + (gates ? key : 0)) +
               (sinks ? local.layers * local.heads : 0) + (layers() - dense) * (hidden + 1) * routed;
    }
};

const Windowed kWindowed[] = {
    {"mimo-v2-flash", 309, 4096, 192, 128, 152576, 1, 16384, 256, 2048, 0, 128, {9, 64, 4}, {39, 64, 8}, true},
    {"step-3.5-flash",
     196,
     4096,
     128,
     128,
     128896,
     3,
     11264,
     288,
     1280,
     1280,
     512,
     {12, 64, 8},
     {33, 96, 8},
     false,
     true,
     32},
};

// What a plan is held against.
struct Published {
    const char* preset;
    double billions;
    int64_t layers, matrices, others;
    int64_t cached;  // elements of a token, in layers that see all
    bool latent;
    int64_t window = 0, windowed = 0;  // elements of a token in those with a window

    friend std::ostream& operator<<(std::ostream& out, const Published& model) { return out << model.preset; }
};

std::vector<Published> published() {
    std::vector<Published> all;
    for (const Latent& one : kLatent)
        all.push_back({one.preset, one.billions, one.layers, one.matrices(), one.others(),
                       one.layers * (one.kv_lora + one.rope), true});
    for (const Grouped& one : kGrouped)
        all.push_back({one.preset, one.billions, one.layers, one.matrices(), one.others(),
                       (one.layers - one.with_window()) * 2 * one.kv(), false, one.window,
                       one.with_window() * 2 * one.kv()});
    for (const Windowed& one : kWindowed)
        all.push_back({one.preset, one.billions, one.layers(), one.matrices(), one.others(), one.cached(one.all), false,
                       one.window, one.cached(one.local)});
    return all;
}

class PublishedModels : public testing::TestWithParam<Published> {};

struct Planned {
    int code = 0;
    double seconds = 0;
    boost::json::value plan;
};

// Of all child processes so far: what a plan takes however busy the machine is.
double processor_seconds() {
    rusage used{};
    getrusage(RUSAGE_CHILDREN, &used);
    return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

Planned plan_of(const Published& model, const fs::path& rig, const char* context) {
    const std::string file = sparse_model(model.preset, "q8_0");
    const double start = processor_seconds();
    std::vector<std::string> words = {"plan", file, "--json", "-c", context, "-ctk", "q8_0", "--rig", rig.string()};
    for (const char* word : model.latent ? std::vector{"-mla", "3"} : std::vector{"-ctv", "q8_0"})
        words.emplace_back(word);
    const Outcome outcome = tessera(words);
    const double passed = processor_seconds() - start;
    EXPECT_TRUE(outcome.code == 0 || outcome.code == 3) << outcome.err;
    return {outcome.code, passed, boost::json::parse(outcome.out)};
}

// q8_0: 34 bytes for 32 elements.
TEST_P(PublishedModels, TakeTheBytesThatTheirConfigurationsMake) {
    constexpr int64_t kContext = 16384;
    const Published& model = GetParam();
    EXPECT_NEAR(static_cast<double>(model.matrices + model.others) / 1e9, model.billions, 0.01 * model.billions);
    const Planned planned = plan_of(model, TSR_SOURCE_DIR "/testing/rigs/dual-xeon-6980p.toml", "16384");
    EXPECT_EQ(planned.code, 0);
    EXPECT_EQ(planned.plan.at("model").at("layers").to_number<int64_t>(), model.layers);
    int64_t weights = 0, cache = 0;
    std::set<std::string_view> names;  // a table of embeddings that is the output matrix, too, may lie there twice
    for (const auto& storage : planned.plan.at("storages").as_array()) {
        if (storage.at("role").as_string() != "weight" || storage.at("derived").as_bool()) continue;
        if (names.insert(storage.at("name").as_string()).second) weights += storage.at("bytes").to_number<int64_t>();
    }
    EXPECT_EQ(weights, model.matrices / 32 * 34 + 4 * model.others);
    for (const auto& device : planned.plan.at("devices").as_array()) cache += device.at("cache").to_number<int64_t>();
    int64_t of_window = 0;  // tokens, rows of a step included
    for (const auto& group : planned.plan.at("cache_groups").as_array()) {
        if (model.window > 0 && group.at("window").to_number<int64_t>() == model.window)
            of_window = group.at("pages").to_number<int64_t>() * 64;
    }
    EXPECT_GE(of_window, model.window);
    EXPECT_LT(of_window, kContext);
    EXPECT_EQ(cache, (kContext * model.cached + of_window * model.windowed) / 32 * 34);
}

TEST_P(PublishedModels, ArePlannedOnEveryRig) {
    size_t rigs = 0;
    for (const auto& entry : fs::directory_iterator(TSR_SOURCE_DIR "/testing/rigs")) {
        if (entry.path().extension() != ".toml") continue;
        SCOPED_TRACE(entry.path().filename().string());
        ++rigs;
        const Planned planned = plan_of(GetParam(), entry.path(), "8192");
        EXPECT_EQ(planned.plan.at("fits").as_bool(), planned.code == 0);
        EXPECT_LT(planned.seconds, 10);
    }
    EXPECT_GE(rigs, 7u);
}

INSTANTIATE_TEST_SUITE_P(Models, PublishedModels, testing::ValuesIn(published()), [](const auto& instance) {
    std::string name = instance.param.preset;
    std::ranges::replace_if(
        name, [](char c) { return c == '-' || c == '.'; }, '_');
    return name;
});

}  // namespace
}  // namespace tessera::test
