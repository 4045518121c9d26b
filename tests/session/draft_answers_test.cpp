// With drafts answers are, token by token, what they are without them.
#include "core/base/error.hpp"
#include "core/session/drafts/drafting.hpp"
#include "core/session/drafts/model_drafts.hpp"
#include "core/session/drafts/ngram_drafts.hpp"
#include "core/session/generate.hpp"
#include "core/session/task.hpp"
#include "core/text/vocabulary_from_gguf.hpp"
#include "tests/captured_log.hpp"
#include "tests/session/draft_fixture.hpp"
#include "tests/support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace tessera::session {
namespace {

struct Found {
    Answer answer;
    std::string text;
    std::vector<std::string> parts;  // of the text, by token
    std::vector<TokenProbabilities> probabilities;
};

class Drafts : public testing::Test {
  protected:
    void load(const std::filesystem::path& file, uint32_t context = 2048, uint32_t sequences = 4, uint32_t rows = 128) {
        EngineOptions options;
        options.context = context;
        options.rows = rows;
        options.sequences = sequences;
        options.output_rows = std::min(rows, 8 * sequences + 8);
        tokenizer_.reset();
        model_ = std::make_unique<test::LoadedModel>(file, options, test::plugins_without({}));
        tokenizer_ = std::make_unique<text::Tokenizer>(text::vocabulary_from_gguf(engine().file().metadata()));
    }
    void SetUp() override { load(TSR_TEST_MODEL); }
    Engine& engine() { return *model_->engine; }

    static GeneratorOptions with(std::shared_ptr<DraftSource> source, uint32_t most = 7) {
        GeneratorOptions options;
        options.contain_errors = true;
        if (source) options.drafts.sources = {std::move(source)};
        options.drafts.most = most;
        options.drafts.always = true;
        return options;
    }

    Asked question(const std::string& text) const {
        return {
            tokenizer_->encode("<｜User｜>" + text + "<｜Assistant｜>", {.add_special = true, .parse_special = true})};
    }
    std::vector<Asked> questions() const {
        std::vector<Asked> all;
        for (const char* text : {"Count from 1 to 9 in German.", "Repeat: box box key box.", "What is 3 plus 4?",
                                 "Say hello 5 times.", "Count from 1 to 10 in French.", "What is the key of box 7?"})
            all.push_back(question(text));
        return all;
    }

    // All of them at once.
    std::vector<Found> ask(Generator& generator, const std::vector<Asked>& asked) {
        std::vector<Found> found(asked.size());
        for (size_t i = 0; i < asked.size(); ++i) {
            Request request;
            request.prompt = asked[i].prompt;
            request.sampling.temperature = 0;
            request.max_new_tokens = 40;
            request.on_text = [&found, i](std::string_view text) { found[i].text += text; };
            request.on_token = [&found, i](const ShownToken& token, const Answer&) {
                found[i].parts.emplace_back(token.text);
                if (token.probabilities) found[i].probabilities.push_back(*token.probabilities);
            };
            request.on_finish = [&found, i](const Answer& answer) { found[i].answer = answer; };
            asked[i].change(request);
            generator.add(std::move(request));
        }
        generator.run();
        return found;
    }
    std::vector<Found> ask(const GeneratorOptions& options, const std::vector<Asked>& asked,
                           GeneratorCounters* counters = nullptr) {
        std::vector<Found> found;
        {
            Generator generator(engine(), *tokenizer_, options);
            found = ask(generator, asked);
            if (counters) *counters = generator.counters();
            EXPECT_EQ(engine().cache().free_pages() + generator.prefixes().size(), engine().cache().page_count());
        }
        EXPECT_EQ(engine().cache().free_pages(), engine().cache().page_count());
        return found;
    }
    static void expect_same(const std::vector<Found>& found, const std::vector<Found>& wanted,
                            const std::string& what) {
        ASSERT_EQ(found.size(), wanted.size());
        for (size_t i = 0; i < found.size(); ++i) {
            const std::string which = what + ", answer " + std::to_string(i);
            EXPECT_EQ(found[i].answer.tokens, wanted[i].answer.tokens) << which;
            EXPECT_EQ(found[i].answer.reason, wanted[i].answer.reason) << which << " " << found[i].answer.error;
            EXPECT_EQ(found[i].answer.error, wanted[i].answer.error) << which;
            EXPECT_EQ(found[i].answer.new_tokens, wanted[i].answer.new_tokens) << which;
            EXPECT_EQ(found[i].text, wanted[i].text) << which;
            EXPECT_EQ(found[i].parts, wanted[i].parts) << which;
            ASSERT_EQ(found[i].probabilities.size(), wanted[i].probabilities.size()) << which;
            for (size_t j = 0; j < found[i].probabilities.size(); ++j) {
                EXPECT_EQ(found[i].probabilities[j].token, wanted[i].probabilities[j].token) << which;
                EXPECT_EQ(found[i].probabilities[j].log_probability, wanted[i].probabilities[j].log_probability);
                EXPECT_EQ(found[i].probabilities[j].best, wanted[i].probabilities[j].best);
            }
        }
    }
    std::shared_ptr<ToldDrafts> told(const std::vector<Found>& answers, double share) const {
        auto drafts = std::make_shared<ToldDrafts>(share, 300, 3);
        for (const Found& one : answers) drafts->tell(one.answer.tokens);
        return drafts;
    }

    std::unique_ptr<test::LoadedModel> model_;
    std::unique_ptr<text::Tokenizer> tokenizer_;
};

TEST_F(Drafts, ChangeNoTextHoweverItIsSampled) {
    const std::vector<std::pair<const char*, std::function<void(Request&)>>> ways = {
        {"greedy", [](Request&) {}},
        {"sampled",
         [](Request& r) {
             r.sampling.temperature = 0.9f;
             r.sampling.seed = 5;
         }},
        {"warm",
         [](Request& r) {
             r.sampling.temperature = 1.5f;
             r.sampling.min_p = 0;
             r.sampling.seed = 11;
         }},
        {"penalties and DRY",
         [](Request& r) {
             r.sampling.repetition_penalty = 1.3f;
             r.sampling.presence_penalty = 0.2f;
             r.sampling.dry_multiplier = 0.8f;
         }},
        {"xtc",
         [](Request& r) {
             r.sampling.temperature = 1;
             r.sampling.xtc_probability = 0.5f;
             r.sampling.seed = 3;
         }},
        {"mirostat",
         [](Request& r) {
             r.sampling.temperature = 1;
             r.sampling.mirostat = 2;
             r.sampling.seed = 4;
         }},
        {"adaptive",
         [](Request& r) {
             r.sampling.temperature = 1;
             r.sampling.adaptive_target = 0.4f;
             r.sampling.seed = 9;
         }},
        {"probabilities",
         [](Request& r) {
             r.sampling.temperature = 0.7f;
             r.probabilities = 3;
             r.sampled_probabilities = true;
         }},
        {"without end",
         [](Request& r) {
             r.sampling.logit_bias = {{1, -1e9f}};
         }},
    };
    for (const auto& [way, change] : ways) {
        std::vector<Asked> asked = questions();
        for (Asked& one : asked) one.change = change;
        const std::vector<Found> wanted = ask(with(nullptr), asked);
        for (const double share : {1.0, 0.6, 0.0}) {
            GeneratorCounters counters;
            expect_same(ask(with(told(wanted, share)), asked, &counters), wanted,
                        std::string(way) + ", " + std::to_string(share) + " told");
            EXPECT_GT(counters.drafted_tokens, 20u) << way;
            if (share == 1.0) {
                EXPECT_GT(counters.accepted_tokens, 20u) << way;
            }
        }
        expect_same(ask(with(std::make_shared<NgramDrafts>()), asked), wanted, std::string(way) + ", n-grams");
    }
}

TEST_F(Drafts, TakeFewerSteps) {
    std::vector<Asked> asked = {question("Count from 1 to 10 in French.")};
    GeneratorCounters without, counters;
    const std::vector<Found> wanted = ask(with(nullptr), asked, &without);
    const auto source = told(wanted, 1);
    const std::vector<Found> found = ask(with(source, 4), asked, &counters);
    expect_same(found, wanted, "all told");
    const uint32_t tokens = wanted[0].answer.new_tokens;
    ASSERT_GT(tokens, 12u);
    // The first token comes with the prompt, and behind the last there is nothing to tell.
    EXPECT_LE(counters.steps, 1 + (tokens - 1 + 4) / 5 + 1);
    EXPECT_EQ(counters.generated_tokens, without.generated_tokens);
    EXPECT_EQ(found[0].answer.accepted_tokens, counters.accepted_tokens);
    EXPECT_EQ(found[0].answer.drafted_tokens, counters.drafted_tokens);
    EXPECT_GE(counters.accepted_tokens, (tokens - 1) * 3 / 5);
    EXPECT_EQ(wanted[0].answer.drafted_tokens, 0u);
    EXPECT_EQ(source->forgotten, 1u);
    // A request may want none, or shorter ones.
    asked[0].change = [](Request& r) { r.drafts.most = 0; };
    expect_same(ask(with(told(wanted, 1)), asked, &counters), wanted, "none wanted");
    EXPECT_EQ(counters.drafted_tokens, 0u);
    EXPECT_EQ(counters.steps, without.steps);
    asked[0].change = [](Request& r) { r.drafts.most = 1; };
    expect_same(ask(with(told(wanted, 1)), asked, &counters), wanted, "one wanted");
    EXPECT_GE(counters.steps, 1 + (tokens - 1) / 2);
    EXPECT_LT(counters.steps, without.steps);
}

TEST_F(Drafts, EndWhereAnswersEnd) {
    std::vector<Asked> asked;
    for (uint32_t length = 0; length < 12; ++length) {
        asked.push_back(question("Count from 1 to 10 in German."));
        asked.back().change = [length](Request& r) { r.max_new_tokens = length; };
    }
    for (const char* stop : {"ei", "r, f", "zwei, drei, vier"}) {
        asked.push_back(question("Count from 1 to 10 in German."));
        asked.back().change = [stop](Request& r) { r.stop = StopStrings(std::vector<std::string>{stop}); };
    }
    for (uint32_t more = 0; more < 9; ++more) {
        asked.push_back(question("Count from 1 to 10 in German."));
        asked.back().change = [more, size = asked.back().prompt.size()](Request& r) {
            r.context = static_cast<uint32_t>(size) + more;
        };
    }
    const std::vector<Asked> whole = {question("Count from 1 to 10 in German.")};
    const std::vector<Found> wanted = ask(with(nullptr), asked), all = ask(with(nullptr), whole);
    expect_same(ask(with(told(all, 1)), asked), wanted, "all told");
    expect_same(ask(with(told(all, 0.7)), asked), wanted, "most told");
    EXPECT_TRUE(
        std::ranges::any_of(wanted, [](const Found& f) { return f.answer.reason == FinishReason::kStopString; }));
    EXPECT_TRUE(
        std::ranges::any_of(wanted, [](const Found& f) { return f.answer.reason == FinishReason::kContextFull; }));
}

TEST_F(Drafts, AreNotRemembered) {
    const std::vector<Asked> first = {question("Count from 1 to 10 in German.")};
    Generator plain(engine(), *tokenizer_, with(nullptr));
    const std::vector<Found> wanted = ask(plain, first);
    const auto more = [&](const std::vector<Found>& answers) {
        Asked next = first[0];
        next.prompt = answers[0].answer.tokens;
        const std::vector<Token> rest = question("And what is 3 plus 9?").prompt;
        next.prompt.insert(next.prompt.end(), rest.begin(), rest.end());
        return std::vector<Asked>{next};
    };
    const std::vector<Found> wanted_next = ask(plain, more(wanted));
    for (const double share : {1.0, 0.5, 0.0}) {
        Generator generator(engine(), *tokenizer_, with(told(wanted, share)));
        expect_same(ask(generator, first), wanted, "first");
        const std::vector<Found> next = ask(generator, more(wanted));
        expect_same(next, wanted_next, "what goes on from it");
        EXPECT_GE(next[0].answer.reused_tokens, wanted_next[0].answer.reused_tokens);
    }
}

// Few pages, so that requests give them up to each other, and steps with little room for drafts.
TEST_F(Drafts, AreCutWherePagesAndRowsAreFew) {
    std::vector<Asked> asked;
    for (int i = 0; i < 3; ++i) {
        for (Asked& one : questions()) {
            one.change = [i](Request& r) {
                r.client = std::to_string(i);
                r.max_new_tokens = 60;
                r.sampling.logit_bias = {{1, -1e9f}};  // no end
            };
            asked.push_back(std::move(one));
        }
    }
    load(TSR_TEST_MODEL, 256, 4, 67);
    std::vector<Found> wanted;
    for (const Asked& one : asked) wanted.push_back(ask(with(nullptr), {one})[0]);
    GeneratorCounters counters;
    expect_same(ask(with(told(wanted, 0.8)), asked, &counters), wanted, "company");
    EXPECT_GT(counters.accepted_tokens, 100u);
    EXPECT_GT(counters.preempted, 0u);
}

TEST_F(Drafts, OfAWindow) {
    load(TSR_GOLDENS "/qwen3-window.gguf", 1024, 3);
    std::vector<Asked> asked;
    std::mt19937 random(2);
    for (uint32_t i = 0; i < 6; ++i) {
        Asked one;
        for (uint32_t j = 0; j < 20 + 60 * i; ++j) one.prompt.push_back(static_cast<Token>(4 + random() % 266));
        one.change = [](Request& r) { r.max_new_tokens = 90; };
        asked.push_back(std::move(one));
    }
    const std::vector<Found> wanted = ask(with(nullptr), asked);
    for (const double share : {1.0, 0.7}) {
        GeneratorCounters counters;
        expect_same(ask(with(told(wanted, share), 15), asked, &counters), wanted, "a window");
        EXPECT_GT(counters.accepted_tokens, 100u);
    }
}

class ModelDraftsTest : public Drafts {
  protected:
    // The same model, or, with fewer experts, one that often goes on otherwise.
    void load_draft(bool same, uint32_t context, double least = 0) {
        EngineOptions options;
        options.context = context;
        options.rows = 64;
        options.sequences = 4;
        if (!same) options.experts = {1, 1.0f};
        auto loaded = std::make_shared<test::LoadedModel>(TSR_TEST_MODEL, options, test::plugins_without({}));
        drafts_ = std::make_shared<ModelDrafts>(std::move(loaded->engine), tokenizer_->size(), least);
        // What the engine needs outlives it.
        held_.push_back(std::move(loaded));
    }
    void TearDown() override { drafts_.reset(); }

    std::vector<std::shared_ptr<test::LoadedModel>> held_;
    std::shared_ptr<ModelDrafts> drafts_;
};

TEST_F(ModelDraftsTest, ChangeNoText) {
    std::vector<Asked> asked;
    for (int i = 0; i < 2; ++i) {
        for (Asked& one : questions()) asked.push_back(std::move(one));
    }
    for (size_t i = 6; i < asked.size(); ++i) {
        asked[i].change = [i](Request& r) {
            r.sampling.temperature = 1;
            r.sampling.seed = i;
        };
    }
    const std::vector<Found> wanted = ask(with(nullptr), asked);
    for (const bool same : {true, false}) {
        for (const uint32_t context : {1024u, 128u}) {
            load_draft(same, context);
            GeneratorCounters counters;
            expect_same(ask(with(drafts_), asked, &counters), wanted, "a model");
            EXPECT_GT(counters.accepted_tokens, same && context > 200 ? 100u : 10u) << same << " " << context;
            EXPECT_LT(counters.accepted_tokens, counters.drafted_tokens);
            drafts_.reset();
        }
    }
}

TEST_F(ModelDraftsTest, AreWhatTheModelItselfSays) {
    load_draft(true, 1024);
    std::vector<Asked> asked = questions();
    GeneratorCounters counters;
    const std::vector<Found> wanted = ask(with(nullptr), asked);
    const std::vector<Found> found = ask(with(drafts_), asked, &counters);
    expect_same(found, wanted, "the same model");
    // All but what was drafted behind ends.
    EXPECT_GE(counters.accepted_tokens + 8 * asked.size(), counters.drafted_tokens);
    // Conversations go on from what is there.
    const uint64_t computed = drafts_->computed_tokens();
    for (size_t i = 0; i < asked.size(); ++i) {
        asked[i].prompt = found[i].answer.tokens;
        const std::vector<Token> more = question("And 2 plus 2?").prompt;
        asked[i].prompt.insert(asked[i].prompt.end(), more.begin(), more.end());
    }
    const std::vector<Found> next = ask(with(nullptr), asked);
    expect_same(ask(with(drafts_), asked), next, "what goes on");
    uint64_t prompts = 0;
    for (const Found& one : next) prompts += one.answer.prompt_tokens;
    EXPECT_LT(drafts_->computed_tokens() - computed, prompts + 40 * asked.size());
    // With sources in turn the first is asked first.
    GeneratorOptions both = with(std::make_shared<NgramDrafts>());
    both.drafts.sources.push_back(drafts_);
    expect_same(ask(both, asked), next, "both");
    // Unlikely tokens end a draft.
    load_draft(true, 1024, 1.0);
    (void)ask(with(drafts_), asked, &counters);
    EXPECT_LT(counters.drafted_tokens, 40u);
}

// Reads parts of texts, and the whole now and then.
class Parts final : public DraftSource {
  public:
    explicit Parts(std::shared_ptr<ModelDrafts> model) : model_(std::move(model)) {}

    void propose(std::span<DraftWish> wishes) override {
        for (DraftWish& wish : wishes) {
            wish.may_read = ++asked_ % 11 == 0 ? UINT32_MAX : 16;
            const DraftUnread unread = model_->unread(wish);
            gaps += wish.may_read < unread.whole ? 1 : 0;
        }
        model_->propose(wishes);
    }
    void forget(RequestId id) noexcept override { model_->forget(id); }
    bool is_costly() const noexcept override { return true; }

    uint32_t gaps = 0;

  private:
    std::shared_ptr<ModelDrafts> model_;
    uint32_t asked_ = 0;
};

TEST_F(ModelDraftsTest, OfPartsOfTextsChangeNoText) {
    std::vector<Asked> asked = questions();
    const std::vector<Token> before = question("Repeat: box key tree box key tree key key box box tree.").prompt;
    for (size_t i = 0; i < asked.size(); ++i) {
        asked[i].prompt.insert(asked[i].prompt.begin(), before.begin(), before.end());
        if (i % 2 == 0) continue;
        asked[i].change = [i](Request& r) {
            r.sampling.temperature = 1;
            r.sampling.seed = i;
        };
    }
    const std::vector<Found> wanted = ask(with(nullptr), asked);
    for (const uint32_t context : {1024u, 256u}) {
        load_draft(true, context);
        GeneratorCounters counters;
        const auto parts = std::make_shared<Parts>(drafts_);
        expect_same(ask(with(parts), asked, &counters), wanted, "parts");
        EXPECT_GT(parts->gaps, 10u);
        EXPECT_GT(counters.accepted_tokens, 10u);
        EXPECT_LT(counters.accepted_tokens, counters.drafted_tokens);
    }
}

// Wherever the text of one request is the beginning of another's, which it goes on from.
TEST(ModelDraftsOfWindows, ShareBeginningsOfAnyLength) {
    EngineOptions options;
    options.context = 1024;
    options.rows = 256;
    options.sequences = 2;
    test::LoadedModel loaded(TSR_GOLDENS "/qwen3-window.gguf", options, test::plugins_without({}));
    ModelDrafts drafts(std::move(loaded.engine), 270, 0);
    std::vector<Token> text(210);
    for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<Token>(4 + i % 266);
    const auto ask = [&](RequestId id, size_t tokens) {
        DraftWish wish;
        wish.id = id;
        wish.tokens = std::span(text).first(tokens);
        wish.most = 2;
        drafts.propose({&wish, 1});
        return wish.draft.size();
    };
    EXPECT_EQ(ask(1, text.size()), 2u);
    for (size_t tokens = 130; tokens < 200; ++tokens) {
        EXPECT_EQ(ask(2, tokens), 2u) << tokens;
        drafts.forget(2);
    }
    drafts.forget(1);
}

// Takes its time, and foresees something of the first request, or of none.
class OfTheFirst final : public DraftSource {
  public:
    void propose(std::span<DraftWish> wishes) override {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        asked += static_cast<uint32_t>(wishes.size());
        for (DraftWish& wish : wishes) {
            if (wish.id == 1 && foresees) wish.draft.assign(wish.most, {5, kMatchKinds + 3});
        }
    }
    void forget(RequestId) noexcept override {}
    bool is_costly() const noexcept override { return true; }

    uint32_t asked = 0;
    bool foresees = true;
};

TEST_F(Drafts, ArePaidForByWhoGetsThem) {
    const auto source = std::make_shared<OfTheFirst>();
    Drafting drafting(engine(), {.sources = {source}, .most = 7});
    // Steps of a second, to which rows add little.
    for (const uint32_t drafted : {0u, 0u, 1u, 2u, 3u, 5u, 7u}) drafting.finished(2, drafted, drafted, 1);
    std::vector<std::unique_ptr<Task>> tasks;
    std::vector<Task*> both;
    for (const RequestId id : {RequestId{1}, RequestId{2}}) {
        Request request;
        request.prompt = {1, 2, 3};
        tasks.push_back(std::make_unique<Task>(std::move(request), id, *tokenizer_, 2048));
        tasks.back()->acceptance.earn(10);
        both.push_back(tasks.back().get());
    }
    // What requests are allowed in a step is less than half of what a call takes.
    std::vector<double> before;
    const auto make = [&] {
        before = {both[0]->acceptance.credit(), both[1]->acceptance.credit()};
        drafting.make(both, {2, 14, false, 0});
    };
    make();
    make();
    ASSERT_EQ(source->asked, 4u);
    ASSERT_FALSE(both[0]->foreseen.empty());
    EXPECT_LT(both[0]->acceptance.credit(), before[0]);
    EXPECT_GT(both[1]->acceptance.credit(), before[1]);
    source->foresees = false;
    make();
    ASSERT_EQ(source->asked, 6u);
    EXPECT_LT(both[0]->acceptance.credit(), before[0]);
    EXPECT_LT(both[1]->acceptance.credit(), before[1]);
}

// A source that fails is asked no more.
class Failing final : public DraftSource {
  public:
    void propose(std::span<DraftWish>) override {
        ++asked;
        fail(TSR_DOES_NOT_FIT, "no memory for drafts");
    }
    void forget(RequestId) noexcept override {}
    std::string_view name() const noexcept override { return "a crystal ball"; }
    uint32_t asked = 0;
};

TEST_F(Drafts, OfASourceThatFailsAreNotMissed) {
    CapturedLog log;
    const std::vector<Asked> asked = questions();
    const std::vector<Found> wanted = ask(with(nullptr), asked);
    const auto source = std::make_shared<Failing>();
    expect_same(ask(with(source), asked), wanted, "a failure");
    EXPECT_EQ(source->asked, 1u);
    EXPECT_THAT(
        log.text(),
        testing::HasSubstr("drafts of a crystal ball are no longer made, answers stay the same: no memory for drafts"));
}

// A form may fail with any error where a draft is held to it.
class Broken final : public TokenConstraint {
  public:
    bool wait(std::chrono::steady_clock::time_point) override { return true; }
    std::span<const int32_t> forced() override {
        if (count_ > 3) throw std::length_error("broken");
        return {};
    }
    TokenMask allowed() override { return {}; }
    void accept(std::span<const int32_t> tokens) override { count_ += tokens.size(); }

  private:
    size_t count_ = 0;
};

TEST_F(Drafts, OfAFormThatBreaksEndNoProcess) {
    std::vector<Asked> asked = {question("Count from 1 to 9 in German.")};
    const std::shared_ptr<ToldDrafts> source = told(ask(with(nullptr), asked), 1);
    asked[0].change = [](Request& request) { request.make_constraint = [] { return std::make_unique<Broken>(); }; };
    Generator generator(engine(), *tokenizer_, with(source));
    EXPECT_THROW(ask(generator, asked), std::length_error);
}

TEST_F(Drafts, NeedTheSameVocabulary) {
    check_same_vocabulary(*tokenizer_, *tokenizer_);
    const gguf::GgufFile file = gguf::GgufFile::open(TSR_GOLDENS "/qwen3-window.gguf");
    const text::Tokenizer other(text::vocabulary_from_gguf(file.metadata()));
    try {
        check_same_vocabulary(*tokenizer_, other);
        FAIL() << "another vocabulary";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_UNSUPPORTED);
        EXPECT_NE(std::string(error.what()).find("the same vocabulary"), std::string::npos) << error.what();
    }
}

// As long as it is worth it, by measured times: whatever these are, the texts are the same.
TEST_F(Drafts, AsLongAsTheyGain) {
    const std::vector<Asked> asked = questions();
    const std::vector<Found> wanted = ask(with(nullptr), asked);
    for (const double share : {1.0, 0.5}) {
        GeneratorOptions options = with(told(wanted, share));
        options.drafts.always = false;
        expect_same(ask(options, asked), wanted, "as long as they gain");
    }
}

// Allows, after each token, one half of the vocabulary by what came before, and is late now and then.
class Halves final : public TokenConstraint {
  public:
    Halves(size_t vocabulary, uint32_t fails_at, bool late)
        : mask_(vocabulary / 32 + 1), vocabulary_(vocabulary), fails_at_(fails_at), late_(late) {}
    bool wait(std::chrono::steady_clock::time_point) override { return !late_ || waited_++ % 3 != 1; }
    std::span<const int32_t> forced() override {
        // Three tokens now and then.
        if (count_ % 7 != 5) return {};
        const auto base = static_cast<int32_t>(state_ % 200);
        forced_ = {40 + base, 41 + base, 42 + base};
        return forced_;
    }
    TokenMask allowed() override {
        if (count_ >= fails_at_) fail(TSR_INVALID_ARGUMENT, "nothing fits any more");
        for (size_t i = 0; i < mask_.size(); ++i)
            mask_[i] = static_cast<uint32_t>((state_ + i) * 2654435761u) | 1u << i % 32;
        mask_[0] |= 2u;
        return mask_;
    }
    void accept(std::span<const int32_t> tokens) override {
        for (const int32_t token : tokens) {
            state_ = state_ * 31 + static_cast<uint32_t>(token);
            ++count_;
        }
    }

  private:
    std::vector<uint32_t> mask_;
    std::vector<int32_t> forced_;
    size_t vocabulary_;
    uint32_t fails_at_;
    bool late_;
    uint32_t state_ = 7, count_ = 0, waited_ = 0;
};

TEST_F(Drafts, KeepToAForm) {
    for (const bool late : {false, true}) {
        for (const uint32_t fails_at : {1000u, 9u}) {
            std::vector<Asked> asked = questions();
            for (size_t i = 0; i < asked.size(); ++i) {
                asked[i].change = [this, late, fails_at, i](Request& r) {
                    if (i % 2) r.sampling.temperature = 1;
                    if (i == 3) r.probabilities = 2;
                    r.make_constraint = [this, late, fails_at] {
                        return std::make_unique<Halves>(tokenizer_->size(), fails_at, late);
                    };
                };
            }
            const std::vector<Found> wanted = ask(with(nullptr), asked);
            for (const double share : {1.0, 0.5}) {
                GeneratorCounters counters;
                expect_same(ask(with(told(wanted, share)), asked, &counters), wanted,
                            "late " + std::to_string(late) + ", told " + std::to_string(share));
                if (share == 1.0) {
                    EXPECT_GT(counters.accepted_tokens, late || fails_at < 10 ? 5u : 20u);
                }
            }
        }
    }
}

}  // namespace
}  // namespace tessera::session
