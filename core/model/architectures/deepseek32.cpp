// DeepSeek-V3.2 (arXiv 2512.02556): V3 whose attention is sparse. It is computed as dense attention, which is the same
// up to as many tokens as the indexer chooses.
#include "core/model/architectures.hpp"

namespace tessera::architectures {

extern const Architecture deepseek32;
const Architecture deepseek32{{"deepseek32"}, read_latent_model, {{}, kIndexerKeys}};

}  // namespace tessera::architectures
