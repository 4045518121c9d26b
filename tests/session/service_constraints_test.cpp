// Constraints of answers: what they decide, force and are late with.
#include "core/base/error.hpp"
#include "tests/session/service_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

namespace tessera::session {
namespace {

// Lets every answer alternate between two tokens, and counts.
class TwoTokens final : public TokenConstraint {
  public:
    TwoTokens(size_t vocabulary, uint32_t& accepted) : mask_(vocabulary / 32 + 1), accepted_(accepted) {}
    TokenMask allowed() override {
        if (accepted_ == 5) fail(TSR_INVALID_ARGUMENT, "nothing fits any more");
        std::ranges::fill(mask_, 0u);
        mask_[2 + accepted_ % 2] = 1u << 7;
        return mask_;
    }
    void accept(std::span<const int32_t> tokens) override {
        ASSERT_EQ(tokens.size(), 1u);
        EXPECT_EQ(tokens[0], static_cast<int32_t>(32 * (2 + accepted_ % 2) + 7));
        ++accepted_;
    }

  private:
    std::vector<uint32_t> mask_;
    uint32_t& accepted_;
};

TEST_F(ServiceTest, ConstraintsDecideEachToken) {
    load(64 + 3, 4, 4096);
    Result free, alone;
    std::vector<Result> found(3);
    std::vector<uint32_t> accepted(found.size());
    uint32_t made_constraints = 0;
    serve({}, [&](Service& service) { service.submit(request(question(1), alone, 4)); });
    const ServiceStatus status = serve({}, [&](Service& service) {
        for (size_t i = 0; i < found.size(); ++i) {
            Request made = request(question(static_cast<int>(i)), found[i], i == 2 ? 40 : 4);
            made.make_constraint = [&, i] {
                EXPECT_EQ(accepted[i], 0u);
                return std::make_unique<TwoTokens>(tokenizer_->size(), accepted[i]);
            };
            service.submit(std::move(made));
        }
        Request broken = request(question(3), free, 4);
        broken.make_constraint = [&]() -> std::unique_ptr<TokenConstraint> {
            ++made_constraints;
            fail(TSR_UNSUPPORTED, "no such grammar");
        };
        service.submit(std::move(broken));
    });
    const std::vector<Token> expected = {71, 103, 71, 103};
    for (size_t i = 0; i < 2; ++i) {
        const Answer& answer = found[i].answer;
        EXPECT_EQ(std::vector<Token>(answer.tokens.begin() + answer.prompt_tokens, answer.tokens.end()), expected);
        EXPECT_EQ(accepted[i], 4u);
    }
    // What cannot go on ends its own request alone.
    EXPECT_EQ(found[2].answer.reason, FinishReason::kFailed);
    EXPECT_EQ(found[2].answer.error, "nothing fits any more");
    EXPECT_EQ(free.answer.error, "no such grammar");
    EXPECT_EQ(made_constraints, 1u);
    EXPECT_EQ(status.counters.failed, 2u);
    Result after;
    serve({}, [&](Service& service) { service.submit(request(question(1), after, 4)); });
    EXPECT_EQ(after.text, alone.text);
}

// Forces the tokens of a text in chunks, between tokens that are free, and is late with each.
class Forcing final : public TokenConstraint {
  public:
    Forcing(std::span<const Token> text, size_t chunk, size_t late) : text_(text), chunk_(chunk), late_(late) {}

    bool wait(std::chrono::steady_clock::time_point until) override {
        if (waited_++ >= late_) return true;
        std::this_thread::sleep_until(until);
        return false;
    }
    std::span<const Token> forced() override {
        const size_t left = std::min(chunk_, text_.size() - at_);
        return waited_ > late_ ? text_.subspan(at_, left) : std::span<const Token>();
    }
    TokenMask allowed() override { return {}; }
    void accept(std::span<const Token> tokens) override {
        at_ = std::min(at_ + tokens.size(), text_.size());
        waited_ = 0;
    }

  private:
    const std::span<const Token> text_;
    const size_t chunk_, late_;
    size_t at_ = 0, waited_ = 0;
};

// What is forced is computed in steps of many rows and changes nothing of what follows; constraints that are late hold
// up nobody else.
TEST_F(ServiceTest, ForcedTokensAreRowsOfOneStep) {
    load(64 + 3, 4, 4096);
    const std::vector<Token> text = tokenizer_->encode("The sea is deep and the sky is wide, and so it goes on.");
    ASSERT_GT(text.size(), 8u);
    const auto answer_of = [&](size_t chunk, size_t late, uint64_t& steps, bool probabilities) {
        Result forced, beside;
        const ServiceStatus status = serve({}, [&](Service& service) {
            Request made = request(question(1), forced, static_cast<uint32_t>(text.size()) + 6);
            made.make_constraint = [&, chunk, late] { return std::make_unique<Forcing>(text, chunk, late); };
            if (probabilities) made.probabilities = 0;
            for (const Token end : tokenizer_->generation_ends())
                made.sampling.logit_bias.emplace_back(end, -std::numeric_limits<float>::infinity());
            service.submit(std::move(made));
            service.submit(request(question(2), beside, 4));
        });
        steps = status.counters.steps;
        EXPECT_EQ(forced.answer.reason, FinishReason::kLength) << forced.answer.error;
        EXPECT_EQ(beside.answer.new_tokens, 4u);
        return std::vector<Token>(forced.answer.tokens.begin() + forced.answer.prompt_tokens,
                                  forced.answer.tokens.end());
    };
    uint64_t one_by_one = 0, together = 0, late = 0, scored = 0;
    const std::vector<Token> expected = answer_of(1, 0, one_by_one, false);
    ASSERT_EQ(expected.size(), text.size() + 6);
    EXPECT_TRUE(std::equal(text.begin(), text.end(), expected.begin()));
    EXPECT_EQ(answer_of(8, 0, together, false), expected);
    EXPECT_EQ(answer_of(8, 3, late, false), expected);
    EXPECT_EQ(answer_of(8, 0, scored, true), expected);
    EXPECT_LE(together + text.size() - text.size() / 8 - 2, one_by_one);
    EXPECT_EQ(scored, one_by_one) << "each token with its probabilities";
}

// Known when `known`, which is told until when it is waited for, says so.
class Late final : public TokenConstraint {
  public:
    using TimePoint = std::chrono::steady_clock::time_point;
    explicit Late(std::function<bool(TimePoint)> known) : known_(std::move(known)) {}

    bool wait(TimePoint until) override {
        if (known_(until)) return true;
        std::this_thread::sleep_until(until);
        return false;
    }
    TokenMask allowed() override { return {}; }
    void accept(std::span<const Token>) override {}

  private:
    const std::function<bool(TimePoint)> known_;
};

TEST_F(ServiceTest, AStepWaitsForLateConstraintsTogether) {
    load(256, 4, 4096);
    Generator generator(engine(), *tokenizer_, {});
    std::mutex mutex;
    std::vector<Late::TimePoint> waited;
    std::vector<Result> found(4);
    for (size_t i = 0; i < found.size(); ++i) {
        Request made = request(question(static_cast<int>(i % 3)), found[i], 4);
        made.make_constraint = [&] {
            return std::make_unique<Late>([&](Late::TimePoint until) {
                const std::scoped_lock lock(mutex);
                waited.push_back(until);
                return false;
            });
        };
        generator.add(std::move(made));
    }
    while (waited.empty()) ASSERT_TRUE(generator.step());
    EXPECT_EQ(waited, std::vector(found.size(), waited.front()));
    generator.cancel_all();
}

TEST_F(ServiceTest, ALateConstraintHoldsUpNoOther) {
    load(256, 4, 4096);
    Generator generator(engine(), *tokenizer_, {});
    Result never, soon;
    Request made = request(question(1), never, 4);
    made.make_constraint = [] { return std::make_unique<Late>([](Late::TimePoint) { return false; }); };
    generator.add(std::move(made));
    made = request(question(2), soon, 1);
    made.make_constraint = [] {
        // Late for its step, and known when it is waited for again.
        return std::make_unique<Late>([asked = 0, known = false](Late::TimePoint until) mutable {
            known = known || (until > std::chrono::steady_clock::now() && ++asked > 1);
            return known;
        });
    };
    generator.add(std::move(made));
    for (int i = 0; i < 10 && soon.order == 0; ++i) ASSERT_TRUE(generator.step());
    EXPECT_EQ(soon.answer.new_tokens, 1u);
    generator.cancel_all();
    EXPECT_EQ(never.answer.reason, FinishReason::kCancelled);
}

}  // namespace
}  // namespace tessera::session
