// Byte-pair merging by rank: of all neighbours that some merge joins, the best-ranked pair is joined first (the
// leftmost of equals), until none is left. Sennrich et al., arXiv:1508.07909; on bytes as in GPT-2.
#pragma once

#include "core/text/utf8.hpp"
#include "core/text/vocabulary.hpp"

#include <boost/unordered/unordered_flat_map.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::text {

class BytePairModel {
  public:
    struct Rules {
        bool whole_words = false;  // a word that is a token is taken as it is
        bool ranks_are_ids =
            false;                // without merges: the rank of a pair is the number of the token it makes (tiktoken)
        bool characters = false;  // merging begins with characters; what no token spells is tokens of type "byte"
    };

    // `bytes` are the tokens of `data` as bytes. Both are read here only; the strings of `bytes` must stay where they
    // are for the life of this object. A merge that names a token that is missing is left out, with a note. Throws
    // Error(TSR_CORRUPT_DATA) for one that is not two tokens.
    BytePairModel(const VocabularyData& data, const std::vector<std::string>& bytes, const Rules& rules,
                  std::vector<std::string>& notes);

    // Appends the tokens of `word` to `out`: about n log n steps for n bytes. Bytes without a token are
    // replaced by what `missing(byte)` returns, and left out if that is kNoToken. Any thread.
    // Throws Error(TSR_DOES_NOT_FIT) for more than kLongestWord bytes, for each of which merging takes 40.
    template <typename Missing>
    void encode(std::string_view word, std::vector<Token>& out, Missing&& missing) const {
        if (rules_.whole_words || (rules_.characters && word.starts_with('\n'))) {
            if (const auto whole = by_bytes_.find(word); whole != by_bytes_.end()) {
                out.push_back(whole->second);
                return;
            }
        }
        if (word.size() > kLongestWord) refuse_word(word.size());
        const size_t first = out.size();
        for (size_t at = 0, length = 1; at < word.size(); at += length) {
            if (rules_.characters) {
                length = utf8_step(word.substr(at)).length;
                if (const auto one = by_bytes_.find(word.substr(at, length)); one != by_bytes_.end()) {
                    out.push_back(one->second);
                    continue;
                }
            }
            for (const char c : word.substr(at, length)) {
                const Token token = byte_tokens_[static_cast<uint8_t>(c)];
                const Token taken = token != kNoToken ? token : missing(static_cast<uint8_t>(c));
                if (taken != kNoToken) out.push_back(taken);
            }
        }
        merge(out, first);
    }

    static constexpr size_t kLongestWord = 8 << 20;

    Token byte_token(uint8_t byte) const noexcept { return byte_tokens_[byte]; }

  private:
    struct Merge {
        int32_t rank;
        Token result;
    };

    void add_merges(const VocabularyData& data, std::vector<std::string>& notes);
    [[noreturn]] static void refuse_word(size_t bytes);
    // Joins the tokens out[first..] in place.
    void merge(std::vector<Token>& out, size_t first) const;
    bool find_merge(Token left, Token right, Merge& found) const;

    boost::unordered_flat_map<uint64_t, Merge> merges_;
    boost::unordered_flat_map<std::string_view, Token> by_bytes_;  // filled where a rule needs it
    const std::vector<std::string>* bytes_;
    std::array<Token, 256> byte_tokens_;
    size_t longest_ = 0;
    Rules rules_;
};

}  // namespace tessera::text
