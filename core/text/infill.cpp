#include "core/text/infill.hpp"

#include <spdlog/fmt/fmt.h>

#include <initializer_list>
#include <utility>

namespace tessera::text {
namespace {

// What models without names of repositories and files are given between them.
constexpr std::string_view kBetweenFiles = "\n\n--- snippet ---\n\n";
constexpr std::string_view kRepository = "project\n";

Token find(const gguf::Metadata& metadata, const Tokenizer& tokenizer, std::initializer_list<std::string_view> keys,
           std::initializer_list<std::string_view> names) {
    for (const std::string_view key : keys) {
        const auto number = metadata.find_as<int64_t>(fmt::format("tokenizer.ggml.{}_token_id", key));
        if (number && *number >= 0 && std::cmp_less(*number, tokenizer.size())) return static_cast<Token>(*number);
    }
    for (const std::string_view name : names) {
        if (const Token token = tokenizer.find(name); token != kNoToken) return token;
    }
    return kNoToken;
}

}  // namespace

std::string_view InfillTokens::missing() const noexcept {
    if (prefix == kNoToken) return "the beginning";
    if (suffix == kNoToken) return "the end";
    return middle == kNoToken ? "the middle" : "";
}

InfillTokens find_infill_tokens(const gguf::Metadata& metadata, const Tokenizer& tokenizer) {
    return {
        .prefix = find(metadata, tokenizer, {"fim_pre", "prefix"},
                       {"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<PRE>", "\u2581<PRE>",
                        "<\uff5cfim\u2581begin\uff5c>", "<|code_prefix|>"}),
        .suffix = find(metadata, tokenizer, {"fim_suf", "suffix"},
                       {"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<SUF>", "\u2581<SUF>",
                        "<\uff5cfim\u2581hole\uff5c>", "<|code_suffix|>"}),
        .middle = find(metadata, tokenizer, {"fim_mid", "middle"},
                       {"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<MID>", "\u2581<MID>",
                        "<\uff5cfim\u2581end\uff5c>", "<|code_middle|>"}),
        .repository = find(metadata, tokenizer, {"fim_rep"},
                           {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"}),
        .file = find(metadata, tokenizer, {"fim_sep"}, {"<|file_sep|>"}),
    };
}

std::vector<Token> infill_tokens(const Gap& gap, const InfillTokens& tokens, const Tokenizer& tokenizer, size_t most) {
    std::vector<Token> prompt;
    const auto add = [&](std::string_view text) {
        const auto more = tokenizer.encode(text, {.add_special = false, .parse_special = false, .most_tokens = most});
        prompt.insert(prompt.end(), more.begin(), more.end());
    };
    const auto begin_file = [&](std::string_view name) {
        if (tokens.file == kNoToken) return add(kBetweenFiles);
        prompt.push_back(tokens.file);
        add(std::string(name) + "\n");
    };
    if (tokenizer.adds_bos() && tokenizer.bos() != kNoToken) prompt.push_back(tokenizer.bos());
    if (!gap.others.empty()) {
        if (tokens.repository != kNoToken) {
            prompt.push_back(tokens.repository);
            add(kRepository);
        }
        for (const OtherFile& file : gap.others) {
            begin_file(file.name);
            add(file.text);
            if (prompt.size() > most) return prompt;
        }
        begin_file("filename");
    }
    prompt.push_back(tokens.prefix);
    add(gap.before);
    prompt.push_back(tokens.suffix);
    add(gap.behind);
    prompt.push_back(tokens.middle);
    return prompt;
}

}  // namespace tessera::text
