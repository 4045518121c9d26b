#include "core/model/rope.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <tessera/cpp/node.hpp>

#include <cmath>

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

void read_yarn(ModelFile& model, RopeParameters& rope, double ext_factor, int64_t context) {
    rope.ext_factor = ext_factor;
    rope.beta_fast = model.find_positive("rope.scaling.yarn_beta_fast").value_or(rope.beta_fast);
    rope.beta_slow = model.find_positive("rope.scaling.yarn_beta_slow").value_or(rope.beta_slow);
    rope.original_context = model.or_said("rope.scaling.original_context_length",
                                          model.find_count("rope.scaling.original_context_length"), context);
    if (rope.ext_factor != 0) rope.attn_factor *= 1.0 + 0.1 * std::log(rope.factor);
}

}  // namespace

RopeParameters read_rope(ModelFile& model, std::string mode, int64_t context) {
    RopeParameters rope;
    rope.mode = std::move(mode);
    rope.base = model.or_said("rope.freq_base", model.find_positive("rope.freq_base"), rope.base);
    const std::optional<double> factor = scaling_factor(model);
    const auto type = model.find_text("rope.scaling.type");
    if (type && *type != "none" && *type != "linear" && *type != "yarn") {
        fail(
            TSR_UNSUPPORTED,
            "{}: {} is '{}'; this version computes none, linear and yarn, and --rope-scaling takes one of them instead",
            model.source(), model.key("rope.scaling.type"), printable(*type));
    }
    if (type && type != "yarn")
        rope.log_multiplier = model.find_number("rope.scaling.yarn_log_multiplier").value_or(0.0);
    // As in llama.cpp, both belong to no type: sine and cosine are scaled with any, and linear positions with an
    // ext_factor are mixed with those that are not scaled, as YaRN's are. Without a scale there is nothing to mix.
    rope.attn_factor = rope.given_attn_factor = model.find_positive("rope.scaling.attn_factor").value_or(1.0);
    const double ext_factor = model.find_number("rope.scaling.yarn_ext_factor").value_or(type == "yarn" ? 1.0 : 0.0);
    if (type == "none") {
        if (factor.value_or(1) != 1) {
            model.note(fmt::format("{} {} not used: {} is none", model.key("rope.scaling.factor"), *factor,
                                   model.key("rope.scaling.type")));
        }
        return rope;
    }
    if (!type && factor.value_or(1) == 1) return rope;
    if (!type) model.say_default("rope.scaling.type", "linear");
    rope.factor = model.or_said("rope.scaling.factor", factor, 1.0);
    rope.freq_scale = 1.0 / rope.factor;
    if (type == "yarn" || ext_factor != 0) read_yarn(model, rope, ext_factor, context);
    return rope;
}

std::vector<tsr_attribute> RopeParameters::attributes(const char* const (&names)[8]) const {
    return {sdk::attribute(names[0], mode.c_str()), sdk::attribute(names[1], base),
            sdk::attribute(names[2], freq_scale),   sdk::attribute(names[3], ext_factor),
            sdk::attribute(names[4], attn_factor),  sdk::attribute(names[5], beta_fast),
            sdk::attribute(names[6], beta_slow),    sdk::attribute(names[7], original_context)};
}

}  // namespace tessera
