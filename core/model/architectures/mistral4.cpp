// Mistral-Small-4: DeepSeek's shape with softmax routers, and queries whose scale grows with the position.
#include "core/model/architectures.hpp"

namespace tessera::architectures {

extern const Architecture mistral4;
const Architecture mistral4{{"mistral4"}, read_latent_model, {}};

}  // namespace tessera::architectures
