#include "core/model/rope.hpp"

#include "core/base/error.hpp"

#include <tessera/cpp/node.hpp>

#include <cmath>

namespace tessera {
namespace {

// A factor that must be a finite positive number.
double positive(const gguf::Metadata& metadata, const std::string& key, double otherwise) {
    const double value = metadata.find_f32(key).value_or(static_cast<float>(otherwise));
    if (!(value > 0) || !std::isfinite(value)) {
        fail(TSR_CORRUPT_DATA, "{}: {} is {}; a positive number is needed", metadata.source(), key, value);
    }
    return value;
}

}  // namespace

RopeParameters read_rope(const gguf::Metadata& metadata, const std::string& architecture, std::string mode,
                         uint32_t context) {
    const std::string prefix = architecture + ".rope.";
    RopeParameters rope;
    rope.mode = std::move(mode);
    rope.base = positive(metadata, prefix + "freq_base", 10000.0);
    const std::string scaling{metadata.find_string(prefix + "scaling.type").value_or("none")};
    if (scaling == "none") return rope;
    rope.factor = positive(metadata, prefix + "scaling.factor", 1.0);
    rope.freq_scale = 1.0 / rope.factor;
    if (scaling == "linear") return rope;
    if (scaling != "yarn") {
        fail(TSR_UNSUPPORTED, "{}: {}scaling.type is '{}'; this version knows none, linear and yarn", metadata.source(),
             prefix, scaling);
    }
    rope.ext_factor = 1.0;
    rope.beta_fast = positive(metadata, prefix + "scaling.yarn_beta_fast", 32.0);
    rope.beta_slow = positive(metadata, prefix + "scaling.yarn_beta_slow", 1.0);
    rope.original_context = metadata.find_u32(prefix + "scaling.original_context_length").value_or(context);
    rope.log_multiplier = metadata.find_f32(prefix + "scaling.yarn_log_multiplier").value_or(0.0f);
    rope.attn_factor = positive(metadata, prefix + "scaling.attn_factor", 1.0) * (1.0 + 0.1 * std::log(rope.factor));
    if (!std::isfinite(rope.log_multiplier)) {
        fail(TSR_CORRUPT_DATA, "{}: {}scaling.yarn_log_multiplier is {}", metadata.source(), prefix,
             rope.log_multiplier);
    }
    return rope;
}

std::vector<tsr_attribute> RopeParameters::attributes(const char* const (&names)[8]) const {
    return {sdk::attribute(names[0], mode.c_str()), sdk::attribute(names[1], base),
            sdk::attribute(names[2], freq_scale),   sdk::attribute(names[3], ext_factor),
            sdk::attribute(names[4], attn_factor),  sdk::attribute(names[5], beta_fast),
            sdk::attribute(names[6], beta_slow),    sdk::attribute(names[7], original_context)};
}

}  // namespace tessera
