// Finds tokens that a text contains literally.
#pragma once

#include "core/text/vocabulary.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tessera::text {

// A trie over bytes. Filled first, then any thread may search.
class SpecialTokens {
  public:
    SpecialTokens() { first_.fill(0); }

    // Of two tokens with one text, the first stays. Empty texts are ignored.
    void add(std::string_view text, Token token);

    struct Hit {
        size_t begin;
        size_t length;
        Token token;
    };

    // The leftmost token in text[from..] that `accept(const Hit&)` takes, and of those that start there the longest.
    // False: there is none.
    template <typename Accept>
    bool find(std::string_view text, size_t from, Hit& hit, const Accept& accept) const {
        for (size_t begin = from; begin < text.size(); ++begin) {
            uint32_t node = first_[static_cast<uint8_t>(text[begin])];
            hit.length = 0;
            for (size_t length = 1; node != 0; ++length) {
                const Hit found{begin, length, token_at_[node]};
                if (found.token != kNoToken && accept(found)) hit = found;
                if (begin + length == text.size()) break;
                node = child(node, static_cast<uint8_t>(text[begin + length]));
            }
            if (hit.length != 0) return true;
        }
        return false;
    }

  private:
    uint32_t child(uint32_t node, uint8_t byte) const;

    std::array<uint32_t, 256> first_;                         // node after the first byte; 0: none
    boost::unordered_flat_map<uint64_t, uint32_t> children_;  // node << 8 | byte -> node
    std::vector<Token> token_at_{kNoToken};                   // by node; node 0 is the root
};

}  // namespace tessera::text
