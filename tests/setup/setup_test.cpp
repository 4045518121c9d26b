// What an application derives from settings and from a model's tensors.
#include "core/setup/loading.hpp"
#include "core/setup/model_sizes.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tessera {
namespace {

TEST(Context, IsWhatPromptAndAnswerNeed) {
    const auto wish = [](std::vector<size_t> prompts, uint32_t at_once, std::optional<uint32_t> given, int64_t predict,
                         uint32_t model) { return wish_context(prompts, at_once, given, predict, model); };
    EXPECT_EQ(wish({100}, 1, {}, -1, 163840).all, 4096u);
    EXPECT_EQ(wish({100}, 1, {}, 50, 163840).all, 4096u);
    EXPECT_EQ(wish({100}, 1, {}, 50, 163840).requests[0], 150u);
    EXPECT_EQ(wish({5000}, 1, {}, 2000, 163840).all, 7040u);  // whole pages of 64
    EXPECT_EQ(wish({5000}, 1, {}, 2000, 163840).requests[0], 7000u);
    EXPECT_EQ(wish({100}, 1, {}, -1, 1024).all, 1024u);
    EXPECT_EQ(wish({900}, 1, {}, 500, 1024).requests[0], 1024u);
    EXPECT_EQ(wish({100}, 1, 100u, -1, 1024).requests[0], 100u);
    EXPECT_EQ(wish({10}, 1, 0u, -1, 1024).all, 1024u);
    // Several at once: the largest of them together; given a context, unlimited answers share it evenly.
    EXPECT_EQ(wish({10, 20, 30}, 2, {}, 100, 163840).all, 4096u);
    EXPECT_EQ(wish({10, 10, 10}, 3, {}, -1, 1024).all, 3072u);
    EXPECT_EQ(wish({10, 10, 10, 10}, 2, 1024u, -1, 163840).requests[3], 512u);
    // More than the model was made for is for one that is alone, or whose prompt or -n says it.
    EXPECT_EQ(wish({10}, 1, 2048u, -1, 1024).requests[0], 2048u);
    EXPECT_EQ(wish({10, 10}, 2, 4096u, -1, 1024).requests[0], 1024u);
    EXPECT_EQ(wish({10, 10}, 2, 4096u, 1500, 1024).requests[0], 1510u);
    EXPECT_EQ(wish({1500, 10}, 2, 4096u, -1, 1024).requests[0], 1501u);
}

TEST(ModelSizes, KindsAndLayers) {
    EXPECT_EQ(kind_of("blk.3.ffn_down_exps.weight"), TensorKind::kRoutedExperts);
    EXPECT_EQ(kind_of("blk.3.ffn_down_shexp.weight"), TensorKind::kSharedExperts);
    EXPECT_EQ(kind_of("blk.3.ffn_gate_inp.weight"), TensorKind::kRouter);
    EXPECT_EQ(kind_of("blk.3.exp_probs_b.bias"), TensorKind::kRouter);
    EXPECT_EQ(kind_of("blk.0.ffn_gate.weight"), TensorKind::kDenseFfn);
    EXPECT_EQ(kind_of("blk.0.attn_kv_b.weight"), TensorKind::kAttention);
    EXPECT_EQ(kind_of("blk.0.attn_kv_a_norm.weight"), TensorKind::kNorms);
    EXPECT_EQ(kind_of("token_embd.weight"), TensorKind::kEmbeddings);
    EXPECT_EQ(kind_of("output.weight"), TensorKind::kOutput);
    EXPECT_EQ(kind_of("output_norm.weight"), TensorKind::kNorms);
    EXPECT_EQ(layer_of("blk.17.x"), 17);
    EXPECT_EQ(layer_of("output.weight"), -1);
    EXPECT_EQ(layer_of("blk.x.y"), -1);
    EXPECT_EQ(ranges_text({0, 1, 2, 5, 7, 8}), "0-2, 5, 7-8");
}

// blk.2 predicts further tokens; its experts are in the file, and nothing places them.
TEST(ModelSizes, LayersThatPredictAreNotComputed) {
    const ModelSizes sizes = measure(gguf::GgufFile::open(TSR_GOLDENS "/v3-ungrouped.gguf"));
    EXPECT_EQ(sizes.predicting, std::set<int>{2});
    EXPECT_GT(sizes.layer_bytes(2, TensorKind::kRoutedExperts), 0u);
    EXPECT_EQ(sizes.computed_bytes(TensorKind::kRoutedExperts), sizes.layer_bytes(1, TensorKind::kRoutedExperts));
    EXPECT_EQ(sizes.computed_bytes(TensorKind::kDenseFfn), sizes.layer_bytes(0, TensorKind::kDenseFfn));
    uint64_t of_layer = 0;
    for (const uint64_t bytes : sizes.layers.at(2)) of_layer += bytes;
    EXPECT_EQ(sizes.computed_bytes(), sizes.bytes - of_layer);
}

TEST(ModelSizes, NumberPatternsMatchExactlyTheirNumbers) {
    for (const auto& [first, last] :
         std::vector<std::pair<int, int>>{{0, 3}, {3, 12}, {9, 10}, {5, 5}, {17, 60}, {98, 121}}) {
        const std::regex pattern("blk\\.(" + number_pattern(first, last) + ")\\.ffn");
        for (int n = 0; n < 140; ++n) {
            EXPECT_EQ(std::regex_search("blk." + std::to_string(n) + ".ffn", pattern), n >= first && n <= last)
                << first << ' ' << last << ' ' << n;
        }
    }
}

}  // namespace
}  // namespace tessera
