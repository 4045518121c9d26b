// Cuts a text into the words inside which byte-level BPE merges.
//
// A pre-tokenizer is a list of regular expressions. The first is applied to the whole text: every match and every gap
// between matches becomes a piece. The next is applied to each piece as if it were a text of its own, and so on. That
// is what a sequence of `Split` (behaviour "Isolated") does in a published tokenizer.json.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

// The compiled pattern of PCRE2, kept out of this header.
struct pcre2_real_code_8;

namespace tessera::text {

struct PretokenizerPatterns {
    std::string_view name;                  // as in tokenizer.ggml.pre
    std::vector<std::string_view> aliases;  // other names of the very same rules
    std::vector<std::string> expressions;   // PCRE2 syntax, in order
    bool whole_words;                       // a piece that is itself a token is not merged step by step
    bool adds_bos;                          // default where the file does not say
    bool nfc = false;                       // the text is brought into Normalization Form C before it is cut
};

// All that are known.
const std::vector<PretokenizerPatterns>& known_pretokenizers();

// By name or alias. Throws Error(TSR_UNSUPPORTED) that lists the known names and says how to override.
const PretokenizerPatterns& find_pretokenizer(std::string_view name);

// Compiled once; afterwards every method may be called from any thread at the same time.
class Pretokenizer {
  public:
    // Throws Error(TSR_INVALID_ARGUMENT) if an expression does not compile.
    explicit Pretokenizer(const std::vector<std::string>& expressions);
    ~Pretokenizer();
    Pretokenizer(Pretokenizer&&) noexcept;
    Pretokenizer& operator=(Pretokenizer&&) noexcept;

    // The pieces of `text`, which must be valid UTF-8, in order: concatenated they are the text. None is empty.
    // Time is linear in the text for the known expressions. Throws Error(TSR_UNSUPPORTED) if PCRE2 gives up.
    std::vector<std::string_view> split(std::string_view text) const;
    // The same, one at a time, so that no list of them is held; `use` returns whether to go on.
    void split(std::string_view text, const std::function<bool(std::string_view)>& use) const;

  private:
    std::vector<pcre2_real_code_8*> codes_;  // owned
};

}  // namespace tessera::text
