// InternLM2 and 2.5: the shape of Llama.
#include "core/model/architectures.hpp"

namespace tessera::architectures {
namespace {

ModelDescription describe_internlm2(ModelFile& model) {
    CommonParameters common = read_common(model);
    const Attention attention = read_grouped_attention(model, common, RopeMode::kNorm);
    common.model.layers = make_layers(model, common, attention);
    return common.model;
}

}  // namespace

extern const Architecture internlm2;
const Architecture internlm2{{"internlm2"}, describe_internlm2, {}};

}  // namespace tessera::architectures
