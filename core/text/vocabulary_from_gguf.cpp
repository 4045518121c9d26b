#include "core/text/vocabulary_from_gguf.hpp"

#include "core/base/error.hpp"

#include <limits>

namespace tessera::text {
namespace {

void copy_strings(const gguf::StringArray& from, std::vector<std::string>& to) {
    to.reserve(from.size());
    for (const std::string_view text : from) to.emplace_back(text);
}

// In files "none" is a missing key, or -1 in either signedness.
Token find_token(const gguf::Metadata& metadata, std::string_view key) {
    const auto value = metadata.find_as<int64_t>(key);
    if (!value || *value == -1 || *value == std::numeric_limits<uint32_t>::max()) return kNoToken;
    if (*value < 0 || *value > std::numeric_limits<Token>::max())
        fail(TSR_CORRUPT_DATA, "{}: {}: expected the number of a token, found {}", metadata.source(), key, *value);
    return static_cast<Token>(*value);
}

}  // namespace

VocabularyData vocabulary_from_gguf(const gguf::Metadata& metadata) {
    VocabularyData data;
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
    data.eot = find_token(metadata, "tokenizer.ggml.eot_token_id");
    data.eom = find_token(metadata, "tokenizer.ggml.eom_token_id");
    data.unk = find_token(metadata, "tokenizer.ggml.unknown_token_id");
    data.pad = find_token(metadata, "tokenizer.ggml.padding_token_id");
    data.add_bos = metadata.find_bool("tokenizer.ggml.add_bos_token");
    data.add_eos = metadata.find_bool("tokenizer.ggml.add_eos_token");
    data.add_space_prefix = metadata.find_bool("tokenizer.ggml.add_space_prefix");
    return data;
}

}  // namespace tessera::text
