// The expressions as models publish them, in their tokenizer.json (Kimi-K2: its tokenization code; Falcon, StarCoder
// and the like: the steps `Punctuation`, `ByteLevel` and `Digits` as expressions), but for two things:
//  - `\s+$` starts only where a row of blanks starts, else a long one is searched once a byte.
//  - Repetitions that are possessive without need are greedy.
// Names are those that ik_llama.cpp and llama.cpp know.
#include "core/text/pretokenizer.hpp"

#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <mutex>

namespace tessera::text {
namespace {

using SplitKind = SplitStep::Kind;

// Letters of the scripts that have two cases.
constexpr std::string_view kCasedLetters =
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

constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kContractions = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
constexpr std::string_view kWords = R"([^\r\n\p{L}\p{N}]?\p{L}+)";
constexpr std::string_view kPunctuation = R"( ?[^\s\p{L}\p{N}]+[\r\n]*)";
constexpr std::string_view kBlanks = R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kHanAndHangul = R"([\x{4e00}-\x{9fa5}\x{800}-\x{4e00}\x{ac00}-\x{d7ff}]+)";
constexpr std::string_view kHanAndKana = R"([\x{4e00}-\x{9fa5}\x{3040}-\x{309f}\x{30a0}-\x{30ff}]+)";
constexpr std::string_view kNotPunctuation =
    R"( ?[^(\s|[.,!?\x{2026}\x{3002}\x{ff0c}\x{3001}\x{964}\x{6d4}\x{60c}])]+)";
constexpr std::string_view kCodeWords =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)";

// What \b of Oniguruma, with which the package `tokenizers` is built, takes for parts of words.
constexpr std::string_view kWordCharacters =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169})"
    R"(\x{1f170}-\x{1f189})";

std::string either(std::initializer_list<std::string_view> alternatives) {
    return fmt::format("{}", fmt::join(alternatives, "|"));
}

// The expression of GPT-4 (cl100k_base) with the runs of digits as given.
std::string gpt4(std::string_view digits) {
    return either({kContractions, kWords, digits, kPunctuation, kBlanks});
}

// Of DeepSeek-V3, behind its digits and its Chinese and Japanese characters.
std::string deepseek_v3() {
    return either({kCodeWords, R"( ?[\p{P}\p{S}]+[\r\n]*)", kBlanks});
}

// The words of GPT-4o (o200k_base): capitals only where a word begins. `without` is taken from all letters.
std::string cased_words(std::string_view without, std::string_view suffix) {
    const std::string upper = fmt::format(R"([\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}{}])", without);
    const std::string lower = fmt::format(R"([\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}{}])", without);
    constexpr std::string_view lead = R"([^\r\n\p{L}\p{N}]?)";
    return fmt::format("{}{}*{}+{}|{}{}+{}*{}", lead, upper, lower, suffix, lead, upper, lower, suffix);
}

std::string gpt4o(std::string_view digits, std::string_view suffix) {
    return either({cased_words("", suffix), digits, R"( ?[^\s\p{L}\p{N}]+[\r\n/]*)", kBlanks});
}

std::vector<PretokenizerRow> make_known() {
    constexpr std::string_view one_digit = R"(\p{N})", three_digits = R"(\p{N}{1,3})";
    const std::string contraction = fmt::format("{}?", kContractions);
    const auto step = [](std::string_view expression) { return SplitStep{std::string(expression)}; };
    const SplitStep gpt2 = step(kGpt2), each_digit = step(one_digit);
    const SplitStep newlines = step(R"([^\n]+|[\n]+)");

    std::vector<PretokenizerRow> all;
    all.push_back(
        {.names = {"deepseek-llm"},
         .steps = {step(R"([\r\n])"),
                   {fmt::format(R"(\s?[{}]+)", kCasedLetters)},
                   step(R"(\s?[!-/:-~\x{ff01}-\x{ff0f}\x{ff1a}-\x{ff5e}\x{2018}-\x{201f}\x{3000}-\x{3002}]+)"),
                   step(R"((?<!\s)\s+$)"),
                   step(kHanAndHangul),
                   each_digit},
         .adds_bos = true});
    all.push_back(
        {.names = {"deepseek-coder"},
         .steps = {step(R"([\r\n])"), step(R"(\s?\p{L}+)"), step(R"(\s?\p{P}+)"), step(kHanAndHangul), each_digit},
         .adds_bos = true});
    all.push_back({.names = {"deepseek-v3"},
                   .steps = {step(three_digits), step(kHanAndKana), {deepseek_v3()}},
                   .adds_bos = true});
    all.push_back({.names = {"hunyuan-dense", "joyai-llm", "hy_v4"}, .steps = all.back().steps});
    all.push_back({.names = {"kimi-k2"},
                   .steps = {{either({R"([\p{Han}]+)", cased_words(R"(&&[^\p{Han}])", contraction), three_digits,
                                      kPunctuation, kBlanks})}},
                   .whole_words = true});
    all.push_back({.names = {"gpt-2", "gpt2", "phi-2", "jina-es", "jina-de", "jina-v1-en", "jina-v2-es", "jina-v2-de",
                             "jina-v2-code", "roberta-bpe", "gigachat", "a.x-4.0", "mellum", "exaone4", "jais",
                             "trillion", "granite-docling"},
                   .steps = {gpt2}});
    all.push_back({.names = {"mpt", "olmo", "modern-bert"}, .steps = {gpt2}, .nfc = true});
    all.push_back({.names = {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
                             "jina-v5-nano"},
                   .steps = {{gpt4(three_digits)}},
                   .whole_words = true,
                   .adds_bos = true});
    all.push_back({.names = {"glm4", "chatglm-bpe", "dbrx", "smaug-bpe"}, .steps = {{gpt4(three_digits)}}});
    all.push_back({.names = {"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "hunyuan", "stablelm2"},
                   .steps = {{gpt4(one_digit)}},
                   .nfc = true});
    all.push_back({.names = {"grok-2", "solar-open", "openpangu"}, .steps = {{gpt4(one_digit)}}});
    all.push_back({.names = {"qwen35"},
                   .steps = {{either({kContractions, R"([^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+)", one_digit,
                                      R"( ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)", kBlanks})}},
                   .nfc = true});
    all.push_back({.names = {"tekken"}, .steps = {{gpt4o(one_digit, "")}}, .whole_words = true, .adds_bos = true});
    all.push_back({.names = {"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"},
                   .steps = {{gpt4o(three_digits, contraction)}}});
    all.push_back(
        {.names = {"granite-embed-multi-97m"}, .steps = {{gpt4o(three_digits, contraction)}}, .whole_words = true});
    all.push_back({.names = {"tiny_aya", "cohere2moe"},
                   .steps = {{fmt::format(R"((?<!\d)\d+(?![{}]))", kWordCharacters), SplitKind::kThousands},
                             {gpt4o(three_digits, contraction)}}});
    all.push_back(
        {.names = {"youtu"},
         .steps = {{either({R"([\x{ac00}-\x{d7a3}\x{3131}-\x{318e}]+)",
                            R"([\x{ff01}\x{2026}\x{201c}\x{201d}\x{2018}\x{2019}\x{2014}\x{ff1a}\x{ff1b}\x{ff0c})"
                            R"(\x{3001}-\x{303f}\x{fe30}-\x{fe4f}]+)",
                            R"([\x{3105}-\x{312f}]+)", kHanAndKana})},
                   {gpt4o(one_digit, contraction)}},
         .whole_words = true});
    all.push_back({.names = {"starcoder", "refact", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"},
                   .steps = {each_digit, gpt2}});
    all.push_back({.names = {"command-r", "cohere2_moe"}, .steps = {each_digit, gpt2}, .nfc = true});
    all.push_back({.names = {"falcon"},
                   .steps = {step(R"([\p{P}$\+<=>\^~|`]+)"), gpt2, step("[0-9]+"), step("[0-9][0-9][0-9]")}});
    // What both take where a file says nothing.
    all.push_back({.names = {"default"},
                   .steps = {step(R"([\p{P}$\+<=>\^~|]+)"), gpt2, step(R"(\p{N}+)"), step("[0-9][0-9][0-9]")}});
    all.push_back({.names = {"bloom", "poro-chat", "gpt3-finnish"}, .steps = {step(kNotPunctuation)}});
    all.push_back({.names = {"viking"}, .steps = {step(kNotPunctuation), each_digit}});
    all.push_back({.names = {"seed-coder"},
                   .steps = {{either({kContractions, kWords, one_digit, R"( ?[^\s\p{L}\p{N}\r\n]+)", kBlanks})}}});
    all.push_back({.names = {"bailingmoe", "bailingmoe2", "llada-moe"},
                   .steps = {{either(
                       {"'(?i:[sdmt]|ll|ve|re)", kWords, one_digit, kPunctuation, R"(\s*[\r\n]|\s+(?!\S)|\s+)"})}}});
    all.push_back({.names = {"exaone-moe"},
                   .steps = {{either({kContractions, R"([^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+)",
                                      one_digit, R"( ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)"})}}});
    all.push_back({.names = {"ufakzeka"}, .steps = {{either({kWords, one_digit, kPunctuation, kBlanks})}}});
    all.push_back({.names = {"laguna"}, .steps = {newlines, {gpt4(one_digit)}}});
    all.push_back({.names = {"minicpm5"}, .steps = {step(three_digits), {gpt4(R"(\p{N}+)")}}, .whole_words = true});
    all.push_back({.names = {"jais-2"},
                   .steps = {{either({kContractions, kWords, three_digits, kPunctuation, R"(\s*[\r\n]+)",
                                      R"(\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S))",
                                      R"(\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})"})}}});
    all.push_back({.names = {"spark2_5"},
                   .steps = {step(three_digits),
                             step(kHanAndKana),
                             {either({kCodeWords, R"( ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)"})},
                             each_digit}});
    all.push_back(
        {.names = {"afmoe"},
         .steps = {{R"(\p{N}+)", SplitKind::kThousands},
                   step(R"([\x{4e00}-\x{9fff}\x{3400}-\x{4dbf}\x{f900}-\x{faff}\x{3040}-\x{30ff}\x{ff65}-\x{ff9f})"
                        R"(\x{2f00}-\x{2fdf}\x{e40}-\x{eff}\x{1780}-\x{17ff}\x{1000}-\x{109f}\x{aa60}-\x{aa7f})"
                        R"(\x{a9e0}-\x{a9ff}\x{ac00}-\x{d7af}\x{1100}-\x{11ff}]+)"),
                   {deepseek_v3()}}});
    all.push_back({.names = {"superbpe"}, .steps = {step(R"(\p{N}+)"), {R"(\d+)", SplitKind::kCutBeforeThousands}}});
    all.push_back({.names = {"chameleon"},
                   .steps = {step("<sentinel:[0-9]+>"), step("(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z"),
                             step(R"(([\t\n]|    |  ))"), each_digit, step(R"([\p{P}!-/:-@\[-`\{-~])"), gpt2},
                   .adds_bos = true});
    // Merges do not cross the end of a row of newlines, so that cutting there changes nothing but the time.
    all.push_back({.names = {"gemma4", "granite-embed-multi-311m"},
                   .steps = {newlines},
                   .adds_bos = true,
                   .always_bos = true,
                   .spelling = WordSpelling::kPlainBlanks});
    all.push_back({.names = {"sarvam-moe"}, .steps = {newlines}, .spelling = WordSpelling::kPlainBlanks});
    return all;
}

}  // namespace

const std::vector<PretokenizerRow>& known_pretokenizers() {
    static const std::vector<PretokenizerRow> known = make_known();
    return known;
}

const PretokenizerRow* find_pretokenizer(std::string_view name) {
    for (const PretokenizerRow& one : known_pretokenizers())
        if (std::ranges::find(one.names, name) != one.names.end()) return &one;
    return nullptr;
}

const Pretokenizer& compiled_pretokenizer(const PretokenizerRow& row) {
    static std::mutex mutex;
    static std::vector<std::unique_ptr<const Pretokenizer>> compiled(known_pretokenizers().size());
    const std::lock_guard lock(mutex);
    std::unique_ptr<const Pretokenizer>& one = compiled.at(static_cast<size_t>(&row - known_pretokenizers().data()));
    if (!one) one = std::make_unique<const Pretokenizer>(row.steps);
    return *one;
}

}  // namespace tessera::text
