// Cuts a text into the words inside which byte-level BPE merges.
//
// A pre-tokenizer is a list of steps. The first is applied to the whole text: every match and every gap between matches
// becomes a pre-token. The next is applied to each pre-token as if it were a text of its own, and so on. That is what a
// sequence of `Split` (behavior "Isolated") does in a published tokenizer.json.
#pragma once

#include "core/text/split_automaton.hpp"

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::text {

struct SplitStep {
    enum class Kind : uint8_t {
        kMatches,    // the pre-tokens are the matches
        kThousands,  // a match is a row of digits: the pre-tokens are groups of three of it, counted from its end
        kCutBeforeThousands,  // the same, but what is before the first such group stays one pre-token with what is
                              // before
    };
    std::string expression;  // split_expression.hpp
    Kind kind = Kind::kMatches;
};

// How the tokens of a vocabulary are spelt, and its text is brought into that spelling.
enum class WordSpelling : uint8_t {
    kByteLevel,    // every byte is a letter of the byte-level alphabet
    kPlainBlanks,  // UTF-8 with U+2581 for blanks; bytes that no token spells are <0xNN>
};

struct PretokenizerRow {
    std::vector<std::string_view> names;  // as in tokenizer.ggml.pre; all mean the very same
    std::vector<SplitStep> steps;
    bool whole_words = false;  // a pre-token that is itself a token is not merged step by step
    bool adds_bos = false;     // default where the file does not say
    bool always_bos = false;   // also where the file says no
    bool nfc = false;          // the text is brought into Normalization Form C before it is cut
    WordSpelling spelling = WordSpelling::kByteLevel;
};

// All that are known, one row for each way to cut.
const std::vector<PretokenizerRow>& known_pretokenizers();

// By name; nullptr if there is none such.
const PretokenizerRow* find_pretokenizer(std::string_view name);

// Compiled once; afterwards every method may be called from any thread at the same time.
class Pretokenizer {
  public:
    // Throws Error(TSR_INVALID_ARGUMENT) for an expression that is not understood (split_expression.hpp).
    explicit Pretokenizer(const std::vector<SplitStep>& steps);

    // The pre-tokens of `text`, which must be valid UTF-8, in order: concatenated they are the text. None is empty.
    // Time is linear in the text for the known pre-tokenizers.
    std::vector<std::string_view> split(std::string_view text) const;
    // The same, one at a time, so that no list of them is held; `use` returns whether to go on.
    void split(std::string_view text, const std::function<bool(std::string_view)>& use) const;

  private:
    struct Step {
        SplitStep::Kind kind;
        SplitAutomaton automaton;
    };

    bool split_pretoken(size_t step, std::string_view pretoken, const std::function<bool(std::string_view)>& use) const;

    std::vector<Step> steps_;
};

// That of a row of known_pretokenizers(), which is compiled once and stays. Any thread.
const Pretokenizer& compiled_pretokenizer(const PretokenizerRow& row);

// Names of the known pre-tokenizers, at most `most`, that cut next to none of `tokens`, which are what a vocabulary
// spells (what is not UTF-8 is left out): no token goes over a cut. Those that cut texts most come first.
std::vector<std::string_view> pretokenizers_that_fit(std::span<const std::string> tokens, size_t most);

}  // namespace tessera::text
