// DeepSeek-V2, V2-Lite, V2.5, V3, R1 (arXiv 2405.04434, 2412.19437) and what follows their shape: Kimi-K2, Moonlight,
// GLM-4.7-Flash, GigaChat3, Youtu, Mistral-Large-3, and DeepSeek-V3.2 as it was converted at first.
#include "core/model/architectures.hpp"

namespace tessera::architectures {

extern const Architecture deepseek2;
const Architecture deepseek2{{"deepseek2"}, read_latent_model, {{}, kIndexerKeys}};

}  // namespace tessera::architectures
