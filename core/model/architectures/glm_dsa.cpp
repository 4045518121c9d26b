// GLM-5, 5.1, 5.2: as DeepSeek-V3.2, but for indexers that several layers share from 5.2 on.
#include "core/model/architectures.hpp"

namespace tessera::architectures {

extern const Architecture glm_dsa;
const Architecture glm_dsa{{"glm-dsa"}, read_latent_model, {{}, kIndexerKeys}};

}  // namespace tessera::architectures
