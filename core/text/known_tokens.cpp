#include "core/text/known_tokens.hpp"

#include "core/base/text.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>

namespace tessera::text {
namespace {

enum class TokenUse : uint8_t {
    kEnd,           // of a turn or an answer
    kEndIfSpecial,  // the same, but a plain one of this text may be part of an answer
    kInfilling,     // of a prompt to fill a gap
};

struct KnownToken {
    std::string_view spelling;
    TokenUse use;
};

constexpr auto kKnownTokens = std::to_array<KnownToken>({
    {"<\uff5cend\u2581of\u2581sentence\uff5c>", TokenUse::kEnd},  // DeepSeek
    {"<|EOT|>", TokenUse::kEnd},                                  // DeepSeek-Coder
    {"<|im_end|>", TokenUse::kEnd},                               // ChatML
    {"<|endoftext|>", TokenUse::kEnd},                            // GPT-2, Qwen
    {"<|eot_id|>", TokenUse::kEnd},                               // Llama 3
    {"<|eom_id|>", TokenUse::kEnd},
    {"<|end_of_text|>", TokenUse::kEnd},
    {"<|end|>", TokenUse::kEnd},     // Phi; of gpt-oss and Solar the end of a message, see below
    {"<|return|>", TokenUse::kEnd},  // gpt-oss
    {"<|call|>", TokenUse::kEnd},
    {"<|flush|>", TokenUse::kEnd},  // Solar
    {"<|calls|>", TokenUse::kEnd},
    {"<end_of_turn>", TokenUse::kEnd},  // Gemma
    {"<turn|>", TokenUse::kEnd},        // Gemma 4
    {"<|tool_response>", TokenUse::kEnd},
    {"<end_of_utterance>", TokenUse::kEnd},  // SmolVLM, Granite-Docling
    {"[EOS]", TokenUse::kEnd},               // Kimi-K2
    {"[EOT]", TokenUse::kEnd},
    {"[e~[", TokenUse::kEnd},  // MiniMax-M2
    {"</s>", TokenUse::kEndIfSpecial},
    {"<eos>", TokenUse::kEndIfSpecial},
    {"<EOT>", TokenUse::kEndIfSpecial},
    {"_<EOT>", TokenUse::kEndIfSpecial},
    {"\u2581<EOT>", TokenUse::kEndIfSpecial},
    // After an infilled text: padding, and the name of the next repository or file.
    {"<|fim_pad|>", TokenUse::kEnd},
    {"<|fim_repo|>", TokenUse::kEnd},
    {"<|repo_name|>", TokenUse::kEnd},
    {"<|file_sep|>", TokenUse::kEnd},
    {"<fim-pad>", TokenUse::kEndIfSpecial},
    {"<fim_pad>", TokenUse::kEndIfSpecial},
    {"<PAD>", TokenUse::kEndIfSpecial},
    {"[PAD]", TokenUse::kEndIfSpecial},
    {"<fim-repo>", TokenUse::kEndIfSpecial},
    {"<REPO>", TokenUse::kEndIfSpecial},
    {"<reponame>", TokenUse::kEndIfSpecial},
    {"<|fim_prefix|>", TokenUse::kInfilling},
    {"<|fim_suffix|>", TokenUse::kInfilling},
    {"<|fim_middle|>", TokenUse::kInfilling},
    {"<\uff5cfim\u2581begin\uff5c>", TokenUse::kInfilling},
    {"<\uff5cfim\u2581hole\uff5c>", TokenUse::kInfilling},
    {"<\uff5cfim\u2581end\uff5c>", TokenUse::kInfilling},
    {"<|code_prefix|>", TokenUse::kInfilling},
    {"<|code_suffix|>", TokenUse::kInfilling},
    {"<|code_middle|>", TokenUse::kInfilling},
});

}  // namespace

std::vector<Token> settle_known_tokens(VocabularyData& data, const TokensBySpelling& tokens) {
    std::vector<Token> ends;
    const auto token_of = [&](std::string_view spelling) {
        const auto found = tokens.find(spelling);
        return found == tokens.end() ? kNoToken : found->second;
    };
    const auto type_of = [&](Token token) {
        return data.types.empty() ? TokenType::kNormal : data.types[static_cast<size_t>(token)];
    };
    size_t mended = 0;
    for (const auto& [spelling, use] : kKnownTokens) {
        const Token token = token_of(spelling);
        if (token == kNoToken) continue;
        const TokenType type = type_of(token);
        const bool special = type == TokenType::kControl || type == TokenType::kUserDefined;
        if (use == TokenUse::kEndIfSpecial && !special) continue;
        if (use != TokenUse::kInfilling) ends.push_back(token);
        if (type == TokenType::kControl || (use == TokenUse::kInfilling && special)) continue;
        if (data.types.empty()) data.types.assign(data.tokens.size(), TokenType::kNormal);
        data.types[static_cast<size_t>(token)] = TokenType::kControl;
        if (!special && mended++ == 0)
            data.notes.push_back(
                fmt::format("tokenizer.ggml.token_type has token {}, '{}', as part of words: taken as "
                            "a control token",
                            token, printable(spelling, 40)));
    }
    if (mended > 1) data.notes.back() += fmt::format(", as are {} more", mended - 1);

    for (const Token token : {data.eos, data.eot, data.eom})
        if (token != kNoToken) ends.push_back(token);
    ends.insert(ends.end(), data.other_ends.begin(), data.other_ends.end());
    // gpt-oss and Solar end messages, of which an answer has several, with <|end|>; of Gemma 4, </s> is a tag of HTML.
    const auto has = [&](std::string_view spelling) { return token_of(spelling) != kNoToken; };
    if ((has("<|return|>") && has("<|call|>")) || (has("<|flush|>") && (has("<|call|>") || has("<|calls|>"))))
        std::erase(ends, token_of("<|end|>"));
    if (const Token tag = token_of("</s>"); has("<|tool_response>") && tag != kNoToken) {
        std::erase(ends, tag);
        if (type_of(tag) == TokenType::kControl) data.types[static_cast<size_t>(tag)] = TokenType::kNormal;
    }
    std::ranges::sort(ends);
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    return ends;
}

}  // namespace tessera::text
