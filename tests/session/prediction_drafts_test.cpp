// Drafts of a model's layer of prediction: what they are, that they change no text, and that they are accepted where
// the layer knows what comes.
#include "core/session/drafts/prediction_drafts.hpp"

#include "core/base/error.hpp"
#include "core/session/generate.hpp"
#include "core/text/vocabulary_from_gguf.hpp"
#include "tests/goldens/golden_models.hpp"
#include "tests/model/edited_model.hpp"
#include "tests/session/draft_fixture.hpp"
#include "tests/support.hpp"
#include "tests/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tessera::session {
namespace {

constexpr Token kFirst = 8;  // behind control tokens

// Layers add nothing, and the output matrix has the embedding of each token in the row of the next one: a text goes on
// as numbers do. The layer of prediction gives the embedding of its token and knows as much.
std::filesystem::path predictable(const char* name, const std::filesystem::path& to) {
    test::EditedModel model(test::golden_model(name));
    const auto& embeddings = model.tensor("token_embd.weight");
    const uint64_t e = embeddings.dims[0], tokens = embeddings.dims[1];
    const size_t row = embeddings.bytes.size() / tokens;
    for (auto& tensor : model.tensors) {
        const std::string_view part =
            std::string_view(tensor.name).substr(tensor.name.rfind(".", tensor.name.size() - 8) + 1);
        if (part == "attn_output.weight" || part.starts_with("ffn_down")) std::ranges::fill(tensor.bytes, std::byte{});
        if (part == "output_norm.weight" || part == "enorm.weight" || part == "shared_head_norm.weight") {
            const std::vector<float> ones(e, 1.0f);
            std::ranges::copy(std::as_bytes(std::span(ones)), tensor.bytes.begin());
        }
        if (part == "eh_proj.weight") {
            std::ranges::fill(tensor.bytes, std::byte{});
            for (uint64_t i = 0; i < e; ++i) tensor.bytes[2 * (i * 2 * e + i) + 1] = std::byte{0x3c};  // 1 as f16
        }
        if (part == "output.weight") {
            EXPECT_EQ(tensor.type, embeddings.type);
            for (uint64_t i = kFirst; i < tokens; ++i) {
                const uint64_t next = i + 1 < tokens ? i + 1 : kFirst;
                std::copy_n(embeddings.bytes.begin() + static_cast<ptrdiff_t>(i * row), row,
                            tensor.bytes.begin() + static_cast<ptrdiff_t>(next * row));
            }
            std::fill_n(tensor.bytes.begin(), kFirst * row, std::byte{});
        }
    }
    return model.write(to);
}

// Even tokens alone.
class EvenTokens final : public TokenConstraint {
  public:
    TokenMask allowed() override { return mask_; }
    void accept(std::span<const int32_t>) override {}

  private:
    std::vector<uint32_t> mask_ = std::vector<uint32_t>(8, 0x55555500u);
};

class PredictionDraftsTest : public testing::TestWithParam<const char*> {
  protected:
    void load(const std::filesystem::path& file, uint32_t context = 1024, uint32_t layer_context = 1024) {
        EngineOptions options;
        options.context = context;
        options.rows = 96;
        options.sequences = 4;
        options.output_rows = 40;
        options.states = true;
        source_.reset();
        tokenizer_.reset();
        model_ = std::make_unique<test::LoadedModel>(file, options, test::plugins_without({}));
        tokenizer_ = std::make_unique<text::Tokenizer>(text::vocabulary_from_gguf(model_->engine->file().metadata()));
        layer_options_ = {};
        layer_options_.context = layer_context;
        layer_options_.rows = PredictionDrafts::kRows;
        layer_options_.sequences = 4;
        layer_options_.prediction = true;
        file_ = file;
        source_ = std::make_shared<PredictionDrafts>(make_layer(), tokenizer_->size(), 0.0);
    }
    std::unique_ptr<Engine> make_layer() const {
        return std::make_unique<Engine>(gguf::GgufFile::open(file_), *model_->registry, model_->hardware,
                                        layer_options_);
    }
    Engine& engine() { return *model_->engine; }

    // Of which each begins as the one before it does.
    std::vector<Asked> texts() const {
        std::vector<Asked> all;
        uint32_t state = 7;
        std::vector<Token> text;
        for (const size_t size : {5u, 23u, 60u, 140u, 100u, 33u}) {
            text.resize(std::min(text.size(), size / 2));
            while (text.size() < size) {
                state = state * 1664525 + 1013904223;
                text.push_back(kFirst + static_cast<Token>((state >> 8) % (tokenizer_->size() - kFirst)));
            }
            all.push_back({text});
        }
        return all;
    }
    std::vector<Answer> ask(Generator& generator, const std::vector<Asked>& asked) {
        std::vector<Answer> found(asked.size());
        for (size_t i = 0; i < asked.size(); ++i) {
            Request request;
            request.prompt = asked[i].prompt;
            request.sampling.temperature = 0;
            request.max_new_tokens = 24;
            request.on_finish = [&found, i](const Answer& answer) { found[i] = answer; };
            asked[i].change(request);
            generator.add(std::move(request));
        }
        generator.run();
        return found;
    }
    // Twice: the second time beginnings are in the cache.
    std::vector<Answer> ask(bool drafts, const std::vector<Asked>& asked, GeneratorCounters* counters = nullptr) {
        GeneratorOptions options;
        options.contain_errors = true;
        options.drafts.most = 5;
        options.drafts.always = true;
        if (drafts) options.drafts.sources = {source_};
        Generator generator(engine(), *tokenizer_, options);
        std::vector<Answer> found = ask(generator, asked);
        for (Answer& one : ask(generator, asked)) found.push_back(std::move(one));
        if (counters) *counters = generator.counters();
        return found;
    }
    void expect_same(const std::vector<Asked>& asked, const char* what, GeneratorCounters* counters = nullptr) {
        const std::vector<Answer> wanted = ask(false, asked), found = ask(true, asked, counters);
        for (size_t i = 0; i < wanted.size(); ++i) {
            EXPECT_EQ(found[i].tokens, wanted[i].tokens) << what << ", answer " << i;
            EXPECT_EQ(found[i].reason, wanted[i].reason) << what << " " << found[i].error;
        }
    }

    std::filesystem::path file_;
    EngineOptions layer_options_;
    std::unique_ptr<test::LoadedModel> model_;
    std::unique_ptr<text::Tokenizer> tokenizer_;
    std::shared_ptr<PredictionDrafts> source_;
};

TEST_P(PredictionDraftsTest, ChangeNoTextHoweverItIsSampled) {
    load(test::golden_model(GetParam()));
    const std::pair<const char*, std::function<void(Request&)>> ways[] = {
        {"greedy", [](Request&) {}},
        {"sampled",
         [](Request& r) {
             r.sampling.temperature = 0.7f;
             r.sampling.seed = 5;
             r.sampling.repetition_penalty = 1.2f;
         }},
        {"held to a form", [](Request& r) { r.make_constraint = [] { return std::make_unique<EvenTokens>(); }; }},
    };
    for (const auto& [what, change] : ways) {
        std::vector<Asked> asked = texts();
        for (Asked& one : asked) one.change = change;
        GeneratorCounters counters;
        expect_same(asked, what, &counters);
        EXPECT_GT(counters.drafted_tokens, 100u) << what;
    }
}

TEST_P(PredictionDraftsTest, AreAcceptedWhereTheLayerKnows) {
    const test::TemporaryFolder folder;
    load(predictable(GetParam(), folder.path() / "model.gguf"));
    GeneratorCounters counters;
    expect_same(texts(), "predictable", &counters);
    EXPECT_GT(counters.drafted_tokens, 0u);
    EXPECT_EQ(counters.accepted_tokens, counters.drafted_tokens);
    // A step without a draft, and then one token and five of a draft at once.
    EXPECT_LE(counters.steps, 12u * 5);
    // What is wanted is not what the layer foresees: every draft is cut.
    std::vector<Asked> asked = texts();
    for (Asked& one : asked)
        one.change = [](Request& r) { r.make_constraint = [] { return std::make_unique<EvenTokens>(); }; };
    expect_same(asked, "held to a form", &counters);
    EXPECT_EQ(counters.accepted_tokens, 0u);
}

TEST_P(PredictionDraftsTest, ChangeNoTextWherePagesAreFew) {
    for (const auto& [context, of_layer] : {std::pair{256u, 1024u}, {1024u, 64u}, {256u, 128u}}) {
        load(test::golden_model(GetParam()), context, of_layer);
        expect_same(texts(), "few pages");
    }
}

// Whatever steps the model takes, and whatever drafts it has verified in them.
TEST_P(PredictionDraftsTest, AreThoseOfAllPairsOfTheText) {
    load(test::golden_model(GetParam()));
    std::vector<Token> text = texts()[3].prompt;
    const size_t width = engine().info().embedding;
    std::vector<float> states;
    const SequenceId sequence = engine().cache().create();
    constexpr uint32_t kSteps[] = {50, 1, 3, 70, 1, 1, 2}, kPrompt = 124;
    for (uint32_t at = 0, step = 0; at + 1 < text.size(); ++step) {
        const uint32_t count =
            std::min<uint32_t>(kSteps[step % std::size(kSteps)], static_cast<uint32_t>(text.size()) - 1 - at);
        // In short steps the last rows are those of a draft that is not accepted.
        std::vector<Token> rows(text.begin() + at, text.begin() + at + count);
        const uint32_t wrong = count < 4 ? 2 : 0;
        for (uint32_t i = 0; i < wrong; ++i) rows.push_back(text[at + count + i] == 9 ? 10 : 9);
        const BatchEntry entry{sequence, rows, true, wrong > 0};
        engine().step({&entry, 1});
        const auto given = engine().states(0);
        ASSERT_EQ(given.size(), rows.size() * width);
        // All of a prompt is known already, of an answer one token that has not been computed before the step.
        const size_t known = std::max<size_t>(kPrompt, at + 1);
        const DraftStates computed{7, at, rows, given, std::span(text).first(known)};
        source_->computed({&computed, 1});
        engine().cache().truncate(sequence, at + count);
        states.insert(states.end(), given.begin(), given.begin() + static_cast<ptrdiff_t>(count * width));
        at += count;
        if (at >= kPrompt && at + 1 < text.size()) {
            DraftWish wish{7, std::span(text).first(at + 1), 3, {}};
            source_->propose({&wish, 1});
            EXPECT_EQ(wish.draft.size(), 3u);
        }
    }
    DraftWish wish{7, text, 4, {}};
    source_->propose({&wish, 1});
    ASSERT_EQ(wish.draft.size(), 4u);
    EXPECT_EQ(source_->computed_pairs(), text.size() - 1);

    const auto layer = make_layer();
    const SequenceId pairs = layer->cache().create();
    std::vector<Token> tokens(text.begin() + 1, text.end());
    for (size_t at = 0; at < tokens.size();) {
        const size_t count = std::min<size_t>(tokens.size() - at, PredictionDrafts::kRows);
        const BatchEntry entry{pairs, std::span(tokens).subspan(at, count),
                               true,  false,
                               false, std::span(states).subspan(at * width, count * width)};
        const auto logits = layer->step({&entry, 1}).front();
        at += count;
        if (at < tokens.size()) continue;
        const auto best = std::ranges::max_element(logits.first(tokenizer_->size())) - logits.begin();
        EXPECT_EQ(wish.draft[tokens.size() - text.size() + 1].token, best);
        if (tokens.size() + 1 - text.size() == 3) break;
        tokens.push_back(static_cast<Token>(best));
        const auto own = layer->states(0);
        states.insert(states.end(), own.begin(), own.end());
    }
}

// A text that begins as another needs no pairs anew; what the model finds in its cache and the layer lacks is left out.
TEST_P(PredictionDraftsTest, PairsOfBeginningsAreShared) {
    load(test::golden_model(GetParam()));
    const std::vector<Asked> asked = {{texts()[3].prompt}};
    GeneratorOptions options;
    options.drafts.sources = {source_};
    options.drafts.always = true;
    Generator generator(engine(), *tokenizer_, options);
    const auto first = ask(generator, asked);
    const uint64_t once = source_->computed_pairs();
    EXPECT_GE(once, asked[0].prompt.size());
    const auto second = ask(generator, asked);
    EXPECT_EQ(first[0].tokens, second[0].tokens);
    EXPECT_LE(source_->computed_pairs() - once, 40u);
}

// Where nothing is gained, the layer does not compute one prompt after the other.
TEST_P(PredictionDraftsTest, FurtherPromptsAreComputedWhereOthersHavePaid) {
    load(test::golden_model(GetParam()));
    GeneratorOptions options;
    options.drafts.sources = {source_};
    Generator generator(engine(), *tokenizer_, options);
    // Too short for a draft.
    const auto change = [](Request& r) { r.max_new_tokens = 2; };
    std::vector<Token> prompt = texts()[3].prompt;
    ask(generator, {{prompt, change}});
    const uint64_t once = source_->computed_pairs();
    EXPECT_GE(once, prompt.size() - 1);
    for (int i = 0; i < 4; ++i) {
        std::ranges::reverse(prompt);
        prompt.front() = static_cast<Token>(kFirst + i);
        ask(generator, {{prompt, change}});
    }
    EXPECT_EQ(source_->computed_pairs(), once);
    options.drafts.always = true;
    Generator always(engine(), *tokenizer_, options);
    prompt.front() = kFirst + 9;
    ask(always, {{prompt, change}});
    EXPECT_GE(source_->computed_pairs(), once + prompt.size() - 1);
}

INSTANTIATE_TEST_SUITE_P(Models, PredictionDraftsTest, testing::Values("v3-ungrouped", "glm4moe"),
                         [](const auto& instance) {
                             std::string name = instance.param;
                             std::ranges::replace(name, '-', '_');
                             return name;
                         });

}  // namespace
}  // namespace tessera::session
