#include "core/model/unused.hpp"

#include "core/base/error.hpp"
#include "core/base/pattern.hpp"
#include "core/base/text.hpp"

#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <type_traits>

namespace tessera {
namespace {

constexpr size_t kNamesShown = 4;

// Beginnings of keys that are no architecture's: about the file, its text, its parts and how it was made.
constexpr std::string_view kOtherPrefixes[] = {"general.", "tokenizer.", "split.", "quantize.", "imatrix."};

constexpr KeyRule kCommonKeys[] = {
    {"tensor_data_layout", "*", "the converter's note about its source"},
    {"rope.scaling.finetuned", "*", "tells how the model was trained"},
    {"rope.scaling.original_context_length", "*", "YaRN's, and the scaling is another", true},
    {"pooling_type", "*", "embeddings are not results of this model", true},
    {"use_parallel_residual", "false", "residuals one after the other"},
    {"swin_norm", "false", "norms before attention and feed-forward"},
    {"decoder_start_token_id", "*", "of models with an encoder"},
    {"decoder_block_count", "0", "there is no decoder beside the layers"},
    {"embedding_length_per_layer_input", "0", "none"},
    {"hidden_activation", "silu", "silu"},
    {"hidden_act", "silu", "silu"},
    {"logit_scale", "1 0", "not scaled"},
    {"residual_scale", "1 0", "not scaled"},
    {"embedding_scale", "1 0", "not scaled"},
    {"attn_logit_softcapping", "0", "not capped"},
    {"router_logit_softcapping", "0", "not capped"},
    {"final_logit_softcapping", "0", "not capped"},
    {"swiglu_clamp_exp", "0", "not clamped"},
    {"swiglu_clamp_shexp", "0", "not clamped"},
    {"swiglu_limits", "0", "not clamped"},
    {"swiglu_limits_shared", "0", "not clamped"},
    {"n_deepstack_layers", "0", "none"},
    {"nextn_predict_layers", "0", "none"},
    {"leading_dense_block_count", "0", "none"},
    {"interleave_moe_layer_step", "1 0", "experts in every layer"},
    {"moe_every_n_layers", "1 0", "experts in every layer"},
    {"expert_shared_count", "0", "none"},
    {"expert_shared_feed_forward_length", "0", "none"},
    {"expert_group_count", "1 0", "one group"},
    {"expert_group_used_count", "1 0", "one group"},
    {"expert_group_scale", "1 0", "not scaled"},
    {"attention.causal", "true", "causal attention"},
    {"attention.layer_norm_epsilon", "*", "of norms that subtract the mean; those computed have their own key"},
    {"attention.sliding_window", "context", "attention to all of the context"},
    {"attention.clamp_kqv", "0", "not clamped"},
    {"attention.max_alibi_bias", "0", "no bias"},
    {"attention.scale", "0", "1 / sqrt of a head's length"},
    {"attention.output_scale", "1 0", "not scaled"},
    {"attention.value_scale", "1 0", "not scaled"},
    {"attention.temperature_scale", "0", "no temperature"},
    {"attention.temperature_length", "*", "of attention.temperature_scale"},
    {"attention.shared_kv_layers", "0", "none"},
    {"attention.relative_buckets_count", "0", "none"},
    {"attention.q_lora_rank", "0", "queries that are not compressed"},
    {"rope.scaling.attn_factor", "1 0", "not scaled"},
    {"rope.scaling.yarn_attn_factor", "1 0", "not scaled"},
    {"rope.scaling.yarn_log_multiplier", "0", "not scaled"},
    {"rope.scaling.yarn_ext_factor", "0", "no YaRN"},
    {"rope.scaling.yarn_beta_fast", "*", "YaRN's, and the scaling is another", true},
    {"rope.scaling.yarn_beta_slow", "*", "YaRN's, and the scaling is another", true},
    {"rope.dimension_sections", "0", "none"},
};

// Where no layer has experts, keys about them change nothing; tensors of experts refuse the file by their names.
constexpr KeyRule kKeysOfExperts[] = {
    {"expert_*", "*", "there are no experts"},
    {"leading_dense_block_count", "*", "there are no experts"},
    {"interleave_moe_layer_step", "*", "there are no experts"},
    {"moe_every_n_layers", "*", "there are no experts"},
    {"moe_latent_size", "*", "there are no experts"},
    {"router_logit_softcapping", "*", "there are no experts"},
    {"swiglu_clamp_exp", "*", "there are no experts"},
    {"swiglu_clamp_shexp", "*", "there are no experts"},
};

// Parts of names of keys that change what is computed. Whoever invents a key calls it by one of these.
constexpr std::string_view kTellingParts[] = {
    "attention", "attn",    "rope",      "rotary",   "expert", "moe",      "router",  "ssm",     "layer",
    "scale",     "scaling", "temp",      "window",   "bias",   "clamp",    "limit",   "cap",     "norm",
    "eps",       "sink",    "gat",       "group",    "head",   "residual", "alibi",   "causal",  "activation",
    "hidden",    "length",  "count",     "factor",   "freq",   "interval", "rank",    "pattern", "hyper",
    "lora",      "mask",    "embedding", "compress", "shift",  "mix",      "indexer", "act_fn",  "multiplier"};

bool matches(std::string_view rule, std::string_view name) {
    if (rule.ends_with('*')) return name.starts_with(rule.substr(0, rule.size() - 1));
    return name == rule;
}

// Numbers without trailing zeros, so that 0 and 0.0 are one.
template <typename T>
std::string plain_text(const T& value) {
    if constexpr (std::is_floating_point_v<T>)
        return fmt::format("{:g}", value);
    else
        return fmt::format("{}", value);
}

// Whether `holds` of the value's text, or of those of all elements of an array. Arrays may be long: it ends at the
// first of which it does not.
template <typename Predicate>
bool all_texts(const gguf::Value& value, const Predicate& holds) {
    return std::visit(
        [&](const auto& one) {
            if constexpr (std::is_same_v<std::decay_t<decltype(one)>, gguf::Array>) {
                return std::visit(
                    [&](const auto& elements) {
                        if constexpr (std::is_same_v<std::decay_t<decltype(elements)>, gguf::NoNesting>) {
                            return false;
                        } else {
                            for (const auto& element : elements) {
                                if (!holds(plain_text(element))) return false;
                            }
                            return true;
                        }
                    },
                    one);
            } else {
                return holds(plain_text(one));
            }
        },
        value);
}

bool is_neutral(const ModelFile& model, const KeyRule& rule, const gguf::Value& value) {
    if (rule.neutral == "*") return true;
    const auto neutral = [&](const std::string& text) {
        for (std::string_view left = rule.neutral; !left.empty();) {
            const std::string_view one = left.substr(0, left.find(' '));
            left.remove_prefix(std::min(left.size(), one.size() + 1));
            if (one == text) return true;
            if (one != "context") continue;
            uint64_t number = 0;
            std::from_chars(text.data(), text.data() + text.size(), number);
            if (number >= model.metadata().get_u64(model.key("context_length"))) return true;
        }
        return false;
    };
    return all_texts(value, neutral);
}

bool has_experts(const ModelFile& model) {
    const gguf::Value* count = model.metadata().find(model.key("expert_count"));
    return count && !all_texts(*count, [](std::string_view text) { return text == "0"; });
}

const KeyRule* find_rule(std::span<const KeyRule> own, bool experts, std::string_view name) {
    const std::span<const KeyRule> of_experts = kKeysOfExperts, common = kCommonKeys;
    for (const std::span<const KeyRule> rules : {own, experts ? std::span<const KeyRule>() : of_experts, common}) {
        for (const KeyRule& rule : rules) {
            if (matches(rule.name, name)) return &rule;
        }
    }
    return nullptr;
}

std::string names_text(const std::vector<std::string>& names) {
    std::string text;
    for (size_t i = 0; i < std::min(names.size(), kNamesShown); ++i) text += (i ? ", " : "") + printable(names[i], 100);
    if (names.size() > kNamesShown) text += fmt::format(" and {} more", names.size() - kNamesShown);
    return text;
}

struct Keys {
    std::vector<std::string> refused, unknown;                          // "key = value"
    std::map<std::string_view, std::vector<std::string>> not_computed;  // keys, by the reason
};

Keys unread_keys(const ModelFile& model, const KnownUnused& known) {
    Keys keys;
    const std::string prefix = model.architecture() + ".";
    const bool experts = has_experts(model);
    for (const auto& [key, value] : model.metadata().entries()) {
        if (model.was_read(key)) continue;
        if (!key.starts_with(prefix)) {
            const bool other =
                std::ranges::any_of(kOtherPrefixes, [&](std::string_view one) { return key.starts_with(one); });
            if (!other) keys.unknown.push_back(fmt::format("{} = {}", key, gguf::to_text(value, 4)));
            continue;
        }
        const std::string_view name = std::string_view(key).substr(prefix.size());
        const KeyRule* rule = find_rule(known.keys, experts, name);
        if (!model.is_given(name)) continue;
        if (rule && is_neutral(model, *rule, value)) {
            if (rule->is_said) keys.not_computed[rule->reason].push_back(key);
            continue;
        }
        const bool telling = rule || std::ranges::any_of(kTellingParts, [&](std::string_view part) {
                                 return name.find(part) != std::string_view::npos;
                             });
        std::string line = fmt::format("{} = {}", key, gguf::to_text(value, 4));
        if (rule) line += fmt::format(" (computed: {})", rule->reason);
        (telling ? keys.refused : keys.unknown).push_back(std::move(line));
    }
    return keys;
}

struct Tensors {
    std::vector<std::string> unknown;
    std::vector<std::pair<std::string, std::vector<std::string>>> known;  // reason, names
};

Tensors unclaimed_tensors(const ModelFile& model, const KnownUnused& known) {
    Tensors result;
    std::vector<std::pair<Pattern, const std::string*>> rules;
    for (const std::span<const UnusedTensors> list :
         {known.tensors, std::span<const UnusedTensors>(model.left_out())}) {
        for (const UnusedTensors& one : list) rules.emplace_back(Pattern(one.pattern), &one.reason);
    }
    for (const gguf::TensorEntry& tensor : model.file().tensors()) {
        if (model.is_claimed(tensor.name)) continue;
        const auto rule = std::ranges::find_if(rules, [&](const auto& r) { return r.first.found_in(tensor.name); });
        if (rule == rules.end()) {
            result.unknown.push_back(tensor.name);
            continue;
        }
        auto at = std::ranges::find(result.known, *rule->second, [](const auto& entry) { return entry.first; });
        if (at == result.known.end()) at = result.known.insert(at, {*rule->second, {}});
        at->second.push_back(tensor.name);
    }
    return result;
}

}  // namespace

std::vector<std::string> check_unused(const ModelFile& model, const KnownUnused& known, bool allow) {
    std::vector<std::string> notes;
    const Tensors tensors = unclaimed_tensors(model, known);
    const Keys keys = unread_keys(model, known);
    for (const auto& [reason, names] : tensors.known)
        notes.push_back(
            fmt::format("{} not used ({}): {}", counted(names.size(), "tensor"), names_text(names), reason));
    for (const auto& [reason, names] : keys.not_computed)
        notes.push_back(fmt::format("{} not used ({}): {}", counted(names.size(), "key"), names_text(names), reason));
    if (!keys.unknown.empty())
        notes.push_back(fmt::format("keys that are not known and not used: {}", names_text(keys.unknown)));
    if (allow) {
        if (!tensors.unknown.empty()) {
            notes.push_back(fmt::format("{} of the file not used, as allowed: {}",
                                        counted(tensors.unknown.size(), "tensor"), names_text(tensors.unknown)));
        }
        if (!keys.refused.empty())
            notes.push_back(fmt::format("keys that are not used, as allowed: {}", names_text(keys.refused)));
        return notes;
    }
    if (!tensors.unknown.empty()) {
        fail(TSR_UNSUPPORTED,
             Notice(fmt::format("{}: {} of the file would not be used: {}; what this version computes as '{}' has no "
                                "such tensor, and without it the results would be another model's",
                                model.source(), counted(tensors.unknown.size(), "tensor"), names_text(tensors.unknown),
                                model.architecture()),
                    {{AdviceCode::kAllowUnused, ""}}));
    }
    if (!keys.refused.empty()) {
        fail(TSR_UNSUPPORTED,
             Notice(fmt::format("{}: the file asks for what this version does not compute: {}; without it the results "
                                "would be another model's",
                                model.source(), names_text(keys.refused)),
                    {{AdviceCode::kOtherMetadata, ""}, {AdviceCode::kAllowUnused, ""}}));
    }
    return notes;
}

}  // namespace tessera
