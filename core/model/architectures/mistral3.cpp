// Ministral 3 and Devstral 2: Llama with YaRN, and queries that are scaled by their position.
#include "core/base/error.hpp"
#include "core/model/architectures.hpp"

#include <cmath>

namespace tessera::architectures {
namespace {

// YaRN (arXiv 2309.00071) scales sine and cosine by 1 + 0.1 ln(factor). With a multiplier that is divided by what the
// multiplier makes of it: 1 takes it back.
void read_yarn_multiplier(ModelFile& model, Rope& rope) {
    constexpr const char* kKey = "rope.scaling.yarn_log_multiplier";
    const auto given = model.find_number(kKey);
    if (given && *given < 0) {
        fail(TSR_CORRUPT_DATA, "{}: {} is {}; a number that is not negative is needed", model.source(), model.key(kKey),
             *given);
    }
    if (rope.ext_factor == 0 || rope.freq_scale >= 1) return;
    rope.attn_factor /= 1.0 - 0.1 * model.or_said(kKey, given, 0.0) * std::log(rope.freq_scale);
}

ModelDescription describe_mistral3(ModelFile& model) {
    CommonParameters common = read_common(model);
    Attention attention = read_grouped_attention(model, common, RopeMode::kNorm);
    read_yarn_multiplier(model, *attention.rope);
    read_temperature(model, attention);
    const auto experts = read_experts(model, common.layers, {.normalize = true, .length = common.feed_forward});
    common.model.layers = make_layers(model, common, attention, experts, 0);
    return common.model;
}

}  // namespace

extern const Architecture mistral3;
const Architecture mistral3{{"mistral3"}, describe_mistral3, {}};

}  // namespace tessera::architectures
