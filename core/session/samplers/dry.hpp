// DRY, "don't repeat yourself" (p-e-w, text-generation-webui pull request 5677): penalises tokens that would continue
// a repetition of what was accepted, the more the longer it is. A repetition does not extend over sequence breakers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace tessera::session {

// Tokens, or sequences of some, that hold a text over which no repetition extends.
class SequenceBreakers {
  public:
    // `token` begins a sequence that `tail` ends; an empty one: it is a breaker alone. Tokens are not negative.
    void add(int32_t token, std::vector<int32_t> tail);

    bool empty() const noexcept { return alone_.empty() && sequences_.empty(); }
    bool alone(int32_t token) const noexcept {
        return static_cast<size_t>(token) < alone_.size() && alone_[static_cast<size_t>(token)];
    }
    // Length of the longest tail; 0 if there is none.
    size_t longest_tail() const noexcept { return longest_tail_; }
    // Of the sequences that `token` begins and that `after`, what follows it, holds to their end: the tokens after
    // `token` of the longest; -1 if there is none.
    ptrdiff_t match(int32_t token, std::span<const int32_t> after) const noexcept;

  private:
    std::vector<bool> alone_;                                          // by token
    std::vector<std::pair<int32_t, std::vector<int32_t>>> sequences_;  // in rising order
    size_t longest_tail_ = 0;
};

class Dry {
  public:
    // `base` >= 1, `window` > 0: how many of the last tokens are looked at. `breakers` may be null.
    Dry(float multiplier, float base, int32_t allowed_length, size_t window, size_t vocabulary_size,
        std::shared_ptr<const SequenceBreakers> breakers);

    void accept(int32_t token);
    void reset() noexcept;

    // Finds what would continue a repetition, in time linear in the window. Call it before penalized().
    void find_repetitions();
    float penalized(int32_t token, float logit) const noexcept;

  private:
    std::span<const int32_t> window() const noexcept;
    // How long a repetition may be at most: up to the last breaker.
    size_t limit() const noexcept;

    double multiplier_, base_;
    size_t allowed_length_, window_size_;
    std::shared_ptr<const SequenceBreakers> breakers_;
    // The last tokens are at the end; when it is full they move to the front.
    std::vector<int32_t> tokens_;
    size_t end_ = 0;
    // Of the last breaker: tokens accepted since its first one, and how many of these belong to it.
    size_t since_breaker_;
    size_t breaker_tail_ = 0;
    std::vector<uint32_t> overlaps_;  // scratch of find_repetitions()
    std::vector<int32_t> repeats_;    // by token: length of the longest repetition that it would continue; -1: none
    std::vector<int32_t> found_;      // tokens of which it is not -1
};

}  // namespace tessera::session
