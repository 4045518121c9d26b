#include "core/session/drafts/draft_control.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

namespace tessera::session {
namespace {

// Shares of accepted tokens before any is known: kinds of matches, then of models' probabilities.
constexpr std::array<double, kDraftKinds> kPriors = {0.25, 0.3, 0.5, 0.7, 0.85, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9};
constexpr double kPriorWeight = 4;   // tokens that these count as
constexpr double kOthersWeight = 2;  // tokens that the share of all requests counts as in that of one
// Of a step's time what a measured one changes: in the times of all rows and in those of its own, which are the mean of
// few.
constexpr double kGain = 0.15;
// A first measurement is believed up to so many times of what is expected.
constexpr double kCold = 1.15;
// How much less steps of more rows may seem to take than steps that were measured often; and the first of so many rows,
// which takes a little more, than steps that were measured seldom, at most so many times.
constexpr double kDisturbed = 1.1, kNothing = 0.95;
constexpr uint32_t kSeldom = 8;
// Where rows of prompts make a step long, tokens that are at least so probable are verified.
constexpr double kWorthARow = 0.3;
// What drafts promise must be more than what is not known of times.
constexpr double kWorthIt = 1.03;
// Steps with drafts after which one without is measured: it costs most of what they gain.
constexpr double kLittle = 1.3;
constexpr uint32_t kOftenMeasured = 8, kSeldomMeasured = 40;
// A token that is so likely and yet not worth a row is tried once in so many steps.
constexpr double kWorthAnother = 0.5;
constexpr uint32_t kTryAgain = 16;
// A costly source that is not worth asking is asked once in so many times.
constexpr uint32_t kAskAnyway = 64;

}  // namespace

void DraftAcceptance::observe(uint8_t kind, bool accepted) noexcept {
    tried_[kind] = tried_[kind] * keep_ + 1;
    accepted_[kind] = accepted_[kind] * keep_ + (accepted ? 1 : 0);
}

double DraftAcceptance::share(uint8_t kind, double prior, double weight) const noexcept {
    return (accepted_[kind] + prior * weight) / (tried_[kind] + weight);
}

double DraftAcceptance::share_of_models(double prior, double weight) const noexcept {
    double tried = weight, accepted = prior * weight;
    for (size_t kind = kMatchKinds; kind < kDraftKinds; ++kind) {
        tried += tried_[kind];
        accepted += accepted_[kind];
    }
    return accepted / tried;
}

double DraftAcceptance::certain_share() const noexcept {
    return std::reduce(accepted_.begin(), accepted_.end()) / (std::reduce(tried_.begin(), tried_.end()) + 2);
}

void DraftAcceptance::earn(double seconds) noexcept {
    credit_ += seconds;
    gained_ = std::max(0.0, gained_ + seconds);
}

void DraftAcceptance::spend_gained(double seconds) noexcept {
    gained_ = std::max(0.0, gained_ - seconds);
}

void DraftAcceptance::allow(double drafts, double reading) noexcept {
    credit_ += drafts;
    reading_ += reading;
}

DraftStepTimes::DraftStepTimes(std::vector<double> predicted)
    : predicted_(std::move(predicted)), shape_(predicted_.size(), 0), count_(predicted_.size(), 0) {
    // Only ratios count, and more rows never take less.
    for (size_t i = 0; i < predicted_.size(); ++i) {
        if (!(predicted_[i] > 0) || !std::isfinite(predicted_[i])) predicted_[i] = 1;
        if (i > 0) predicted_[i] = std::max(predicted_[i], predicted_[i - 1]);
    }
}

double DraftStepTimes::shape(size_t rows) const noexcept {
    const size_t at = std::clamp<size_t>(rows, 1, shape_.size()) - 1;
    if (shape_[at] > 0) return shape_[at];
    // Between those that were measured on both sides, and on from the nearest else: by what was predicted, or as far as
    // it went wrong there, by more.
    size_t below = at, above = at;
    while (below > 0 && shape_[below] == 0) --below;
    while (above + 1 < shape_.size() && shape_[above] == 0) ++above;
    const bool has_below = shape_[below] > 0, has_above = shape_[above] > 0;
    if (has_below && has_above) {
        const double share = static_cast<double>(at - below) / static_cast<double>(above - below);
        return shape_[below] + (shape_[above] - shape_[below]) * share;
    }
    if (!has_below) return has_above ? std::min(shape_[above], predicted_[at]) : predicted_[at];
    const size_t first =
        static_cast<size_t>(std::ranges::find_if(shape_, [](double s) { return s > 0; }) - shape_.begin());
    const double foreseen = predicted_[below] - predicted_[first];
    const double error = foreseen > 0 ? std::max(1.0, (shape_[below] - shape_[first]) / foreseen) : 1;
    return shape_[below] + (predicted_[at] - predicted_[below]) * error;
}

void DraftStepTimes::measured(uint32_t rows, double seconds) noexcept {
    if (rows == 0 || rows > shape_.size() || !(seconds > 0)) return;
    double& own = shape_[rows - 1];
    if (scale_ == 0) {
        own = predicted_[rows - 1];
        scale_ = seconds / own;
    } else if (own == 0) {
        // The first step of so many rows takes more than others: its code and memory are cold.
        own = std::min(seconds / scale_, kCold * shape(rows));
    } else {
        // One that was disturbed says little.
        const double found = std::clamp(seconds / (scale_ * own), 0.5, 2.0);
        const double of_few = 1.0 / (count_[rows - 1] + 1);
        if (of_few < kGain) scale_ *= std::pow(found, kGain);
        own *= std::pow(found, std::max(kGain, of_few));
    }
    ++count_[rows - 1];
    // More rows take no less: what seems to have taken more was slowed by other work, and is measured anew. Where rows
    // cost little a first measurement cannot tell that of what is well known.
    const bool first = count_[rows - 1] == 1;
    for (size_t i = 0; i + 1 < rows; ++i) {
        if (shape_[i] <= (first && count_[i] <= kSeldom ? kNothing : kDisturbed) * own) continue;
        shape_[i] = 0;
        count_[i] = 0;
        doubtful_ = true;
    }
    most_measured_ = std::max<size_t>(most_measured_, rows);
}

double DraftStepTimes::seconds(uint32_t rows) const noexcept {
    return scale_ * shape(rows);
}

uint32_t DraftStepTimes::known_rows() const noexcept {
    return static_cast<uint32_t>(std::min(2 * most_measured_, shape_.size()));
}

double DraftControl::probability(const DraftAcceptance& own, uint8_t kind) const noexcept {
    return own.share(kind, all_.share(kind, kPriors[kind], kPriorWeight), kOthersWeight);
}

// Seconds that the next draft of a request may cost: where tokens of it were seen to be right, a step.
double DraftControl::allowed(const DraftAcceptance& own) const noexcept {
    return own.credit() + (kRequestCredit + own.certain_share()) * token_seconds_;
}

void DraftControl::choose(std::span<DraftChoice> choices, uint32_t others, uint32_t rows, bool busy) {
    struct Foreseen {
        double probability;  // that it and all before it are accepted
        size_t choice;
    };
    std::vector<Foreseen> candidates;
    const double without = times_.seconds(others);
    token_seconds_ = without / std::max(others, 1u);
    for (size_t i = 0; i < choices.size(); ++i) {
        DraftChoice& choice = choices[i];
        choice.chosen = 0;
        if (!busy) choice.own->allow(kShare * token_seconds_, kReadingShare * token_seconds_);
        double all = 1;
        for (size_t j = 0; j < std::min<size_t>(choice.tokens.size(), choice.most); ++j) {
            all *= probability(*choice.own, choice.tokens[j].kind);
            candidates.push_back({all, i});
        }
    }
    std::ranges::stable_sort(candidates, std::greater(), &Foreseen::probability);
    // A row of so many costs its request so much.
    const auto can_pay = [&](size_t choice, uint32_t count, double cost) {
        return cost * (choices[choice].chosen + 1) / count <= allowed(*choices[choice].own);
    };
    std::vector<size_t> taken;  // choices of those that can be paid
    size_t best = 0;
    if (busy) {
        for (const Foreseen& one : candidates) {
            if (one.probability >= kWorthARow && taken.size() < rows) taken.push_back(one.choice);
        }
        best = taken.size();
    } else if (times_.any() && drafted_ < (gain_ < kLittle ? kOftenMeasured : kSeldomMeasured)) {
        std::vector<bool> ended(choices.size(), false);
        double tokens = others, most = kWorthIt * tokens / without;
        for (const Foreseen& one : candidates) {
            const auto count = static_cast<uint32_t>(taken.size() + 1);
            const double seconds = times_.seconds(others + count);
            if (count > rows || others + count > times_.known_rows() || seconds - without > credit_) break;
            if (ended[one.choice] || !can_pay(one.choice, count, seconds - without)) {
                ended[one.choice] = true;
                continue;
            }
            ++choices[one.choice].chosen;
            taken.push_back(one.choice);
            tokens += one.probability;
            if (tokens / seconds > most) {
                most = tokens / seconds;
                best = count;
                gain_ = most * without / others;
            }
        }
        for (DraftChoice& choice : choices) choice.chosen = 0;
    }
    // What is not worth it by times that were disturbed would never be measured again.
    const double another = times_.seconds(others + 1) - without;
    if (best == 0 && !busy && times_.any() && rows > 0 && !candidates.empty() &&
        candidates[0].probability >= kWorthAnother && can_pay(candidates[0].choice, 1, another) &&
        ++refused_ >= kTryAgain && another <= credit_) {
        refused_ = 0;
        best = 1;
        taken = {candidates[0].choice};
    }
    for (const size_t choice : std::span(taken).first(best)) ++choices[choice].chosen;
    uint32_t all = 0;
    for (DraftChoice& choice : choices) {
        if (choice.chosen < choice.least) choice.chosen = 0;
        all += choice.chosen;
    }
    if (busy || all == 0) return;
    const double row = (times_.seconds(others + all) - without) / all;
    for (const DraftChoice& choice : choices) choice.own->earn(-row * choice.chosen);
}

uint32_t DraftControl::worth_asking(const DraftAcceptance& own, uint32_t others, uint32_t most) {
    if (!times_.any() || most == 0) return 0;
    const double prior = all_.share_of_models(kPriors[kMatchKinds + 3], kPriorWeight);
    const double share = own.share_of_models(prior, kOthersWeight);
    const double token = times_.seconds(others) / std::max(others, 1u);  // what one is worth
    uint32_t count = 0;
    double spent = 0;
    for (double all = share; count < most; ++count, all *= share) {
        const double cost = asking_ + times_.seconds(others + count + 1) - times_.seconds(others + count);
        // A token that cannot be verified afterwards is not worth asking for.
        spent += cost;
        if (all * token <= cost || spent > allowed(own)) break;
    }
    // Before it is known what a token takes, one is asked for.
    if (count > 0) return asking_ == 0 ? 1 : count;
    if (++unasked_ < kAskAnyway || credit_ < kMostCredit / 2 * token) return 0;
    unasked_ = 0;
    return 1;
}

double DraftControl::reading_seconds(uint32_t tokens) const noexcept {
    return tokens * (reading_ > 0 ? reading_ : kFirstReading * times_.seconds(1));
}

bool DraftControl::pay_reading(DraftAcceptance& own, uint32_t tokens) noexcept {
    const double seconds = reading_seconds(tokens);
    if (own.reading() >= seconds) {
        own.allow(0, -seconds);
        return true;
    }
    if (std::max(own.gained(), gained_) < seconds) return false;
    // What the request has gained is part of what all have.
    own.spend_gained(seconds);
    gained_ = std::max(0.0, gained_ - seconds);
    return true;
}

uint32_t DraftControl::may_read(DraftAcceptance& own, const DraftUnread& unread) noexcept {
    if (unread.whole <= kReadAtOnce) {
        own.paid_tokens = 0;
        return kReadAtOnce;
    }
    // The answer has grown since they were paid for.
    if (own.paid_tokens > 0) return std::max(own.paid_tokens, unread.whole);
    if (pay_reading(own, unread.whole)) return own.paid_tokens = unread.whole;
    if (unread.rest <= kReadAtOnce) return kReadAtOnce;
    const double payable = own.reading() / reading_seconds(1);
    const auto part = static_cast<uint32_t>(std::clamp<double>(payable, kShortestPart, kLongestPart));
    const uint32_t tokens = std::min(part, unread.rest);
    return pay_reading(own, tokens) ? tokens : 0;
}

void DraftControl::read(DraftAcceptance& own, uint32_t allowed, uint32_t tokens, double seconds) noexcept {
    // What is left of a whole text is read by further calls.
    const uint32_t paid = own.paid_tokens > 0 ? std::min(own.paid_tokens, tokens) : allowed;
    own.paid_tokens -= std::min(own.paid_tokens, tokens);
    own.allow(0, reading_seconds(paid) - seconds);
    if (tokens > 0) reading_ += (seconds / tokens - reading_) * (reading_ == 0 ? 1 : kGain);
}

void DraftControl::observe(DraftAcceptance& own, uint8_t kind, bool accepted) noexcept {
    own.observe(kind, accepted);
    all_.observe(kind, accepted);
}

void DraftControl::finished(uint32_t sequences, uint32_t drafted, uint32_t accepted, double seconds) noexcept {
    if (sequences == 0) return;
    const bool first = !times_.any();
    times_.measured(sequences + drafted, seconds);
    // What is to be measured anew is, by a step without drafts: the next, or this one.
    const bool doubt = times_.take_doubt();
    drafted_ = drafted == 0 ? 0 : doubt ? kSeldomMeasured : drafted_ + 1;
    const double without = times_.seconds(sequences);
    if (first) credit_ = kFirstCredit * without;
    credit_ += kShare * seconds;
    const double verified = drafted > 0 ? without * (1 + static_cast<double>(accepted) / sequences) - seconds : 0;
    const double gained = verified - std::exchange(asked_, 0);
    credit_ = std::min(credit_ + gained, kMostCredit * without);
    owed_ = std::max(0.0, owed_ - std::max(0.0, gained));
    passed(seconds);
    // As much as one request may lose by a text that was read for nothing.
    gained_ = std::clamp(gained_ + gained, 0.0, kMostCredit * without);
}

void DraftControl::asked(uint32_t tokens, double seconds) noexcept {
    asked_ += seconds;
    if (tokens == 0) return;
    const double each = seconds / tokens;
    asking_ += (each - asking_) * (asking_ == 0 ? 1 : kGain);
}

}  // namespace tessera::session
