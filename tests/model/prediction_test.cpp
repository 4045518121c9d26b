// Layers that predict further tokens give what was recorded of them, from states of the model and from their own; what
// the model computes is the same whether its states are wanted or not.
#include "core/base/error.hpp"
#include "tests/goldens/golden.hpp"
#include "tests/goldens/golden_models.hpp"
#include "tests/model/edited_model.hpp"
#include "tests/run/simulated_rig.hpp"
#include "tests/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace tessera {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint32_t kRows = 64;
// As record_predictions.py has it.
constexpr size_t kChained = 3;

EngineOptions options_of(size_t context) {
    EngineOptions options;
    options.context = static_cast<uint32_t>(context);
    options.rows = kRows;
    options.cache_type_k = options.cache_type_v = TSR_TYPE_F32;
    options.check_order = true;
    return options;
}
EngineOptions options_of_model(size_t context) {
    EngineOptions options = options_of(context);
    options.states = true;
    options.output_rows = 4;
    return options;
}
EngineOptions options_of_layer(size_t context) {
    EngineOptions options = options_of(context);
    options.prediction = true;
    options.output_rows = kRows;
    return options;
}

// Of every token: with outputs of no row, of the last and of all rows, many and few rows at once.
std::vector<float> states_of(Engine& engine, std::span<const Token> tokens) {
    std::vector<float> states;
    const SequenceId sequence = engine.cache().create();
    constexpr size_t kSteps[] = {37, 1, 20, 3, 1};
    for (size_t at = 0, step = 0; at < tokens.size(); ++step) {
        const size_t count = std::min(tokens.size() - at, kSteps[step % std::size(kSteps)]);
        const BatchEntry entry{sequence, tokens.subspan(at, count), step % 2 == 0, count == 3};
        engine.step({&entry, 1});
        const auto given = engine.states(0);
        EXPECT_EQ(given.size(), count * engine.info().embedding);
        states.insert(states.end(), given.begin(), given.end());
        at += count;
    }
    engine.cache().remove(sequence);
    return states;
}

struct Predicted {
    std::vector<std::vector<float>> logits, states;
};

Predicted predict(Engine& layer, std::span<const Token> tokens, std::span<const float> states, size_t chained) {
    const size_t width = layer.info().embedding;
    const SequenceId sequence = layer.cache().create();
    Predicted all;
    for (size_t at = 0; at < tokens.size();) {
        const bool own = at >= tokens.size() - chained;
        const size_t count = own ? 1 : std::min<size_t>({tokens.size() - chained - at, kRows, at == 0 ? 9u : ~0u});
        const std::vector<float> from =
            own ? all.states.back()
                : std::vector<float>(states.begin() + static_cast<ptrdiff_t>(at * width),
                                     states.begin() + static_cast<ptrdiff_t>((at + count) * width));
        const BatchEntry entry{sequence, tokens.subspan(at, count), true, true, false, from};
        for (const auto row : layer.step({&entry, 1})) all.logits.emplace_back(row.begin(), row.end());
        const auto given = layer.states(0);
        for (size_t i = 0; i < count; ++i)
            all.states.emplace_back(given.begin() + static_cast<ptrdiff_t>(i * width),
                                    given.begin() + static_cast<ptrdiff_t>((i + 1) * width));
        at += count;
    }
    layer.cache().remove(sequence);
    return all;
}

class Predictions : public testing::TestWithParam<const char*> {
  protected:
    void expect_recorded(const char* plugin, double tolerance) {
        if (test::runs_here(plugin)) expect_recorded(plugin, test::plugins_up_to(plugin), {}, tolerance);
    }
    void expect_recorded(const char* plugin, const test::TestConfig& config, const std::vector<double>& split,
                         double tolerance) {
        const auto file = gguf::GgufFile::open(std::filesystem::path(TSR_SOURCE_DIR "/tests/goldens") /
                                               (std::string(GetParam()) + ".prediction.golden.gguf"));
        const auto text = test::values_of<int32_t>(file, "text"), tokens = test::values_of<int32_t>(file, "tokens"),
                   positions = test::values_of<int32_t>(file, "positions");
        const auto logits = test::values_of<float>(file, "logits"), states = test::values_of<float>(file, "states"),
                   margin = test::values_of<float>(file, "margin");
        const auto model = test::golden_model(GetParam());
        std::vector<float> given;
        {
            EngineOptions options = options_of_model(text.size());
            options.placement.tensor_split = split;
            test::LoadedModel target(model, options, config);
            given = states_of(*target.engine, text);
        }
        test::LoadedModel layer(model, options_of_layer(tokens.size()), config);
        EXPECT_EQ(layer.engine->info().layers, 1u);
        const Predicted found = predict(*layer.engine, tokens, given, kChained);
        const auto off = [&](const std::vector<std::vector<float>>& rows, const std::vector<float>& recorded) {
            const size_t width = recorded.size() / positions.size();
            double worst = 0, largest = 0;
            for (size_t i = 0; i < positions.size(); ++i) {
                for (size_t k = 0; k < width; ++k) {
                    const double value = recorded[i * width + k];
                    largest = std::max(largest, std::abs(value));
                    const double difference = std::abs(rows[static_cast<size_t>(positions[i])][k] - value);
                    EXPECT_FALSE(std::isnan(difference));
                    if (margin[i] >= 1e-4f) worst = std::max(worst, difference);
                }
            }
            return worst / largest;
        };
        const double of_logits = off(found.logits, logits), of_states = off(found.states, states);
        std::printf("    %s: logits off by %.1e of the largest, states by %.1e (limit %.0e)\n", plugin, of_logits,
                    of_states, tolerance);
        EXPECT_LE(of_logits, tolerance);
        EXPECT_LE(of_states, tolerance);
        // The layer chooses what it chose there.
        for (size_t i = 0; i < kChained; ++i) {
            const auto& row = found.logits[tokens.size() - kChained - 1 + i];
            EXPECT_EQ(std::ranges::max_element(row) - row.begin(), tokens[tokens.size() - kChained + i]);
        }
    }
};

TEST_P(Predictions, AreAsRecorded) {
    expect_recorded("reference", 1e-5);
    expect_recorded("cpu_avx2", 1e-4);
    expect_recorded("cpu_avx512", 1e-4);
}

TEST_P(Predictions, AreAsRecordedOnCards) {
    expect_recorded("two cards", test::rig_config({860, 860}), {1, 1}, 1e-2);
}

TEST_P(Predictions, StatesChangeNoLogits) {
    const auto file = gguf::GgufFile::open(std::filesystem::path(TSR_SOURCE_DIR "/tests/goldens") /
                                           (std::string(GetParam()) + ".prediction.golden.gguf"));
    const auto text = test::values_of<int32_t>(file, "text");
    const auto logits = [&](bool states) {
        EngineOptions options = options_of_model(text.size());
        options.states = states;
        test::LoadedModel model(test::golden_model(GetParam()), options, test::plugins_without({}));
        std::vector<std::vector<float>> all;
        const SequenceId sequence = model.engine->cache().create();
        for (size_t at = 0; at < text.size();) {
            const size_t count = std::min(text.size() - at, at == 0 ? kRows : size_t{at % 3 == 0 ? 4u : 1u});
            const BatchEntry entry{sequence, std::span(text).subspan(at, count), true, count == 4};
            for (const auto row : model.engine->step({&entry, 1})) all.emplace_back(row.begin(), row.end());
            at += count;
        }
        return all;
    };
    EXPECT_EQ(logits(true), logits(false));
}

// Of rows without logits the model computes states where they are wanted.
TEST_P(Predictions, StatesAreComputedWhereTheyAreWanted) {
    test::LoadedModel model(test::golden_model(GetParam()), options_of_model(256), test::plugins_up_to("reference"));
    Engine& engine = *model.engine;
    const Graph& graph = engine.plan().graph;
    const StorageId states = graph.storage_of(graph.find_output(kRowStates));
    const std::vector<Token> tokens(20, 5);
    const SequenceId sequence = engine.cache().create();
    // Of the nodes that make them.
    const auto seconds_of = [&](const auto& take) {
        std::vector<double> seconds(engine.plan().nodes.size());
        engine.measure(seconds);
        take();
        engine.finish();
        engine.measure({});
        double sum = 0;
        for (size_t i = 0; i < seconds.size(); ++i) {
            for (const Value value : graph.nodes()[engine.plan().nodes[i].node].outputs) {
                if (value && graph.storage_of(value) == states) sum += seconds[i];
            }
        }
        return sum;
    };
    const BatchEntry last{sequence, tokens}, none{sequence, tokens, false};
    EXPECT_GT(seconds_of([&] { engine.step({&last, 1}); }), 0);
    EXPECT_EQ(engine.states(0).size(), tokens.size() * engine.info().embedding);
    EXPECT_EQ(seconds_of([&] { engine.step({&last, 1}, false); }), 0);
    EXPECT_TRUE(engine.states(0).empty());
    EXPECT_EQ(seconds_of([&] { engine.submit({&none, 1}); }), 0);
}

INSTANTIATE_TEST_SUITE_P(Models, Predictions, testing::Values("v3-ungrouped", "glm-flash", "glm-dsa", "glm4moe"),
                         [](const auto& instance) {
                             std::string name = instance.param;
                             std::ranges::replace(name, '-', '_');
                             return name;
                         });

// Of the states, which are longer than all else, a step's rows are copied to a card and no others.
TEST(PredictionInputs, AreCopiedAsFarAsAStepHasRows) {
    const test::CardOptions card(test::card_id(0));
    EngineOptions options = options_of_layer(256);
    options.output_rows = 1;
    options.placement.gpu_layers = 99;
    options.placement.rules = {{".*", test::card_id(0)}};
    test::LoadedModel layer(test::golden_model("v3-ungrouped"), options, test::rig_config({860}));
    Engine& engine = *layer.engine;
    const tsr_simulated_failures& failures = test::simulated_failures();
    const std::vector<Token> tokens(kRows, 5);
    const std::vector<float> states(kRows * engine.info().embedding, 0.5f);
    const SequenceId sequence = engine.cache().create();
    const auto copied = [&](uint32_t rows) {
        failures.reset(test::card_id(0).c_str());
        const BatchEntry entry{sequence, std::span(tokens).first(rows),
                               true,     false,
                               false,    std::span(states).first(rows * engine.info().embedding)};
        engine.step({&entry, 1});
        return failures.bytes(test::card_id(0).c_str(), TSR_SIMULATED_UPLOAD);
    };
    // Nothing goes back to the host between.
    for (const PlannedNode& node : engine.plan().nodes) EXPECT_EQ(node.device, 1u) << node.node;
    const uint64_t one = copied(1), row = copied(2) - one;
    EXPECT_EQ(row, engine.info().embedding * sizeof(float));
    EXPECT_LT(one, kRows * engine.info().embedding * sizeof(float) / 4);
    EXPECT_EQ(copied(kRows), one + (kRows - 1) * row);
}

std::string refusal(const std::filesystem::path& model) {
    try {
        test::LoadedModel layer(model, options_of_layer(64), test::plugins_up_to("reference"));
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

TEST(PredictionLayers, WhatIsNotThereIsNamed) {
    EXPECT_THAT(refusal(test::golden_model("llama-plain")),
                HasSubstr("the file has no layer that predicts further tokens: there are no tensors blk.N.nextn.*"));
    EXPECT_THAT(refusal(test::golden_model("glm4moe-air")), HasSubstr("no layer that predicts further tokens"));
}

TEST(PredictionLayers, WhatIsNotUsedIsSaid) {
    const test::TemporaryFolder folder;
    test::EditedModel model(test::golden_model("glm4moe"));
    const auto notes = [&](bool allow_unused) {
        EngineOptions options = options_of_layer(64);
        options.allow_unused = allow_unused;
        const auto path = model.write(folder.path() / "model.gguf");
        const Hardware hardware = Hardware::detect();
        const Registry registry = Registry::load(test::plugins_up_to("reference"), hardware);
        return plan_model(gguf::GgufFile::open(path), registry, hardware, options).file_notes;
    };
    EXPECT_THAT(notes(false), IsEmpty());
    const auto of_layer = model.tensors;
    for (auto tensor : of_layer) {
        if (!tensor.name.starts_with("blk.2.")) continue;
        tensor.name.replace(0, 6, "blk.3.");
        model.tensors.push_back(std::move(tensor));
    }
    model.set("glm4moe.block_count", uint32_t{4});
    model.set("glm4moe.nextn_predict_layers", uint32_t{2});
    EXPECT_THAT(notes(false), ElementsAre("of the layers that predict further tokens the first is used alone"));
    model.tensors.push_back({"blk.2.nextn.other.weight", TSR_TYPE_F32, {4}, std::vector<std::byte>(16)});
    EXPECT_THROW(notes(false), Error);
    EXPECT_THAT(notes(true), Contains(HasSubstr("blk.2.nextn.other.weight")));
}

TEST(PredictionLayers, StatesAreNeeded) {
    test::LoadedModel layer(test::golden_model("glm4moe"), options_of_layer(64), test::plugins_up_to("reference"));
    const Token token = 5;
    const SequenceId sequence = layer.engine->cache().create();
    const std::vector<float> states(layer.engine->info().embedding);
    for (const std::span<const float> given : {std::span<const float>(), std::span(states).first(3)}) {
        const BatchEntry entry{sequence, {&token, 1}, true, false, false, given};
        EXPECT_THROW(layer.engine->step({&entry, 1}), Error);
        EXPECT_EQ(layer.engine->cache().length(sequence), 0u);
    }
    const BatchEntry entry{sequence, {&token, 1}, true, false, false, states};
    EXPECT_EQ(layer.engine->step({&entry, 1}).size(), 1u);
}

}  // namespace
}  // namespace tessera
