#include "core/text/known_tokens.hpp"

#include "core/base/text.hpp"

#include <algorithm>
#include <array>

namespace tessera::text {
namespace {

enum class Use : uint8_t {
    kEnd,           // of a turn or an answer
    kEndIfSpecial,  // the same, but a plain one of this text may be part of an answer
    kInfilling,     // of a prompt to fill a gap
};

struct KnownToken {
    std::string_view spelling;
    Use use;
};

constexpr auto kKnown = std::to_array<KnownToken>({
    {"<\uff5cend\u2581of\u2581sentence\uff5c>", Use::kEnd},  // DeepSeek
    {"<|EOT|>", Use::kEnd},                                  // DeepSeek-Coder
    {"<|im_end|>", Use::kEnd},                               // ChatML
    {"<|endoftext|>", Use::kEnd},                            // GPT-2, Qwen
    {"<|eot_id|>", Use::kEnd},                               // Llama 3
    {"<|eom_id|>", Use::kEnd},
    {"<|end_of_text|>", Use::kEnd},
    {"<|end|>", Use::kEnd},     // Phi; of gpt-oss and Solar the end of a message, see below
    {"<|return|>", Use::kEnd},  // gpt-oss
    {"<|call|>", Use::kEnd},
    {"<|flush|>", Use::kEnd},  // Solar
    {"<|calls|>", Use::kEnd},
    {"<end_of_turn>", Use::kEnd},  // Gemma
    {"<turn|>", Use::kEnd},        // Gemma 4
    {"<|tool_response>", Use::kEnd},
    {"<end_of_utterance>", Use::kEnd},  // SmolVLM, Granite-Docling
    {"[EOS]", Use::kEnd},               // Kimi-K2
    {"[EOT]", Use::kEnd},
    {"[e~[", Use::kEnd},  // MiniMax-M2
    {"</s>", Use::kEndIfSpecial},
    {"<eos>", Use::kEndIfSpecial},
    {"<EOT>", Use::kEndIfSpecial},
    {"_<EOT>", Use::kEndIfSpecial},
    {"\u2581<EOT>", Use::kEndIfSpecial},
    // After an infilled text: padding, and the name of the next repository or file.
    {"<|fim_pad|>", Use::kEnd},
    {"<|fim_repo|>", Use::kEnd},
    {"<|repo_name|>", Use::kEnd},
    {"<|file_sep|>", Use::kEnd},
    {"<fim-pad>", Use::kEndIfSpecial},
    {"<fim_pad>", Use::kEndIfSpecial},
    {"<PAD>", Use::kEndIfSpecial},
    {"[PAD]", Use::kEndIfSpecial},
    {"<fim-repo>", Use::kEndIfSpecial},
    {"<REPO>", Use::kEndIfSpecial},
    {"<reponame>", Use::kEndIfSpecial},
    {"<|fim_prefix|>", Use::kInfilling},
    {"<|fim_suffix|>", Use::kInfilling},
    {"<|fim_middle|>", Use::kInfilling},
    {"<\uff5cfim\u2581begin\uff5c>", Use::kInfilling},
    {"<\uff5cfim\u2581hole\uff5c>", Use::kInfilling},
    {"<\uff5cfim\u2581end\uff5c>", Use::kInfilling},
    {"<|code_prefix|>", Use::kInfilling},
    {"<|code_suffix|>", Use::kInfilling},
    {"<|code_middle|>", Use::kInfilling},
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
    for (const auto& [spelling, use] : kKnown) {
        const Token token = token_of(spelling);
        if (token == kNoToken) continue;
        const TokenType type = type_of(token);
        const bool special = type == TokenType::kControl || type == TokenType::kUserDefined;
        if (use == Use::kEndIfSpecial && !special) continue;
        if (use != Use::kInfilling) ends.push_back(token);
        if (type == TokenType::kControl || (use == Use::kInfilling && special)) continue;
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
