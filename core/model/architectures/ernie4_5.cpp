// ERNIE 4.5, dense: the shape of Llama.
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

ModelDescription describe_ernie4_5(ModelFile& model) {
    CommonParameters common = read_common(model);
    const Attention attention = read_grouped_attention(model, common, RopeMode::kNorm);
    common.model.layers = make_layers(model, common, attention);
    return common.model;
}

}  // namespace

extern const Architecture ernie4_5;
const Architecture ernie4_5{{"ernie4_5"}, describe_ernie4_5, {}};

}  // namespace tessera::architectures
