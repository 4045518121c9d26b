#include "core/model/rope_settings.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <string_view>

namespace tessera {
namespace {

// What read_rope() will find: a factor without a type is linear.
std::string scaling_type(const RopeSettings& settings, const gguf::Metadata& metadata, const std::string& prefix) {
    if (settings.scaling) return *settings.scaling;
    if (const auto type = metadata.find_string(prefix + "scaling.type")) return std::string(*type);
    const auto factor = metadata.find_f32(prefix + "scaling.factor");
    return settings.factor || factor.value_or(1) != 1 ? "linear" : "none";
}

}  // namespace

std::vector<gguf::Override> rope_overrides(const RopeSettings& settings, const gguf::Metadata& metadata) {
    const std::string prefix = std::string(metadata.get_string("general.architecture")) + ".rope.";
    std::vector<gguf::Override> overrides;
    const auto replace = [&](std::string_view name, gguf::Value value) {
        overrides.push_back({prefix + std::string(name), std::move(value)});
    };
    const std::string type = scaling_type(settings, metadata, prefix);
    if (settings.scaling) replace("scaling.type", *settings.scaling);
    if (settings.base) replace("freq_base", *settings.base);
    if (settings.factor) {
        if (type == "none" && *settings.factor != 1)
            fail(TSR_INVALID_ARGUMENT,
                 Notice::on(Setting::kRopeScale, fmt::format("{}", *settings.factor),
                            fmt::format("positions are not scaled, since {} is none",
                                        settings.scaling ? "the scaling asked for" : prefix + "scaling.type"),
                            {{AdviceCode::kRopeScaling, "linear or yarn"}}));
        replace("scaling.factor", *settings.factor);
        if (metadata.contains(prefix + "scale_linear")) replace("scale_linear", *settings.factor);
    }
    const auto of_yarn = [&](Setting setting, bool neutral, std::string_view name, gguf::Value value) {
        if (type == "yarn") return replace(name, std::move(value));
        if (neutral) return;
        fail(TSR_INVALID_ARGUMENT,
             Notice::on(setting, "",
                        fmt::format("has a meaning with YaRN alone, and the scaling is '{}'", printable(type, 40)),
                        {{AdviceCode::kRopeScaling, "yarn"}}));
    };
    if (const auto& n = settings.original_context)
        of_yarn(Setting::kYarnOriginalContext, false, "scaling.original_context_length", *n);
    if (const auto& x = settings.ext_factor) of_yarn(Setting::kYarnExtFactor, *x == 0, "scaling.yarn_ext_factor", *x);
    if (const auto& x = settings.attn_factor) {
        const float given = metadata.find_f32(prefix + "scaling.attn_factor").value_or(1);
        of_yarn(Setting::kYarnAttnFactor, *x == 1, "scaling.attn_factor",
                given == 0 ? *x : *x * given);  // 0: not given
    }
    if (const auto& x = settings.beta_fast) of_yarn(Setting::kYarnBetaFast, false, "scaling.yarn_beta_fast", *x);
    if (const auto& x = settings.beta_slow) of_yarn(Setting::kYarnBetaSlow, false, "scaling.yarn_beta_slow", *x);
    return overrides;
}

}  // namespace tessera
