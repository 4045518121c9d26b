#include "core/text/pretokenizer.hpp"
#include "core/text/utf8.hpp"

#include <algorithm>
#include <utility>

namespace tessera::text {
namespace {

// Of so many tokens, evenly taken, the shape of a vocabulary is seen well enough.
constexpr size_t kSample = 20'000;
// Added tokens that are marked as normal, and vocabularies that were learnt with something a little else.
constexpr size_t kCutOfAThousand = 5;

// Where pre-tokenizers differ.
constexpr std::string_view kProbe =
    "It's 12345 o'clock, they'LL say:\n\n  if (x.y_z != 0x1F) {\n\treturn a[10] + HTTPServer;  }\r\n \n"
    "na\u00efve e\u0301 \u4eca\u5929\u5929\u6c14\u5f88\u597d\u3002 \u3053\u3093 \u0928\u092e\u0938\u094d\u0924\u0947 "
    "\u00bd 2024/05/06 !!!\n   ";

bool is_one_pretoken(const Pretokenizer& pretokenizer, std::string_view token) {
    size_t pretokens = 0;
    pretokenizer.split(token, [&](std::string_view) { return ++pretokens < 2; });
    return pretokens < 2;
}

}  // namespace

std::vector<std::string_view> pretokenizers_that_fit(std::span<const std::string> tokens, size_t most) {
    std::vector<std::string_view> sample;
    for (size_t i = 0, step = tokens.size() / kSample + 1; i < tokens.size(); i += step)
        if (utf8_valid_prefix(tokens[i]) == tokens[i].size()) sample.push_back(tokens[i]);
    std::vector<std::pair<size_t, std::string_view>> fit;  // pre-tokens of the probe, name
    for (const PretokenizerRow& row : known_pretokenizers()) {
        const Pretokenizer& pretokenizer = compiled_pretokenizer(row);
        const auto cut = static_cast<size_t>(std::ranges::count_if(
            sample, [&](std::string_view token) { return !is_one_pretoken(pretokenizer, token); }));
        if (cut * 1000 <= sample.size() * kCutOfAThousand)
            fit.emplace_back(pretokenizer.split(kProbe).size(), row.names.front());
    }
    std::ranges::stable_sort(fit, std::ranges::greater(), &std::pair<size_t, std::string_view>::first);
    std::vector<std::string_view> names;
    for (const auto& [pretokens, name] : fit)
        if (names.size() < most) names.push_back(name);
    return names;
}

}  // namespace tessera::text
