// Ends a text where one of several strings appears in it, while the text is still being written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::session {

// Holds back the end of the text for as long as it may be the beginning of a stop string; everything else is passed on
// at once. All strings are searched together (Aho and Corasick, CACM 18(6), 1975): time is linear in the text, whatever
// their number. The match that ends first wins; of several that end together, the one that began first. One stream
// each; not for several threads at once.
class StopStrings {
  public:
    // Throws Error(TSR_INVALID_ARGUMENT) for an empty string.
    explicit StopStrings(std::span<const std::string> strings);

    // Takes the next part of the text and appends what is safe to show to `out`. True: a stop string is complete; it
    // and all after it are dropped, and nothing is taken until reset().
    bool push(std::string_view part, std::string& out);

    // The text is over: appends what was held back.
    void finish(std::string& out);

    // For a new text.
    void reset();

    bool stopped() const noexcept { return match_ >= 0; }
    // Which of the strings was found; -1: none.
    int match() const noexcept { return match_; }

  private:
    struct Node {
        std::vector<std::pair<uint8_t, uint32_t>> children;  // by byte, rising
        uint32_t fail = 0;                                   // the longest proper suffix that begins a string, too
        uint32_t depth = 0;
        int match = -1;  // the longest string that ends here
        uint32_t match_size = 0;
    };

    uint32_t child(uint32_t node, uint8_t byte) const;
    uint32_t step(uint32_t node, uint8_t byte) const;

    std::vector<Node> nodes_;
    uint32_t state_ = 0;
    std::string held_;  // the text of the current state: the last nodes_[state_].depth bytes
    int match_ = -1;
};

}  // namespace tessera::session
