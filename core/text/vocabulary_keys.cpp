#include "core/text/vocabulary_keys.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <algorithm>
#include <iterator>
#include <type_traits>

namespace tessera::text {
namespace {

constexpr std::string_view kPrefix = "tokenizer.";
constexpr std::string_view kTemplate = "chat_template";

enum class Use : uint8_t {
    kRead,
    kNotNeeded,
    kMustBeOff,
    kOfSentencePiece,  // read with the model "llama", must be off with others
};

struct KnownKey {
    std::string_view name;  // after the prefix
    Use use = Use::kRead;
    std::string_view reason = {};  // why it is not needed, or what is done instead
};

constexpr KnownKey kKnown[] = {
    {"ggml.model"},
    {"ggml.pre"},
    {"ggml.tokens"},
    {"ggml.scores"},
    {"ggml.token_type"},
    {"ggml.merges"},
    {"ggml.bos_token_id"},
    {"ggml.eos_token_id"},
    {"ggml.eot_token_id"},
    {"ggml.eom_token_id"},
    {"ggml.unknown_token_id"},
    {"ggml.padding_token_id"},
    {"ggml.fim_pad_token_id"},
    {"ggml.fim_rep_token_id"},
    {"ggml.fim_sep_token_id"},
    {"ggml.add_bos_token"},
    {"ggml.add_eos_token"},
    {"ggml.add_space_prefix"},
    {"ggml.suppress_tokens"},
    {"chat_template"},
    {"ggml.token_type_count", Use::kNotNeeded, "of models with types of segments"},
    {"ggml.add_sep_token", Use::kNotNeeded, "of models that rank pairs of texts"},
    {"ggml.seperator_token_id", Use::kNotNeeded, "of models that rank pairs of texts"},
    {"ggml.cls_token_id", Use::kNotNeeded, "of models that classify"},
    {"ggml.mask_token_id", Use::kNotNeeded, "of models that fill gaps"},
    {"ggml.image_token_id", Use::kNotNeeded, "there is no image input"},
    {"ggml.fim_pre_token_id"},
    {"ggml.fim_suf_token_id"},
    {"ggml.fim_mid_token_id"},
    {"ggml.prefix_token_id"},
    {"ggml.suffix_token_id"},
    {"ggml.middle_token_id"},
    {"huggingface.json", Use::kNotNeeded, "the same vocabulary once more"},
    {"rwkv.world", Use::kNotNeeded, "the same vocabulary once more"},
    {"ggml.remove_extra_whitespaces", Use::kOfSentencePiece, "blanks stay as they are"},
    {"ggml.precompiled_charsmap", Use::kMustBeOff, "characters stay as they are"},
    {"ggml.normalizer.lowercase", Use::kMustBeOff, "letters stay as they are"},
    {"ggml.normalizer.strip_accents", Use::kMustBeOff, "letters stay as they are"},
};

bool is_off(const gguf::Value& value) {
    return std::visit(
        [](const auto& one) {
            using T = std::decay_t<decltype(one)>;
            if constexpr (std::is_same_v<T, gguf::Array>)
                return gguf::array_size(one) == 0;
            else if constexpr (std::is_same_v<T, std::string>)
                return one.empty();
            else
                return one == T{};
        },
        value);
}

void append_key(std::string& list, std::string_view name) {
    list += fmt::format("{}{}", list.empty() ? "" : ", ", printable(name, 100));
}

}  // namespace

std::vector<std::string> check_vocabulary_keys(const gguf::Metadata& metadata) {
    std::string templates, unknown;
    const bool sentencepiece = metadata.find_string("tokenizer.ggml.model") == "llama";
    for (const auto& [key, value] : metadata.entries()) {
        if (!key.starts_with(kPrefix)) continue;
        const std::string_view name = std::string_view(key).substr(kPrefix.size());
        const auto* const known = std::ranges::find(kKnown, name, &KnownKey::name);
        if (known == std::end(kKnown)) {
            // "chat_template.tool_use", and "chat_templates", the list of such names.
            if (!name.starts_with(kTemplate))
                append_key(unknown, key);
            else if (name.size() > kTemplate.size() && name[kTemplate.size()] == '.')
                append_key(templates, name.substr(kTemplate.size() + 1));
            continue;
        }
        const bool refused = known->use == Use::kMustBeOff || (known->use == Use::kOfSentencePiece && !sentencepiece);
        if (!refused || is_off(value)) continue;
        const std::string off = fmt::format("{}={}", key, std::holds_alternative<bool>(value) ? "bool:false" : "str:");
        fail(
            TSR_UNSUPPORTED,
            Notice(fmt::format("{}: the file asks for what this version does not do: {} = {} ({}), so that texts would "
                               "be other tokens",
                               metadata.source(), key, gguf::to_text(value, 4), known->reason),
                   {{AdviceCode::kOtherMetadata, off}}));
    }
    std::vector<std::string> notes;
    if (!templates.empty())
        notes.push_back(
            fmt::format("chat templates of other names are not used ({}): tokenizer.chat_template is", templates));
    if (!unknown.empty()) notes.push_back(fmt::format("keys that are not known and not used: {}", unknown));
    return notes;
}

}  // namespace tessera::text
