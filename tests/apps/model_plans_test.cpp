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
struct Published {
    const char* preset;
    double billions;  // of weights, as its publisher says, without layers of prediction and indexers
    int64_t hidden, layers, dense, heads, q_lora, kv_lora, nope, rope, v, intermediate, routed, shared, expert,
        vocabulary;
    bool tied = false;
    bool biased = true;  // routers

    friend std::ostream& operator<<(std::ostream& out, const Published& model) { return out << model.preset; }

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
        return hidden + layers * (2 * hidden + q_lora + kv_lora) + (layers - dense) * router;
    }
};

const Published kModels[] = {
    {"v3", 671, 7168, 61, 3, 128, 1536, 512, 128, 64, 128, 18432, 256, 1, 2048, 129280},
    {"kimi-k2", 1026, 7168, 61, 1, 64, 1536, 512, 128, 64, 128, 18432, 384, 1, 2048, 163840},
    {"moonlight", 16, 2048, 27, 1, 16, 0, 512, 128, 64, 128, 11264, 64, 2, 1408, 163840},
    {"glm-4.7-flash", 30, 2048, 47, 1, 20, 768, 512, 192, 64, 256, 10240, 64, 1, 1536, 154880},
    {"gigachat3", 10.7, 1536, 26, 1, 32, 0, 512, 128, 64, 192, 8960, 64, 1, 1280, 128256},
    {"youtu", 1.96, 2048, 32, 32, 16, 1536, 512, 128, 64, 128, 6144, 0, 0, 0, 128256, true},
};

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
    const Outcome outcome =
        tessera({"plan", file, "--json", "-mla", "3", "-c", context, "-ctk", "q8_0", "--rig", rig.string()});
    const double passed = processor_seconds() - start;
    EXPECT_TRUE(outcome.code == 0 || outcome.code == 3) << outcome.err;
    return {outcome.code, passed, boost::json::parse(outcome.out)};
}

// q8_0: 34 bytes for 32 elements.
TEST_P(PublishedModels, TakeTheBytesThatTheirConfigurationsMake) {
    constexpr int64_t kContext = 4096;
    const Published& model = GetParam();
    EXPECT_NEAR(static_cast<double>(model.matrices() + model.others()) / 1e9, model.billions, 0.01 * model.billions);
    const Planned planned = plan_of(model, TSR_SOURCE_DIR "/testing/rigs/dual-xeon-6980p.toml", "4096");
    EXPECT_EQ(planned.code, 0);
    EXPECT_EQ(planned.plan.at("model").at("layers").to_number<int64_t>(), model.layers);
    int64_t weights = 0, cache = 0;
    std::set<std::string_view> names;  // a table of embeddings that is the output matrix, too, may lie there twice
    for (const auto& storage : planned.plan.at("storages").as_array()) {
        if (storage.at("role").as_string() != "weight" || storage.at("derived").as_bool()) continue;
        if (names.insert(storage.at("name").as_string()).second) weights += storage.at("bytes").to_number<int64_t>();
    }
    EXPECT_EQ(weights, model.matrices() / 32 * 34 + 4 * model.others());
    for (const auto& device : planned.plan.at("devices").as_array()) cache += device.at("cache").to_number<int64_t>();
    EXPECT_EQ(cache, kContext * model.layers * (model.kv_lora + model.rope) / 32 * 34);
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

INSTANTIATE_TEST_SUITE_P(Models, PublishedModels, testing::ValuesIn(kModels), [](const auto& instance) {
    std::string name = instance.param.preset;
    std::ranges::replace_if(
        name, [](char c) { return c == '-' || c == '.'; }, '_');
    return name;
});

}  // namespace
}  // namespace tessera::test
