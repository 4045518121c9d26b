#include "core/session/samplers/dry.hpp"

#include "core/session/samplers/candidates.hpp"
#include "core/session/sampling_math.hpp"

#include <algorithm>
#include <limits>

namespace tessera::session {
namespace {
constexpr size_t kNever = std::numeric_limits<size_t>::max();
}

void SequenceBreakers::add(int32_t token, std::vector<int32_t> tail) {
    if (tail.empty()) {
        const auto at = static_cast<size_t>(token);
        if (at >= alone_.size()) alone_.resize(at + 1);
        alone_[at] = true;
        return;
    }
    longest_tail_ = std::max(longest_tail_, tail.size());
    std::pair<int32_t, std::vector<int32_t>> entry(token, std::move(tail));
    const auto place = std::ranges::lower_bound(sequences_, entry);
    if (place == sequences_.end() || *place != entry) sequences_.insert(place, std::move(entry));
}

ptrdiff_t SequenceBreakers::match(int32_t token, std::span<const int32_t> after) const noexcept {
    ptrdiff_t longest = alone(token) ? 0 : -1;
    const auto by_token = [](const auto& entry) { return entry.first; };
    for (auto at = std::ranges::lower_bound(sequences_, token, {}, by_token);
         at != sequences_.end() && at->first == token; ++at) {
        const std::vector<int32_t>& tail = at->second;
        if (tail.size() <= after.size() && std::ranges::equal(tail, after.first(tail.size())))
            longest = std::max(longest, static_cast<ptrdiff_t>(tail.size()));
    }
    return longest;
}

Dry::Dry(float multiplier, float base, int32_t allowed_length, size_t window, size_t vocabulary_size,
         std::shared_ptr<const SequenceBreakers> breakers)
    : multiplier_(static_cast<double>(multiplier)),
      base_(static_cast<double>(base)),
      allowed_length_(static_cast<size_t>(allowed_length)),
      window_size_(window),
      breakers_(std::move(breakers)),
      tokens_(2 * window),
      overlaps_(window),
      repeats_(vocabulary_size, -1) {
    found_.reserve(std::min(window, vocabulary_size));
    reset();
}

void Dry::reset() noexcept {
    end_ = 0;
    since_breaker_ = kNever;
    breaker_tail_ = 0;
    for (const int32_t token : found_) repeats_[static_cast<size_t>(token)] = -1;
    found_.clear();
}

std::span<const int32_t> Dry::window() const noexcept {
    const size_t count = std::min(end_, window_size_);
    return std::span(tokens_).subspan(end_ - count, count);
}

void Dry::accept(int32_t token) {
    if (end_ == tokens_.size()) {
        std::copy(tokens_.end() - static_cast<ptrdiff_t>(window_size_), tokens_.end(), tokens_.begin());
        end_ = window_size_;
    }
    tokens_[end_++] = token;
    if (!breakers_) return;
    if (since_breaker_ != kNever) ++since_breaker_;
    // Only sequences that end here can be new: those that begin at most a tail before.
    const std::span<const int32_t> text = window();
    const size_t reach = std::min(text.size(), breakers_->longest_tail() + 1);
    for (size_t back = 0; back < reach; ++back) {
        const size_t at = text.size() - 1 - back;
        const ptrdiff_t tail = breakers_->match(text[at], text.subspan(at + 1));
        if (tail < 0) continue;
        since_breaker_ = back;
        breaker_tail_ = static_cast<size_t>(tail);
        return;
    }
}

size_t Dry::limit() const noexcept {
    const size_t count = window().size();
    return since_breaker_ < count ? since_breaker_ - breaker_tail_ : count;
}

void Dry::find_repetitions() {
    for (const int32_t token : found_) repeats_[static_cast<size_t>(token)] = -1;
    found_.clear();
    const std::span<const int32_t> text = window();
    const size_t longest = limit();
    if (text.size() <= allowed_length_ || longest < allowed_length_) return;
    // The Z-algorithm over the text read backwards: overlaps_[k] is the length of the common part of the text's end and
    // of the end of the text without its last k tokens, `longest` at most. [left, right) is the overlap found so far
    // that reaches farthest back.
    const auto back = [&](size_t i) { return text[text.size() - 1 - i]; };
    size_t left = 0, right = 0;
    for (size_t k = 1; k < text.size(); ++k) {
        size_t length = k < right ? std::min<size_t>(overlaps_[k - left], right - k) : 0;
        if (k + length >= right) {
            while (length < longest && k + length < text.size() && back(length) == back(k + length)) ++length;
            if (k + length > right) {
                left = k;
                right = k + length;
            }
        }
        overlaps_[k] = static_cast<uint32_t>(length);
        if (length < allowed_length_) continue;
        const int32_t next = back(k - 1);  // followed there, and would continue here
        if (breakers_ && breakers_->alone(next)) continue;
        int32_t& repeat = repeats_[static_cast<size_t>(next)];
        if (repeat < 0) found_.push_back(next);
        repeat = std::max(repeat, static_cast<int32_t>(length));
    }
}

float Dry::penalized(int32_t token, float logit) const noexcept {
    const int32_t repeat = repeats_[static_cast<size_t>(token)];
    if (repeat < 0) return logit;
    constexpr auto kLargest = static_cast<double>(std::numeric_limits<float>::max());
    const double power =
        std::min(whole_power(base_, static_cast<uint32_t>(repeat) - static_cast<uint32_t>(allowed_length_)), kLargest);
    return static_cast<float>(std::clamp(static_cast<double>(logit) - multiplier_ * power, -kLargest, kLargest));
}

}  // namespace tessera::session
