#include "core/model/rope.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <cmath>
#include <string_view>

namespace tessera {
namespace {

// By how much positions are divided; the key had another name once.
std::optional<double> scaling_factor(ModelFile& model) {
    const auto factor = model.find_number("rope.scaling.factor"), old = model.find_number("rope.scale_linear");
    for (const auto& one : {factor, old}) {
        if (one && *one < 0) {
            fail(TSR_CORRUPT_DATA, "{}: {} is {}; a positive number is needed", model.source(),
                 model.key("rope.scaling.factor"), *one);
        }
    }
    if (factor && old && *factor != *old) {
        fail(TSR_CORRUPT_DATA, "{}: {} is {}, and {}, its name of before, is {}", model.source(),
             model.key("rope.scaling.factor"), *factor, model.key("rope.scale_linear"), *old);
    }
    return factor ? factor : old;
}

void read_yarn(ModelFile& model, Rope& rope, double factor, double ext_factor, int64_t context) {
    rope.ext_factor = ext_factor;
    const auto beta = [&](std::string_view key, double otherwise) {
        return model.or_said(key, model.find_positive(key), otherwise);
    };
    rope.beta_fast = beta("rope.scaling.yarn_beta_fast", rope.beta_fast);
    rope.beta_slow = beta("rope.scaling.yarn_beta_slow", rope.beta_slow);
    rope.original_context = model.or_said("rope.scaling.original_context_length",
                                          model.find_count("rope.scaling.original_context_length"), context);
    if (rope.ext_factor != 0) rope.attn_factor *= 1.0 + 0.1 * std::log(factor);
}

}  // namespace

ScaledRope read_rope(ModelFile& model, RopeMode mode, int64_t dimensions, int64_t context) {
    ScaledRope scaled;
    Rope& rope = scaled.rope;
    rope.mode = mode;
    rope.dimensions = dimensions;
    rope.base = model.or_said("rope.freq_base", model.find_positive("rope.freq_base"), rope.base);
    const std::optional<double> factor = scaling_factor(model);
    const auto type = model.find_text("rope.scaling.type");
    const bool has_tables = model.has_tensor(tensor_name(ModelTensor::kRopeFactorsShort).name) ||
                            model.has_tensor(tensor_name(ModelTensor::kRopeFactorsLong).name);
    const bool is_long = type == "longrope" && has_tables;
    if (type && *type != "none" && *type != "linear" && *type != "yarn" && !is_long) {
        fail(TSR_UNSUPPORTED, Notice(fmt::format("{}: {} is '{}'; this version computes none, linear and yarn",
                                                 model.source(), model.key("rope.scaling.type"), printable(*type)),
                                     {{AdviceCode::kRopeScaling, "none, linear or yarn"}}));
    }
    if (type && type != "yarn")
        scaled.log_multiplier = model.find_number("rope.scaling.yarn_log_multiplier").value_or(0.0);
    // As in llama.cpp, both belong to no type: sine and cosine are scaled with any, and linear positions with an
    // ext_factor are mixed with those that are not scaled, as YaRN's are. Without a scale there is nothing to mix.
    rope.attn_factor = scaled.given_attn_factor = model.find_positive("rope.scaling.attn_factor").value_or(1.0);
    const double ext_factor = model.find_number("rope.scaling.yarn_ext_factor").value_or(type == "yarn" ? 1.0 : 0.0);
    if (type == "none" || is_long) {
        if (factor.value_or(1) != 1) {
            model.note(fmt::format("{} {} not used: {} is {}", model.key("rope.scaling.factor"), *factor,
                                   model.key("rope.scaling.type"), *type));
        }
        return scaled;
    }
    if (!type && factor.value_or(1) == 1) return scaled;
    if (!type) model.say_default("rope.scaling.type", "linear");
    scaled.factor = model.or_said("rope.scaling.factor", factor, 1.0);
    rope.freq_scale = 1.0 / scaled.factor;
    if (type == "yarn" || ext_factor != 0) read_yarn(model, rope, scaled.factor, ext_factor, context);
    return scaled;
}

}  // namespace tessera
