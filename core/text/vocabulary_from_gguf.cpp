#include "core/text/vocabulary_from_gguf.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/text/vocabulary_keys.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

namespace tessera::text {
namespace {

void copy_strings(const gguf::StringArray& from, std::vector<std::string>& to) {
    to.reserve(from.size());
    for (const std::string_view text : from) to.emplace_back(text);
}

// In files "none" is a missing key, or -1 in either signedness.
std::optional<int64_t> find_number(const gguf::Metadata& metadata, std::string_view key) {
    const auto value = metadata.find_as<int64_t>(key);
    if (!value || *value == -1 || *value == std::numeric_limits<uint32_t>::max()) return std::nullopt;
    return value;
}

Token find_token(const gguf::Metadata& metadata, std::string_view key) {
    const auto value = find_number(metadata, key);
    if (!value) return kNoToken;
    if (!std::in_range<Token>(*value) || *value < 0)
        fail(TSR_CORRUPT_DATA, "{}: {}: expected the number of a token, found {}", metadata.source(), key, *value);
    return static_cast<Token>(*value);
}

// Of a token that no text needs. Whether there is such a token is for Tokenizer to say.
Token find_unneeded(const gguf::Metadata& metadata, std::string_view key, VocabularyData& data) {
    const auto value = find_number(metadata, key);
    if (value && std::in_range<Token>(*value)) return static_cast<Token>(*value);
    if (value) data.notes.push_back(fmt::format("{} is {}: taken as none", key, *value));
    return kNoToken;
}

// The ids that SentencePiece gives unless it is told otherwise, where the tokens agree.
void fill_usual(const gguf::Metadata& metadata, VocabularyData& data) {
    struct Usual {
        Token& id;
        Token usual;
        TokenType type;
        const char* key;
    };
    for (const Usual& one : {Usual{data.unk, 0, TokenType::kUnknown, "tokenizer.ggml.unknown_token_id"},
                             Usual{data.bos, 1, TokenType::kControl, "tokenizer.ggml.bos_token_id"},
                             Usual{data.eos, 2, TokenType::kControl, "tokenizer.ggml.eos_token_id"}}) {
        const auto at = static_cast<size_t>(one.usual);
        if (metadata.contains(one.key) || at >= std::min(data.types.size(), data.tokens.size())) continue;
        if (data.types[at] != one.type) continue;
        one.id = one.usual;
        data.notes.push_back(
            fmt::format("{} is missing: {} is taken, '{}'", one.key, one.usual, printable(data.tokens[at], 40)));
    }
}

}  // namespace

VocabularyData vocabulary_from_gguf(const gguf::Metadata& metadata) {
    VocabularyData data;
    data.notes = check_vocabulary_keys(metadata);
    data.model = metadata.get_string("tokenizer.ggml.model");
    data.pre = metadata.find_string("tokenizer.ggml.pre").value_or("");
    copy_strings(metadata.get_strings("tokenizer.ggml.tokens"), data.tokens);
    if (auto scores = metadata.find_array<float>("tokenizer.ggml.scores")) data.scores = *std::move(scores);
    if (const auto types = metadata.find_array<int32_t>("tokenizer.ggml.token_type")) {
        data.types.reserve(types->size());
        for (const int32_t type : *types) data.types.push_back(static_cast<TokenType>(type));
    }
    if (const gguf::StringArray* merges = metadata.find_strings("tokenizer.ggml.merges"))
        copy_strings(*merges, data.merges);
    data.bos = find_token(metadata, "tokenizer.ggml.bos_token_id");
    data.eos = find_token(metadata, "tokenizer.ggml.eos_token_id");
    data.eot = find_unneeded(metadata, "tokenizer.ggml.eot_token_id", data);
    data.eom = find_unneeded(metadata, "tokenizer.ggml.eom_token_id", data);
    data.unk = find_unneeded(metadata, "tokenizer.ggml.unknown_token_id", data);
    data.pad = find_unneeded(metadata, "tokenizer.ggml.padding_token_id", data);
    for (const char* name : {"fim_pad", "fim_rep", "fim_sep"}) {
        const Token token = find_unneeded(metadata, fmt::format("tokenizer.ggml.{}_token_id", name), data);
        if (token != kNoToken) data.other_ends.push_back(token);
    }
    data.add_bos = metadata.find_bool("tokenizer.ggml.add_bos_token");
    data.add_eos = metadata.find_bool("tokenizer.ggml.add_eos_token");
    data.add_space_prefix = metadata.find_bool("tokenizer.ggml.add_space_prefix");
    data.remove_extra_blanks = metadata.find_bool("tokenizer.ggml.remove_extra_whitespaces").value_or(false);
    // Only the tokenizer.json of Phi-3 and Phi-3.5 says so (rstrip), which no key of a file carries. Phi-4, of the same
    // architecture, has another model of tokens.
    data.strips_after_special =
        data.model == "llama" && metadata.find_string("general.architecture").value_or("") == "phi3";
    if (data.model == "llama") fill_usual(metadata, data);
    return data;
}

}  // namespace tessera::text
