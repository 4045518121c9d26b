// The published expressions, from each model's tokenizer.json (Kimi-K2: its tokenization code), written for PCRE2:
//  - White space is spelt out. PCRE2's \s also takes U+180E, which no other engine counts.
//  - Kimi's class intersections [..&&[^\p{Han}]] are negated classes that list all other categories.
//  - \p{Han} means Script_Extensions in PCRE2; the models mean the script itself, \p{sc:Han}.
//  - `\s+$` starts only where a run of blanks starts and is possessive, else a long run is searched once a byte.
#include "core/base/error.hpp"
#include "core/text/pretokenizer.hpp"

#include <spdlog/fmt/ranges.h>

#include <algorithm>

// White space of the Unicode standard, for use inside a class.
#define TSR_SPACE \
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define TSR_S "[" TSR_SPACE "]"
#define TSR_TRAILING_SPACES TSR_S "+(?![^" TSR_SPACE "])|" TSR_S "+"

namespace tessera::text {
namespace {

// Letters of the scripts that have two cases.
constexpr const char* kCasedLetters =
    "A-Za-z\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}\\x{1bc}-\\x{1bf}\\x{1c4}-\\x{293}"
    "\\x{295}-\\x{2af}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37b}-\\x{37d}\\x{37f}\\x{386}\\x{388}-\\x{38a}"
    "\\x{38c}\\x{38e}-\\x{3a1}\\x{3a3}-\\x{3f5}\\x{3f7}-\\x{481}\\x{48a}-\\x{52f}\\x{531}-\\x{556}"
    "\\x{10a0}-\\x{10c5}\\x{13a0}-\\x{13f5}\\x{13f8}-\\x{13fd}\\x{1c90}-\\x{1cba}\\x{1cbd}-\\x{1cbf}"
    "\\x{1d00}-\\x{1d2b}\\x{1d6b}-\\x{1d77}\\x{1d79}-\\x{1d9a}\\x{1e00}-\\x{1f15}\\x{1f18}-\\x{1f1d}"
    "\\x{1f20}-\\x{1f45}\\x{1f48}-\\x{1f4d}\\x{1f50}-\\x{1f57}\\x{1f59}\\x{1f5b}\\x{1f5d}\\x{1f5f}-\\x{1f7d}"
    "\\x{1f80}-\\x{1fb4}\\x{1fb6}-\\x{1fbc}\\x{1fbe}\\x{1fc2}-\\x{1fc4}\\x{1fc6}-\\x{1fcc}\\x{1fd0}-\\x{1fd3}"
    "\\x{1fd6}-\\x{1fdb}\\x{1fe0}-\\x{1fec}\\x{1ff2}-\\x{1ff4}\\x{1ff6}-\\x{1ffc}\\x{2102}\\x{2107}"
    "\\x{210a}-\\x{2113}\\x{2115}\\x{2119}-\\x{211d}\\x{2124}\\x{2126}\\x{2128}\\x{212a}-\\x{212d}"
    "\\x{212f}-\\x{2134}\\x{2139}\\x{213c}-\\x{213f}\\x{2145}-\\x{2149}\\x{214e}\\x{2183}\\x{2184}"
    "\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}\\x{2ceb}-\\x{2cee}\\x{2cf2}\\x{2cf3}\\x{a640}-\\x{a66d}"
    "\\x{a680}-\\x{a69b}\\x{a722}-\\x{a76f}\\x{a771}-\\x{a787}\\x{a78b}-\\x{a78e}\\x{ab70}-\\x{abbf}"
    "\\x{fb00}-\\x{fb06}\\x{fb13}-\\x{fb17}\\x{ff21}-\\x{ff3a}\\x{ff41}-\\x{ff5a}\\x{10400}-\\x{1044f}"
    "\\x{104b0}-\\x{104d3}\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}\\x{10cc0}-\\x{10cf2}\\x{118a0}-\\x{118df}"
    "\\x{1e900}-\\x{1e943}";

constexpr const char* kHanAndHangul = "[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+";
constexpr const char* kOneDigit = "\\p{N}";

// The family of GPT-4's expression; `digits` is all that differs between Llama 3 and Qwen 2.
std::string contraction_family(const char* digits) {
    return std::string("(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|") + digits +
           "| ?[^" TSR_SPACE "\\p{L}\\p{N}]+[\\r\\n]*|" TSR_S "*[\\r\\n]+|" TSR_TRAILING_SPACES;
}

std::string kimi_k2() {
    // Letters without upper-case start, and without lower-case, both without Han.
    const std::string no_lower = "[^\\p{Ll}\\p{N}\\p{P}\\p{S}\\p{Z}\\p{C}\\p{sc:Han}]";
    const std::string no_upper = "[^\\p{Lu}\\p{Lt}\\p{N}\\p{P}\\p{S}\\p{Z}\\p{C}\\p{sc:Han}]";
    const std::string lead = "[^\\r\\n\\p{L}\\p{N}]?";
    const std::string contraction = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?";
    return "\\p{sc:Han}+|" + lead + no_lower + "*" + no_upper + "+" + contraction + "|" + lead + no_lower + "+" +
           no_upper + "*" + contraction +
           "|\\p{N}{1,3}| ?[^" TSR_SPACE "\\p{L}\\p{N}]+[\\r\\n]*|" TSR_S "*[\\r\\n]+|" TSR_TRAILING_SPACES;
}

std::vector<PretokenizerPatterns> make_known() {
    std::vector<PretokenizerPatterns> all;
    all.push_back({"deepseek-llm",
                   {},
                   {"[\\r\\n]", std::string(TSR_S "?[") + kCasedLetters + "]+",
                    TSR_S "?[!-/:-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-\\x{ff5e}\\x{2018}-\\x{201f}\\x{3000}-\\x{3002}]+",
                    "(?<!" TSR_S ")" TSR_S "++$", kHanAndHangul, kOneDigit},
                   false,
                   true});
    all.push_back({"deepseek-coder",
                   {},
                   {"[\\r\\n]", TSR_S "?\\p{L}+", TSR_S "?\\p{P}+", kHanAndHangul, kOneDigit},
                   false,
                   true});
    all.push_back({"deepseek-v3",
                   {},
                   {"\\p{N}{1,3}", "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}]+",
                    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
                    "| ?[\\p{P}\\p{S}]+[\\r\\n]*|" TSR_S "*[\\r\\n]+|" TSR_TRAILING_SPACES},
                   false,
                   true});
    all.push_back({"kimi-k2", {}, {kimi_k2()}, true, false});
    all.push_back({"gpt-2",
                   {"gpt2"},
                   {"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" TSR_SPACE "\\p{L}\\p{N}]+|" TSR_TRAILING_SPACES},
                   false,
                   false});
    all.push_back({"llama-bpe", {"llama3", "llama-v3"}, {contraction_family("\\p{N}{1,3}")}, true, true});
    all.push_back({"qwen2", {"deepseek-r1-qwen"}, {contraction_family("\\p{N}")}, false, false, true});
    return all;
}

}  // namespace

const std::vector<PretokenizerPatterns>& known_pretokenizers() {
    static const std::vector<PretokenizerPatterns> known = make_known();
    return known;
}

const PretokenizerPatterns& find_pretokenizer(std::string_view name) {
    std::vector<std::string_view> names;
    for (const PretokenizerPatterns& one : known_pretokenizers()) {
        if (one.name == name || std::ranges::find(one.aliases, name) != one.aliases.end()) return one;
        names.push_back(one.name);
    }
    fail(TSR_UNSUPPORTED,
         Notice(fmt::format("tokenizer.ggml.pre: expected a known pre-tokenizer ({}), found {}; the model may cut text "
                            "as one of these",
                            fmt::join(names, ", "), name.empty() ? std::string("none") : fmt::format("'{}'", name)),
                {{AdviceCode::kOtherMetadata, "tokenizer.ggml.pre=str:NAME"}}));
}

}  // namespace tessera::text
