// How long drafts are: what was measured of acceptance and of steps decides.
#pragma once

#include "core/session/drafts/draft_source.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tessera::session {

// How often tokens of each kind were what the model chose, each behind others that were; and of one request, what its
// drafts may cost: its accounts.
class DraftAcceptance {
  public:
    // `memory`: how many tokens of a kind count about.
    explicit DraftAcceptance(double memory) : keep_(1 - 1 / memory) {}

    void observe(uint8_t kind, bool accepted) noexcept;
    // The share, with `prior` as that of `weight` tokens more.
    double share(uint8_t kind, double prior, double weight) const noexcept;
    // The same of all kinds of models.
    double share_of_models(double prior, double weight) const noexcept;
    // The share of all tokens, with two more that were not accepted: what is known for certain.
    double certain_share() const noexcept;

    // Seconds that drafts gave and cost.
    void earn(double seconds) noexcept;
    // Of its time, what drafts and what reading may cost.
    void allow(double drafts, double reading) noexcept;
    double credit() const noexcept { return credit_; }

    // Seconds that may go to reading its text, and those that its drafts have gained and reading has not cost.
    double reading() const noexcept { return reading_; }
    double gained() const noexcept { return gained_; }
    void spend_gained(double seconds) noexcept;
    // Tokens of its text that have been paid for and not read.
    uint32_t paid_tokens = 0;

  private:
    double keep_;
    double credit_ = 0, reading_ = 0, gained_ = 0;
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
    // Whether what was measured of fewer rows, since the last call, has turned out wrong.
    bool take_doubt() noexcept { return std::exchange(doubtful_, false); }
    // How many rows may be tried: twice as many as the most that were measured.
    uint32_t known_rows() const noexcept;

  private:
    double shape(size_t rows) const noexcept;

    std::vector<double> predicted_, shape_;  // by rows - 1; in shape_, 0: not measured
    std::vector<uint32_t> count_;            // of measured steps
    double scale_ = 0;                       // seconds for one of shape_
    size_t most_measured_ = 0;
    bool doubtful_ = false;
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
// all and of each request, whose answer may be short; those that might exceed it are not made.
//
// Reading a text, which a source does before its drafts, is not part of that. It is paid for, before it is done, with
// kReadingShare of the request's time, its prompt's included, or with what drafts have gained: those of the request, or
// of all. What pays for no more reads a part of the text, so that it is seen whether drafts are right; gains pay for
// the whole. Of one generator, in its thread.
class DraftControl {
  public:
    static constexpr double kShare = 0.02;
    // Steps that drafts may cost at the beginning, and at most when they gave much before.
    static constexpr double kFirstCredit = 1, kMostCredit = 10;
    // Steps that those of a request may cost of which nothing is known.
    static constexpr double kRequestCredit = 0.05;
    // Of a request's time, what may go to reading its text.
    static constexpr double kReadingShare = 0.01;
    // Tokens of a text whose reading is part of asking for a draft; of a part that is worth reading, at least and at
    // most.
    static constexpr uint32_t kReadAtOnce = 16, kShortestPart = 32, kLongestPart = 256;
    // Of a step, what reading a token takes before it was measured.
    static constexpr double kFirstReading = 1.0 / 64;
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

    // The request's prompt took so long.
    static void prompt(DraftAcceptance& own, double seconds) noexcept { own.allow(0, kReadingShare * seconds); }
    // How many tokens of a text may be read: at most kReadAtOnce, or so many that are paid for. 0: the source is not to
    // be asked.
    uint32_t may_read(DraftAcceptance& own, const DraftUnread& unread) noexcept;
    // That took so long for `tokens` of the `allowed` ones, more than kReadAtOnce.
    void read(DraftAcceptance& own, uint32_t allowed, uint32_t tokens, double seconds) noexcept;

    // Whether a source may compute a further prompt beside the model, which cannot be put off: what that took of others
    // has been gained since, or is kReadingShare of the time.
    bool may_compute() const noexcept { return owed_ <= 0; }
    void computed(double seconds) noexcept { owed_ += seconds; }
    // Time of the model's, of which a share pays for that.
    void passed(double seconds) noexcept { owed_ = std::max(0.0, owed_ - kReadingShare * seconds); }

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
    double reading_seconds(uint32_t tokens) const noexcept;
    bool pay_reading(DraftAcceptance& own, uint32_t tokens) noexcept;

    DraftAcceptance all_{200};
    DraftStepTimes times_;
    double gain_ = 1;           // that the last drafts promised
    uint32_t refused_ = 0;      // steps for which likely tokens were not worth it
    uint32_t drafted_ = 0;      // steps with drafts since one without was measured
    double credit_ = 0;         // seconds that drafts may cost
    double asking_ = 0;         // seconds of the costly source for a token; 0: not known
    double asked_ = 0;          // seconds of it that the next step's drafts have cost
    uint32_t unasked_ = 0;      // times that it was not worth asking, since it was asked
    double reading_ = 0;        // seconds for a token of a text that is read; 0: not known
    double gained_ = 0;         // seconds that drafts have gained, without what has been spent on reading
    double owed_ = 0;           // seconds in which prompts were computed that nothing has paid for yet
    double token_seconds_ = 0;  // what a token took in the last step, without drafts
};

}  // namespace tessera::session
