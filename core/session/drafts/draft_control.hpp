// How long drafts are: what was measured of acceptance and of steps decides.
#pragma once

#include "core/session/drafts/draft_source.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tessera::session {

// How often tokens of each kind were what the model chose, each behind others that were; and of one request, what its
// drafts may cost.
class DraftAcceptance {
  public:
    // `memory`: how many tokens of a kind count about.
    explicit DraftAcceptance(double memory) : keep_(1 - 1 / memory) {}

    void observe(uint8_t kind, bool accepted) noexcept;
    // The share, with `prior` as that of `weight` tokens more.
    double share(uint8_t kind, double prior, double weight) const noexcept;
    // The same of all kinds of models.
    double share_of_models(double prior, double weight) const noexcept;
    bool any_of_models() const noexcept;
    // The share of all tokens, with two more that were not accepted: what is known for certain.
    double certain_share() const noexcept;

    // Seconds that drafts gave and cost.
    void earn(double seconds) noexcept { credit_ += seconds; }
    double credit() const noexcept { return credit_; }

  private:
    double keep_;
    double credit_ = 0;
    std::array<double, kDraftKinds> tried_{}, accepted_{};
};

// What steps of generation take by their rows: what the plan predicts, corrected by what was measured.
class DraftStepTimes {
  public:
    // `predicted`: seconds of steps with 1 row, 2 rows and so on, not empty; steps with more count as the last.
    explicit DraftStepTimes(std::vector<double> predicted);

    void measured(uint32_t rows, double seconds) noexcept;
    bool any() const noexcept { return scale_ > 0; }
    // 0 before anything was measured.
    double seconds(uint32_t rows) const noexcept;
    // How many rows may be tried: twice as many as the most that were measured.
    uint32_t known_rows() const noexcept;

  private:
    double shape(size_t rows) const noexcept;

    std::vector<double> predicted_, shape_;  // by rows - 1; in shape_, 0: not measured
    std::vector<uint32_t> count_;            // of measured steps
    double scale_ = 0;                       // seconds for one of shape_
    size_t most_measured_ = 0;
};

// Of one request in a step: what was foreseen of it, and how much of that is to be verified.
struct DraftChoice {
    DraftAcceptance* own;
    std::span<const DraftToken> tokens;
    uint32_t most;       // that may be verified
    uint32_t least = 1;  // fewer are not worth the request's while
    uint32_t chosen = 0;
};

// Decides so that drafts never cost more than kShare of the time: what they cost beyond what they gave is counted, of
// all and of each request, whose answer may be short; those that might exceed it are not made. Of one generator, in its
// thread.
class DraftControl {
  public:
    static constexpr double kShare = 0.02;
    // Steps that drafts may cost at the beginning, and at most when they gave much before.
    static constexpr double kFirstCredit = 1, kMostCredit = 10;
    // Steps that those of a request may cost of which nothing is known.
    static constexpr double kRequestCredit = 0.05;
    // Of the time, what may go to reading texts of which no draft has gained.
    static constexpr double kReadingShare = 0.01;
    // Tokens of each kind by which a request's share of accepted ones is known.
    static constexpr double kMemory = 12;

    // `predicted`: as of DraftStepTimes.
    explicit DraftControl(std::vector<double> predicted) : times_(std::move(predicted)) {}

    // Sets `chosen` of each. `others`: rows of generation in the step besides; `rows`: those that may be added.
    // `busy`: the step has rows of prompts, beside which a few more take little. Now and then nothing is chosen, so
    // that steps without drafts are measured, too.
    void choose(std::span<DraftChoice> choices, uint32_t others, uint32_t rows, bool busy);

    // How many tokens a costly source is worth being asked for, at most `most`.
    uint32_t worth_asking(const DraftAcceptance& own, uint32_t others, uint32_t most);

    // Whether a costly source may read a text that it does not know: what reading others took has been gained, or is a
    // small share of the time.
    bool may_read() const noexcept { return read_ <= 0; }
    void read(double seconds) noexcept { read_ += seconds; }

    // Of a draft of this request, since choose().
    void accepted(DraftAcceptance& own, uint32_t tokens) const noexcept { own.earn(tokens * token_seconds_); }

    // What became of a token that was foreseen, whether it was verified or not.
    void observe(DraftAcceptance& own, uint8_t kind, bool accepted) noexcept;

    // A step of `sequences` that generate, and of nothing else, took so long; `drafted` and `accepted`: tokens of all.
    void finished(uint32_t sequences, uint32_t drafted, uint32_t accepted, double seconds) noexcept;
    // Whether it is known what a token of a costly source takes.
    bool knows_asking() const noexcept { return asking_ > 0; }
    // A costly source took so long for so many tokens of drafts of texts that it knows.
    void asked(uint32_t tokens, double seconds) noexcept;

    const DraftStepTimes& times() const noexcept { return times_; }

  private:
    double allowed(const DraftAcceptance& own) const noexcept;
    double probability(const DraftAcceptance& own, uint8_t kind) const noexcept;

    DraftAcceptance all_{200};
    DraftStepTimes times_;
    double gain_ = 1;           // that the last drafts promised
    uint32_t refused_ = 0;      // steps for which likely tokens were not worth it
    uint32_t drafted_ = 0;      // steps with drafts since one without was measured
    double credit_ = 0;         // seconds that drafts may cost
    double asking_ = 0;         // seconds of the costly source for a token; 0: not known
    double asked_ = 0;          // seconds of it that the next step's drafts have cost
    uint32_t unasked_ = 0;      // times that it was not worth asking, since it was asked
    double read_ = 0;           // seconds in which texts were read, and nothing has been gained for yet
    double token_seconds_ = 0;  // what a token took in the last step, without drafts
};

}  // namespace tessera::session
