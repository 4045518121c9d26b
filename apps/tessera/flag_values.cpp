#include "apps/tessera/flag_values.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/graph/types.hpp"

#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <system_error>

namespace tessera::app {
namespace {

constexpr int64_t kMaximumThreads = 4096;
constexpr double kFar = 1e6, kFarthestRope = 1e12;
constexpr double kMaximumExperts = 1 << 20;

}  // namespace

void add_plugin_folder(CommonSettings& common, std::string_view folder) {
    std::error_code unused;
    if (!std::filesystem::is_directory(folder, unused)) throw WrongValue("a folder");
    std::filesystem::path path = std::filesystem::absolute(folder).lexically_normal();
    common.plugin_folders.push_back(path.has_filename() ? path : path.parent_path());
}

std::filesystem::path parse_file_name(std::string_view text) {
    if (text.empty()) throw WrongValue("a file");
    return text;
}

void add_overrides(CommonSettings& common, std::string_view text) {
    try {
        for (const std::string& one : split_overrides(text)) common.overrides.push_back(gguf::parse_override(one));
    } catch (const Error& error) {
        throw RefusedValue(error.what());
    }
}

void set_parallel(ModelSettings& settings, std::string_view text) {
    // In other programs as many as they choose.
    if (text != "-1") settings.parallel = static_cast<uint32_t>(parse_integer(text, 1, 4096));
}

void add_stop(ModelSettings& settings, std::string_view text) {
    if (text.empty()) throw WrongValue("a text");
    settings.stop.emplace_back(text);
}

void add_bias(session::SamplingParameters& sampling, std::string_view text) {
    const size_t sign = text.find_first_of("+-");
    int32_t token = 0;
    float bias = 0;
    const char* const split = text.data() + std::min(sign, text.size());
    const char* const end = text.data() + text.size();
    const bool whole =
        sign != std::string::npos && std::from_chars(text.data(), split, token).ptr == split && split != text.data();
    const char* const number = whole && *split == '+' ? split + 1 : split;
    if (!whole || std::from_chars(number, end, bias).ptr != end || number == end)
        throw WrongValue("TOKEN+X or TOKEN-X, like 15+2.5");
    sampling.logit_bias.emplace_back(token, bias);
}

void set_draft_types(DraftSettings& drafts, std::string_view text) {
    drafts.repeat = false;
    if (text == "none") drafts.prediction = false;
    for (const std::string& type : split(text, ',')) {
        if (type == "ngram" || type.starts_with("ngram-") || type == "suffix") {
            drafts.repeat = true;
        } else if (type == "mtp" || type == "draft-mtp") {
            drafts.prediction = true;
        } else if (type != "none" && type != "draft" && type != "draft-simple") {
            throw WrongValue("none, ngram, mtp, or draft, which -md asks for anyway");
        }
    }
}

void keep_draft_experts(DraftSettings& drafts, std::string_view) {
    drafts.cpu_expert_layers = -1;
}

void add_draft_rules(DraftSettings& drafts, std::string_view text) {
    for (TensorRule& rule : parse_tensor_rules(text)) drafts.rules.push_back(std::move(rule));
}

uint32_t parse_threads(std::string_view text) {
    return static_cast<uint32_t>(std::max<int64_t>(parse_integer(text, -1, kMaximumThreads), 0));
}

uint64_t parse_scratch(std::string_view mebibytes) {
    const int64_t limit = parse_integer(mebibytes, 0, 1 << 24);
    return limit == 0 ? uint64_t{1} << 50 : static_cast<uint64_t>(limit) << 20;
}

ExpertReduction parse_expert_reduction(std::string_view text) {
    const std::vector<double> v = parse_numbers(text, -1);
    if (v.size() == 2 && v[0] == -1 && v[1] == 0) return {};
    if (!(v.size() == 2 && v[0] >= 1 && v[0] <= kMaximumExperts && v[0] == std::floor(v[0]) && v[1] >= 0 && v[1] <= 1))
        throw WrongValue("K,T like 6,0.4: at least K experts (1 or more) and a share T from 0 to 1");
    return {static_cast<uint32_t>(v[0]), v[1]};
}

tsr_type parse_cache_type(std::string_view text) {
    constexpr std::array<std::string_view, 11> types = {"f32",  "f16",  "bf16", "q8_0", "q8_KV", "q6_0",
                                                        "q5_0", "q5_1", "q4_0", "q4_1", "iq4_nl"};
    const TypeInfo* type = find_type(text);
    const std::string expected = fmt::format("{}", fmt::join(types, ", "));
    if (!type) throw WrongValue(fmt::format("one of {}", expected));
    if (std::ranges::find(types, type->name) == types.end())
        throw RefusedValue(fmt::format("{} cannot be cached; use {}", printable(text, 40), expected));
    return type->id;
}

void map_weights_if(EngineOptions& options, std::string_view text) {
    if (!parse_switch(text)) options.map_weights = false;
}

NumaMode parse_numa(std::string_view text) {
    const auto mode = parse_numa_mode(text);
    if (!mode) throw WrongValue("distribute, isolate or numactl");
    return *mode;
}

std::optional<float> parse_rope_number(std::string_view text) {
    const double value = parse_number(text, 0, kFarthestRope);
    return value == 0 ? std::nullopt : std::optional(static_cast<float>(value));
}

std::optional<float> parse_rope_share(std::string_view text) {
    const double value = parse_number(text, -kFar, kFarthestRope);
    return value < 0 ? std::nullopt : std::optional(static_cast<float>(value));
}

std::optional<float> parse_rope_positive(std::string_view text) {
    const auto value = parse_rope_share(text);
    if (value == 0.0f) throw WrongValue("a number above 0, or -1: as the model file says");
    return value;
}

std::optional<int64_t> parse_rope_context(std::string_view text) {
    const int64_t tokens = parse_integer(text, 0, kMaximumTokens);
    return tokens == 0 ? std::nullopt : std::optional(tokens);
}

int parse_gpu_layers(std::string_view text) {
    if (text == "auto") return -1;
    return text == "all" ? 1 << 16 : static_cast<int>(parse_integer(text, -1, 1 << 16));
}

std::vector<double> parse_shares(std::string_view text) {
    std::vector<double> shares = parse_numbers(text, 0);
    if (std::ranges::all_of(shares, [](double share) { return share == 0; })) throw WrongValue("a share above 0");
    return shares;
}

std::optional<std::vector<std::string>> parse_gpus(std::string_view text) {
    if (text == "none") return std::vector<std::string>();
    std::vector<std::string> ids = split(text, ',');
    std::erase(ids, "");
    if (ids.empty()) throw WrongValue("ids as in CUDA0,CUDA1, or none");
    return ids;
}

std::vector<uint64_t> parse_margins(std::string_view mebibytes) {
    std::vector<uint64_t> margins;
    for (const double mib : parse_numbers(mebibytes, 0)) {
        if (mib > 1 << 24) throw WrongValue("MiB up to 16777216");
        margins.push_back(static_cast<uint64_t>(mib) << 20);
    }
    return margins;
}

void add_tensor_rules(PlacementOptions& placement, std::string_view text) {
    for (TensorRule& rule : parse_tensor_rules(text)) placement.rules.push_back(std::move(rule));
}

void keep_experts(PlacementOptions& placement, std::string_view) {
    placement.cpu_expert_layers = -1;
}

std::vector<double> parse_numbers(std::string_view text, double minimum) {
    std::vector<double> values;
    for (std::string_view rest = text;;) {
        const size_t end = std::min(rest.find_first_of(",/"), rest.size());
        double value = 0;
        if (!parse_whole(rest.substr(0, end), value) || !(value >= minimum) || !std::isfinite(value))
            throw WrongValue("numbers separated by commas");
        values.push_back(value);
        if (end == rest.size()) return values;
        rest.remove_prefix(end + 1);
    }
}

std::vector<TensorRule> parse_tensor_rules(std::string_view text) {
    std::vector<TensorRule> rules;
    std::string pending;  // an entry without '=': the comma after it belongs to its regular expression
    for (std::string_view rest = text;;) {
        const size_t comma = std::min(rest.find_first_of(",;"), rest.size());
        pending += rest.substr(0, comma);
        // After the last '=' follows a device: letters and digits, without characters that are special in a regular
        // expression.
        const size_t equals = pending.rfind('=');
        const bool whole =
            equals != std::string::npos && equals + 1 < pending.size() &&
            pending.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-:",
                                      equals + 1) == std::string::npos;
        if (whole && equals > 0) {
            rules.push_back({pending.substr(0, equals), pending.substr(equals + 1)});
            pending.clear();
        } else if (comma < rest.size()) {
            pending += rest[comma];
        }
        if (comma == rest.size()) break;
        rest.remove_prefix(comma + 1);
    }
    if (!pending.empty() || rules.empty()) {
        throw WrongValue("REGEX=DEVICE, like exps=CPU");
    }
    return rules;
}

std::vector<std::string> split_overrides(std::string_view text) {
    std::vector<std::string> overrides;
    for (const std::string& part : split(text, ',')) {
        const size_t equals = part.find('=');
        const std::string_view typed = std::string_view(part).substr(equals == std::string::npos ? 0 : equals + 1);
        constexpr std::array<std::string_view, 4> types = {"int:", "float:", "bool:", "str:"};
        const bool begins = equals != std::string::npos && equals > 0 &&
                            std::ranges::any_of(types, [&](std::string_view type) { return typed.starts_with(type); });
        if (begins || overrides.empty()) {
            overrides.push_back(part);
        } else {
            overrides.back() += ',' + part;
        }
    }
    return overrides;
}

}  // namespace tessera::app
