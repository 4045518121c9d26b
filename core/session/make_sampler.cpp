#include "core/session/make_sampler.hpp"

#include "core/base/error.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace tessera::session {
namespace {

// `text` in tokens, as it is spelt within a text.
std::vector<text::Token> spell(const text::Tokenizer& tokenizer, const std::string& text) {
    const text::EncodeOptions plain{.add_special = false};
    if (!tokenizer.adds_space_prefix()) return tokenizer.encode(text, plain);
    // Behind a line end, with which no other character shares a token in such vocabularies, there is no blank.
    const std::vector<text::Token> tokens = tokenizer.encode("\n" + text, plain);
    std::string before;
    for (size_t i = 0; i < tokens.size() && before.size() < 2; ++i) {
        before += tokenizer.bytes(tokens[i]);
        if (before == " \n" || before == "\n") return {tokens.begin() + static_cast<ptrdiff_t>(i) + 1, tokens.end()};
    }
    return tokenizer.encode(text, plain);
}

// One text; its ends are spelt when they are first needed.
class Breaker {
  public:
    Breaker(const std::string& text, const text::Tokenizer& tokenizer)
        : text_(text), tokenizer_(tokenizer), ends_(text.size()) {}

    // `bytes` from where they begin as the text does: whether they hold it whole. Where they end within it, `token`
    // begins a sequence.
    bool found_at(text::Token token, std::string_view bytes, SequenceBreakers& breakers) {
        const size_t shared = std::min(bytes.size(), text_.size());
        if (std::string_view(text_).substr(0, shared) != bytes.substr(0, shared)) return false;
        if (shared == text_.size()) return true;
        const std::vector<text::Token>& end = end_after(shared);
        if (!end.empty()) breakers.add(token, end);
        return false;
    }

  private:
    const std::vector<text::Token>& end_after(size_t bytes) {
        std::optional<std::vector<text::Token>>& end = ends_[bytes];
        if (end) return *end;
        try {
            end = spell(tokenizer_, text_.substr(bytes));
        } catch (const Error&) {
            end.emplace();
        }
        return *end;
    }

    const std::string& text_;
    const text::Tokenizer& tokenizer_;
    std::vector<std::optional<std::vector<text::Token>>> ends_;  // without so many bytes at the beginning
};

}  // namespace

std::shared_ptr<const SequenceBreakers> find_sequence_breakers(std::span<const std::string> texts,
                                                               const text::Tokenizer& tokenizer) {
    auto breakers = std::make_shared<SequenceBreakers>();
    std::array<std::vector<Breaker>, 256> by_first_byte;
    for (const std::string& text : texts)
        if (!text.empty()) by_first_byte[static_cast<unsigned char>(text[0])].emplace_back(text, tokenizer);
    for (size_t i = 0; i < tokenizer.size(); ++i) {
        const auto token = static_cast<text::Token>(i);
        const std::string_view bytes = tokenizer.bytes(token);
        bool whole = false;
        for (size_t at = 0; at < bytes.size(); ++at) {
            for (Breaker& breaker : by_first_byte[static_cast<unsigned char>(bytes[at])])
                whole |= breaker.found_at(token, bytes.substr(at), *breakers);
        }
        if (whole) breakers->add(token, {});
    }
    return breakers;
}

Sampler make_sampler(const SamplingParameters& parameters, const text::Tokenizer& tokenizer, size_t context,
                     std::shared_ptr<const SequenceBreakers> breakers) {
    if (parameters.dry_multiplier == 0.0f) return Sampler(parameters, tokenizer.size());
    check_sampling_parameters(parameters, tokenizer.size());
    if (!breakers) breakers = find_sequence_breakers(parameters.dry_sequence_breakers, tokenizer);
    return Sampler(parameters, tokenizer.size(), {context, std::move(breakers)});
}

}  // namespace tessera::session
