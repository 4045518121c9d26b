// Hidden states behind the final norm are those that transformers recorded, on the CPU and on simulated GPUs, and
// change no logits; pooled, they are the same whatever else is computed.
#include "core/base/error.hpp"
#include "core/session/generate.hpp"
#include "core/text/vocabulary_from_gguf.hpp"
#include "tests/goldens/golden.hpp"
#include "tests/run/simulated_rig.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kRows = 64;

EngineOptions options_of(uint32_t context, bool hidden) {
    EngineOptions options;
    options.context = context;
    options.rows = kRows;
    options.sequences = 4;
    options.hidden_states = hidden;
    options.cache_type_k = options.cache_type_v = TSR_TYPE_F32;
    options.check_order = true;
    return options;
}

std::vector<std::vector<float>> states_of(Engine& engine, const std::vector<int32_t>& tokens) {
    std::vector<std::vector<float>> states;
    const SequenceId sequence = engine.cache().create();
    for (size_t at = 0; at < tokens.size();) {
        const size_t count = std::min<size_t>(tokens.size() - at, at == 0 ? 7 : kRows);
        const BatchEntry entry{sequence, std::span(tokens).subspan(at, count), true, true, true};
        for (const auto row : engine.step({&entry, 1})) states.emplace_back(row.begin(), row.end());
        at += count;
    }
    engine.cache().remove(sequence);
    return states;
}

void expect_recorded_states(const test::Golden& golden, Engine& engine, double tolerance) {
    const auto states = states_of(engine, golden.tokens);
    const auto recorded = test::values_of<float>(golden.file, "hidden");
    const auto positions = test::values_of<int32_t>(golden.file, "hidden_positions");
    const size_t width = engine.info().embedding, layers = recorded.size() / width / positions.size();
    double worst = 0, largest = 0;
    for (size_t i = 0; i < positions.size(); ++i) {
        const auto position = static_cast<size_t>(positions[i]);
        if (golden.router_margin[position] < 1e-3f) continue;
        ASSERT_EQ(states[position].size(), width);
        for (size_t k = 0; k < width; ++k) {
            const float expected = recorded[(i * layers + layers - 1) * width + k];
            largest = std::max(largest, std::abs(double{expected}));
            worst = std::max(worst, std::abs(double{expected} - double{states[position][k]}));
        }
    }
    std::printf("    largest difference %.2e of the largest value (limit %.0e)\n", worst / largest, tolerance);
    EXPECT_GT(largest, 0);
    EXPECT_LE(worst, tolerance * largest);
}

std::vector<std::string> short_goldens() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(TSR_SOURCE_DIR "/tests/goldens")) {
        const std::string name = entry.path().filename().string();
        if (name.ends_with(".short.golden.gguf")) names.push_back(name.substr(0, name.find('.')));
    }
    std::ranges::sort(names);
    return names;
}

test::Golden golden_of(const std::string& name) {
    return test::Golden(fs::path(TSR_SOURCE_DIR "/tests/goldens") / (name + ".short.golden.gguf"));
}

class HiddenStates : public testing::TestWithParam<std::string> {};

TEST_P(HiddenStates, AreAsRecorded) {
    const test::Golden golden = golden_of(GetParam());
    const auto context = static_cast<uint32_t>(golden.tokens.size());
    test::LoadedModel model(golden.model, options_of(context, true), test::plugins_up_to("reference"));
    ASSERT_TRUE(model.engine->gives_hidden_states());
    expect_recorded_states(golden, *model.engine, 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Recorded, HiddenStates, testing::ValuesIn(short_goldens()), [](const auto& instance) {
    std::string name = instance.param;
    std::ranges::replace_if(
        name, [](unsigned char c) { return !std::isalnum(c); }, '_');
    return name;
});

TEST(HiddenStatesOnCards, AreAsRecordedAndLogitsToo) {
    const test::Golden golden = golden_of("v3-groups");
    EngineOptions options = options_of(static_cast<uint32_t>(golden.tokens.size()), true);
    options.placement.tensor_split = {1, 1};
    test::LoadedModel model(golden.model, options, test::rig_config({860, 860}));
    for (int i = 0; i < 2; ++i) {
        expect_recorded_states(golden, *model.engine, 1e-2);
        const SequenceId sequence = model.engine->cache().create();
        const auto logits = model.engine->prefill(
            sequence, std::span(golden.tokens).first(static_cast<size_t>(golden.positions[20]) + 1));
        for (size_t k = 0; k < logits.size(); ++k)
            ASSERT_NEAR(logits[k], golden.logits[20 * logits.size() + k], 1e-2 * golden.largest);
        model.engine->cache().remove(sequence);
    }
}

TEST(HiddenStatesOfAnEngine, ChangeNoLogits) {
    const test::Golden golden = golden_of("qwen3moe-norm");
    const auto context = static_cast<uint32_t>(golden.tokens.size());
    std::vector<std::vector<float>> logits;
    for (const bool hidden : {false, true}) {
        test::LoadedModel model(golden.model, options_of(context, hidden), test::plugins_up_to("cpu_avx2"));
        const SequenceId sequence = model.engine->cache().create();
        const auto last = model.engine->prefill(sequence, golden.tokens);
        logits.emplace_back(last.begin(), last.end());
    }
    EXPECT_EQ(logits[0], logits[1]);
}

TEST(HiddenStatesOfAnEngine, AreRefusedWhereTheyWereNotAskedFor) {
    const test::Golden golden = golden_of("llama-gqa");
    const std::span<const Token> tokens = std::span(golden.tokens).first(3);
    test::LoadedModel without(golden.model, options_of(256, false), test::plugins_up_to("reference"));
    EXPECT_FALSE(without.engine->gives_hidden_states());
    const BatchEntry hidden{without.engine->cache().create(), tokens, true, true, true};
    EXPECT_THROW(without.engine->step({&hidden, 1}), Error);
    test::LoadedModel with(golden.model, options_of(256, true), test::plugins_up_to("reference"));
    PagedCache& cache = with.engine->cache();
    const BatchEntry both[] = {{cache.create(), tokens, true, true, true}, {cache.create(), tokens, true}};
    EXPECT_THROW(with.engine->step(both), Error);
    const BatchEntry many{cache.create(), std::span(golden.tokens).first(5), true, true};
    EXPECT_THROW(with.engine->step({&many, 1}), Error) << "logits of more rows than output_rows";
}

class Pooled : public testing::Test {
  protected:
    Pooled()
        : golden_(golden_of("llama-gqa")),
          model_(golden_.model, options_of(512, true), test::plugins_up_to("reference")),
          tokenizer_(text::vocabulary_from_gguf(model_.engine->file().metadata())),
          generator_(*model_.engine, tokenizer_) {}

    session::Request request(size_t count, session::Pooling pooling, std::vector<float>& result) {
        session::Request made;
        made.prompt.assign(golden_.tokens.begin(), golden_.tokens.begin() + static_cast<std::ptrdiff_t>(count));
        made.pooling = pooling;
        made.reuse = pooling == session::Pooling::kLast;
        made.on_finish = [&result](const session::Answer& answer) {
            EXPECT_EQ(answer.reason, session::FinishReason::kEmbedded);
            result = answer.embedding;
        };
        return made;
    }

    static void expect_near(const std::vector<float>& a, const std::vector<float>& b) {
        ASSERT_EQ(a.size(), b.size());
        for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5) << i;
    }

    test::Golden golden_;
    test::LoadedModel model_;
    text::Tokenizer tokenizer_;
    session::Generator generator_;
};

// Of causal attention: what the last token's state is does not depend on what follows.
TEST_F(Pooled, AMeanIsThatOfAllTokensStates) {
    constexpr size_t kTokens = 150;  // of several steps
    const auto states = states_of(*model_.engine, golden_.tokens);
    std::vector<float> mean, last;
    generator_.add(request(kTokens, session::Pooling::kMean, mean));
    generator_.add(request(kTokens, session::Pooling::kLast, last));
    generator_.run();
    expect_near(last, states[kTokens - 1]);
    std::vector<float> expected;
    for (size_t k = 0; k < mean.size(); ++k) {
        double sum = 0;
        for (size_t i = 0; i < kTokens; ++i) sum += double{states[i][k]};
        expected.push_back(static_cast<float>(sum / kTokens));
    }
    expect_near(mean, expected);
}

TEST_F(Pooled, CompanyChangesNothing) {
    std::vector<Token> answers[2];
    std::vector<float> means[2], lasts[2];
    const auto talk = [&](std::vector<Token>& answer) {
        session::Request made;
        made.prompt.assign(golden_.tokens.begin(), golden_.tokens.begin() + 40);
        made.sampling.temperature = 0;
        made.max_new_tokens = 20;
        made.on_finish = [&answer](const session::Answer& given) { answer = given.tokens; };
        return made;
    };
    generator_.add(talk(answers[0]));
    generator_.run();
    generator_.add(request(100, session::Pooling::kMean, means[0]));
    generator_.run();
    generator_.add(request(70, session::Pooling::kLast, lasts[0]));
    generator_.run();
    // More than fit into the cache at once: some give up their pages and are computed again.
    generator_.add(talk(answers[1]));
    std::vector<float> others[6];
    for (std::vector<float>& other : others) generator_.add(request(150, session::Pooling::kMean, other));
    generator_.add(request(100, session::Pooling::kMean, means[1]));
    generator_.add(request(70, session::Pooling::kLast, lasts[1]));
    generator_.run();
    EXPECT_EQ(answers[0], answers[1]);
    expect_near(means[0], means[1]);
    expect_near(lasts[0], lasts[1]);
    for (const std::vector<float>& other : others) EXPECT_EQ(other, others[0]);
}

TEST_F(Pooled, AMeanOfWhatIsReusedIsRefused) {
    std::vector<float> unused;
    session::Request made = request(5, session::Pooling::kMean, unused);
    made.reuse = true;
    EXPECT_THROW(generator_.add(std::move(made)), Error);
}

}  // namespace
}  // namespace tessera
