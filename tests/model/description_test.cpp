// Descriptions: the architectures that make them, the tensors that they ask for, and what graphs cannot compute of
// them.
#include "core/model/description.hpp"

#include "core/base/error.hpp"
#include "core/base/pattern.hpp"
#include "core/model/architectures.hpp"
#include "core/model/build_graph.hpp"
#include "core/model/expected_tensors.hpp"
#include "core/model/not_computed.hpp"
#include "tests/goldens/golden_models.hpp"
#include "tests/support.hpp"

#include <tessera/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace tessera::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const Architecture* find(std::string_view name) {
    for (const Architecture* one : own_architectures()) {
        if (one->has_name(name)) return one;
    }
    return nullptr;
}

TEST(Architectures, AreTheFilesOfTheirFolder) {
    size_t files = 0;
    for (const auto& entry : fs::directory_iterator(source_dir() / "core/model/architectures"))
        files += entry.path().extension() == ".cpp";
    EXPECT_EQ(own_architectures().size(), files);
    std::set<std::string_view> names;
    for (const Architecture* one : own_architectures()) {
        EXPECT_FALSE(one->names.front().empty());
        for (const std::string_view name : one->names) EXPECT_TRUE(name.empty() || names.insert(name).second) << name;
    }
}

class EveryGolden : public testing::TestWithParam<std::string> {};

// The list is complete: what a file has is on it, or known not to be used; what must be there is.
TEST_P(EveryGolden, HasTheTensorsOfItsDescription) {
    const gguf::GgufFile file = gguf::GgufFile::open(golden_model(GetParam()));
    ModelFile model(file);
    const Architecture* architecture = find(model.architecture());
    ASSERT_NE(architecture, nullptr);
    const ModelDescription description = architecture->describe(model);
    EXPECT_THAT(not_computed(description), testing::IsEmpty());
    const ExpectedTensors expected(description);
    std::set<std::string> listed, fused;
    for (const ExpectedTensor& tensor : expected.all()) {
        EXPECT_TRUE(listed.insert(tensor.name).second) << tensor.name << " is listed twice";
        if (!tensor.fused.empty() && (!file.find_tensor(tensor.name) || tensor.always_fused))
            fused.insert(tensor.fused);
        EXPECT_EQ(expected.find(tensor.which, tensor.layer), &tensor) << tensor.name;
        const gguf::TensorEntry* entry = file.find_tensor(tensor.name);
        if (!entry && !tensor.fused.empty()) entry = file.find_tensor(tensor.fused);
        EXPECT_TRUE(entry || tensor.presence != Presence::kRequired) << tensor.name;
    }
    std::vector<std::string> others;
    for (const gguf::TensorEntry& tensor : file.tensors()) {
        if (!listed.contains(tensor.name) && !fused.contains(tensor.name)) others.push_back(tensor.name);
    }
    for (const std::string& name : others) {
        EXPECT_TRUE(std::ranges::any_of(model.left_out(), [&](const UnusedTensors& one) {
            return Pattern(one.pattern).found_in(name);
        })) << name;
    }
}

INSTANTIATE_TEST_SUITE_P(Models, EveryGolden, testing::ValuesIn(golden_models()), [](const auto& instance) {
    std::string name = instance.param;
    std::ranges::replace(name, '-', '_');
    return name;
});

ModelDescription two_layers() {
    ModelDescription model;
    model.embedding = 64;
    model.vocabulary = 100;
    model.context = 1024;
    model.epsilon = 1e-6;
    Layer layer;
    layer.attention.heads = layer.attention.kv_heads = 2;
    layer.attention.key_length = layer.attention.value_length = 32;
    layer.attention.rope = Rope{.dimensions = 32};
    layer.feed_forward.length = 96;
    model.layers = {layer, layer};
    return model;
}

Experts few_experts() {
    return {.count = 4, .used = 2, .length = 32};
}

// Every field that a description has and a graph does not compute is refused: none of them is dropped.
TEST(NotComputed, NamesWhatIsAskedFor) {
    struct Case {
        std::string_view says;
        std::function<void(ModelDescription&)> ask;
    };
    const auto attention = [](auto&& change) { return [=](ModelDescription& m) { change(m.layers[1].attention); }; };
    const auto layer = [](auto&& change) { return [=](ModelDescription& m) { change(m.layers[1]); }; };
    const auto experts = [](auto&& change) {
        return [=](ModelDescription& m) {
            Experts some = few_experts();
            change(some);
            m.layers[1].feed_forward.experts = some;
        };
    };
    const Case cases[] = {
        {"a cap of logits", [](auto& m) { m.logit_softcap = 30; }},
        {"without layers", [](auto& m) { m.layers.clear(); }},
        {"of the same rows", layer([](Layer& l) { l.parallel = true; })},
        {"a recurrent state", attention([](Attention& a) { a.kind = AttentionKind::kRecurrent; })},
        {"a recurrent state", attention([](Attention& a) {
             a.state = RecurrentState{"kda", 4, 2, 32, 32};
         })},
        {"a cap of attention scores", attention([](Attention& a) { a.softcap = 50; })},
        {"a window that begins at multiples of its length (layer 1)", attention([](Attention& a) {
             a.window = 1024;
             a.chunked = true;
         })},
        {"latent attention to a window", attention([](Attention& a) {
             a.kind = AttentionKind::kLatent;
             a.window = 128;
         })},
        {"sinks of latent attention", attention([](Attention& a) {
             a.kind = AttentionKind::kLatent;
             a.sinks = true;
         })},
        {"scaled values of latent attention", attention([](Attention& a) {
             a.kind = AttentionKind::kLatent;
             a.value_scale = 0.7;
         })},
        {"a ramp of latent attention that ends between pairs", attention([](Attention& a) {
             a.kind = AttentionKind::kLatent;
             a.rope = Rope{};
             a.rope->ext_factor = 1;
             a.rope->whole_ramp = false;
         })},
        {"a gate on each element that attention gives",
         attention([](Attention& a) { a.gate = OutputGate::kElements; })},
        {"gates on the heads of latent attention", attention([](Attention& a) {
             a.kind = AttentionKind::kLatent;
             a.gate = OutputGate::kHeads;
         })},
        {"keys and values of another layer", attention([](Attention& a) { a.cache_of = 0; })},
        {"norms of rows after the rotary embedding", attention([](Attention& a) {
             a.head_norm = HeadNorm::kRows;
             a.norm_after_rope = true;
         })},
        {"latent attention without positions", attention([](Attention& a) {
             a.kind = AttentionKind::kLatent;
             a.rope.reset();
         })},
        {"the heads of latent attention", attention([](Attention& a) {
             a.kind = AttentionKind::kLatent;
             a.head_norm = HeadNorm::kHeads;
         })},
        {"softplus", experts([](Experts& e) { e.gating = Gating::kSqrtSoftplus; })},
    };
    EXPECT_THAT(not_computed(two_layers()), testing::IsEmpty());
    for (const Case& one : cases) {
        SCOPED_TRACE(one.says);
        ModelDescription model = two_layers();
        one.ask(model);
        EXPECT_THAT(not_computed(model), testing::ElementsAre(HasSubstr(one.says)));
    }
    // Of latent attention, a window as long as what the model was made for is none.
    ModelDescription model = two_layers();
    model.layers[0].attention.kind = AttentionKind::kLatent;
    model.layers[0].attention.window = 1024;
    EXPECT_THAT(not_computed(model), testing::IsEmpty());
}

// The graph of a golden model whose description was changed.
Graph changed_graph(const OpSet& ops, const std::function<void(ModelDescription&)>& change, const GraphLimits& limits) {
    const gguf::GgufFile file = gguf::GgufFile::open(golden_model("llama-plain"));
    ModelFile model(file);
    ModelDescription description = find("llama")->describe(model);
    change(description);
    return build_graph(description, model, ops, limits);
}

TEST(NotComputed, RefusesTheFileThatAsks) {
    const OpSet ops;
    try {
        (void)changed_graph(ops, [](ModelDescription& model) { model.layers[0].attention.chunked = true; }, {});
        FAIL() << "the file was taken";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_UNSUPPORTED);
        EXPECT_THAT(error.what(), HasSubstr("'llama'"));
        EXPECT_THAT(error.what(), HasSubstr("begins at multiples of its length (layer 0)"));
    }
}

std::vector<const Node*> nodes_of(const Graph& graph, std::string_view op) {
    std::vector<const Node*> nodes;
    for (const Node& node : graph.nodes()) {
        if (node.op == op) nodes.push_back(&node);
    }
    return nodes;
}

TEST(Graphs, ScaleEmbeddingsResidualsAndLogits) {
    const OpSet ops;
    const Graph graph = changed_graph(ops,
                                      [](ModelDescription& m) {
                                          m.embedding_scale = 12;
                                          m.layers[1].residual_scale = 0.25;
                                          m.logit_scale = 0.5;
                                      },
                                      {});
    std::vector<std::string> scaled;
    for (const Node* node : nodes_of(graph, TSR_OP_SCALE)) scaled.push_back(node->name);
    EXPECT_THAT(scaled, testing::ElementsAre(HasSubstr("embedding_scale"), HasSubstr("blk.1.attn_residual_scale"),
                                             HasSubstr("blk.1.ffn_residual_scale"), HasSubstr("logit_scale")));
}

TEST(Graphs, ScaleQueriesByPositionWhereALayerSaysSo) {
    const OpSet ops;
    const Graph graph = changed_graph(ops,
                                      [](ModelDescription& m) {
                                          m.layers[1].attention.temperature_scale = 0.1;
                                          m.layers[1].attention.temperature_length = 8192;
                                      },
                                      {});
    const auto scaled = nodes_of(graph, TSR_OP_SCALE_BY_POSITION), attention = nodes_of(graph, TSR_OP_CACHED_ATTENTION);
    ASSERT_EQ(scaled.size(), 1u);
    ASSERT_GE(attention.size(), 2u);
    EXPECT_EQ(scaled[0]->layer, 1);
    EXPECT_EQ(scaled[0]->outputs[0], attention[1]->inputs[0]);
    EXPECT_EQ(graph.tensor(scaled[0]->inputs[1]).name, std::string_view(kPositions));
}

TEST(Graphs, LayersWithOneWindowShareAPageTable) {
    const OpSet ops;
    const auto tables = [&](std::initializer_list<int64_t> windows, uint32_t pages) {
        const Graph graph = changed_graph(ops,
                                          [&](ModelDescription& m) {
                                              ASSERT_GE(m.layers.size(), windows.size());
                                              size_t layer = 0;
                                              for (const int64_t window : windows)
                                                  m.layers[layer++].attention.window = window;
                                          },
                                          {.sequence_pages = pages});
        std::vector<std::string> names;
        for (const Node* node : nodes_of(graph, TSR_OP_CACHED_ATTENTION)) {
            const Storage& table = graph.storage(graph.storage_of(node->inputs[5]));
            names.push_back(table.name);
            const auto window = std::ranges::find_if(
                node->attributes, [](const tsr_attribute& a) { return std::string_view(a.name) == "window"; });
            const uint32_t said = window == node->attributes.end() ? 0 : static_cast<uint32_t>(window->i);
            EXPECT_EQ(said, table.caches.window);
        }
        return names;
    };
    EXPECT_THAT(tables({128, 0, 128}, 64),
                testing::ElementsAre("page_table.window_128", "page_table", "page_table.window_128"));
    EXPECT_THAT(tables({128, 256, 64}, 64),
                testing::ElementsAre("page_table.window_128", "page_table.window_256", "page_table.window_64"));
    EXPECT_THAT(tables({128, 256, 200}, 2), testing::Each("page_table")) << "no sequence is longer than the window";
}

TEST(Caches, FollowFromAttention) {
    Attention attention;
    EXPECT_EQ(cache_kind(attention), CacheKind::kAllTokens);
    attention.window = 128;
    EXPECT_EQ(cache_kind(attention), CacheKind::kWindow);
    attention.cache_of = 3;
    EXPECT_EQ(cache_kind(attention), CacheKind::kNone);
    attention.kind = AttentionKind::kRecurrent;
    EXPECT_EQ(cache_kind(attention), CacheKind::kState);
}

TEST(TensorNames, AnArchitectureMayHaveOthers) {
    ModelDescription model = two_layers();
    model.names[ModelTensor::kFeedForwardNorm] = "post_attention_norm.weight";
    const ExpectedTensors expected(model);
    EXPECT_EQ(expected.find(ModelTensor::kFeedForwardNorm, 1)->name, "blk.1.post_attention_norm.weight");
    EXPECT_EQ(expected.find(ModelTensor::kAttentionNorm, 1)->name, "blk.1.attn_norm.weight");
    EXPECT_EQ(expected.find(ModelTensor::kAttentionNorm, 2), nullptr);
}

}  // namespace
}  // namespace tessera::test
