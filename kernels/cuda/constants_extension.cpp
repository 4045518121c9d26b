// What plans rest on, for the host to show (tessera/extensions/estimate_constants.h).
#include "card_constants.hpp"
#include "ops.hpp"

#include <tessera/extensions/estimate_constants.h>

#include <algorithm>
#include <string_view>

namespace tessera::cuda_ops {
namespace {

uint32_t list_constants(const tsr_estimate_constants*, const tsr_device_info* device, tsr_estimate_constant* constants,
                        uint32_t room) {
    const CardConstants& card = constants_of(device->compute_capability);
    const auto seconds = [](const char* name, const CardConstant& constant) {
        return tsr_estimate_constant{name, "us", constant.value * 1e6, constant.measured};
    };
    const auto share = [](const char* name, const CardConstant& constant) {
        return tsr_estimate_constant{name, "", constant.value, constant.measured};
    };
    const tsr_estimate_constant all[] = {
        seconds("graph node", card.graph_node),
        seconds("launch", card.launch),
        seconds("memory latency", card.memory_latency),
        share("share of the memory's bandwidth", card.memory_share),
        share("rate of the second-level cache over the memory's", card.cached_rate),
        share("share of the counted rate of products", card.product_share),
        share("share of the counted rate of attention", card.attention_share),
        share("share of the tensor cores' rate by mma.sync", card.mma_share),
    };
    // The last one is of data-centre cards from Hopper on.
    const bool has_more = device->compute_capability >= 900 && device->compute_capability < 1200;
    const auto count = std::min(room, static_cast<uint32_t>(std::size(all)) - (has_more ? 0 : 1));
    std::copy_n(all, count, constants);
    return count;
}

constexpr tsr_estimate_constants kConstants = {sizeof(tsr_estimate_constants), 0, nullptr, list_constants};

}  // namespace

const void* get_extension(const tsr_plugin*, const char* tag) noexcept {
    return tag && std::string_view(tag) == TSR_ESTIMATE_CONSTANTS ? &kConstants : nullptr;
}

}  // namespace tessera::cuda_ops
