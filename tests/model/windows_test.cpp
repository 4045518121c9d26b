// How far back layers with a window see, at exactly the border.
#include "tests/goldens/golden_models.hpp"
#include "tests/model/claims.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <variant>
#include <vector>

namespace tessera::test {
namespace {

class Windows : public Claims, public testing::WithParamInterface<const char*> {
  protected:
    // Of the last token, where the token at `changed` is another one.
    std::vector<float> last_row(const EditedModel& model, size_t changed) const {
        std::vector<Token> tokens(std::begin(kTokens), std::end(kTokens));
        tokens[changed] = 50;
        const std::vector<float> all = logits(model, false, tokens);
        const auto row = static_cast<ptrdiff_t>(all.size() / tokens.size());
        return {all.end() - row, all.end()};
    }
};

// A window of two tokens, one's own and the one before it, lets each layer see one token further back.
TEST_P(Windows, CountOnesOwnToken) {
    EditedModel model(golden_model(GetParam()));
    const std::string prefix = model.architecture() + ".";
    const auto layers = std::get<uint32_t>(
        std::ranges::find(model.keys, prefix + "block_count", &std::pair<std::string, gguf::Value>::first)->second);
    model.set(prefix + "attention.sliding_window", uint32_t{2});
    model.set(prefix + "attention.sliding_window_pattern", gguf::Array(std::vector<bool>(layers, true)));
    for (uint32_t layer = 0; layer < layers; ++layer) {  // those that see all have none in files of MiMo
        const std::string sinks = "blk." + std::to_string(layer) + ".attn_sinks.weight";
        if (model.architecture() == "mimo2" && !model.has_tensor(sinks)) model.add(sinks, {4}, {0.f, 1.f, -1.f, 2.f});
    }
    model.remove_tensors("rope_freqs");  // of layers without a window alone
    const size_t last = std::size(kTokens) - 1;
    ASSERT_GT(last, layers);
    const std::vector<float> same = last_row(model, last - layers - 1), other = last_row(model, last - layers);
    EXPECT_EQ(same, last_row(model, 0));
    EXPECT_NE(same, other);
}

INSTANTIATE_TEST_SUITE_P(Models, Windows,
                         testing::Values("qwen3-window", "gpt-oss", "gemma3", "mimo2", "step35", "phi3-long"),
                         [](const auto& instance) {
                             std::string name = instance.param;
                             std::ranges::replace(name, '-', '_');
                             return name;
                         });

}  // namespace
}  // namespace tessera::test
