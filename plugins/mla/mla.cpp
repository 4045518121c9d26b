// The mla plugin: the operator "mla_attention" and its lowerings, named as users of -mla know them. README.md
// describes them.
#include "node.hpp"
#include "writer.hpp"

#include <tessera/cpp/status.hpp>
#include <tessera/plugin.h>

#include <iterator>

namespace {

using namespace tessera::mla;
using tessera::sdk::Builder;
using tessera::sdk::Failure;
using tessera::sdk::guarded;
using tessera::sdk::set_component;

// Which attention the rows of a lowering use.
enum class Mode { kExpanded, kAbsorbed, kMixed };

struct Lowering : tsr_lowering {
    Mode mode;
    Kernel prompt;  // of all rows but in the mixed mode
    Kernel generation;
};

const tsr_status* infer_shape(const tsr_operator*, const tsr_node* node, tsr_tensor* const* outputs) {
    return guarded([&] { infer(*node, *outputs[0]); });
}

const tsr_status* expanded_components(const tsr_lowering*, const tsr_node* node, tsr_cache_component* const* components,
                                      uint32_t* count) {
    return guarded([&] {
        const Sizes s = checked_sizes(*node);
        if (*count < 2) throw Failure(TSR_UNSUPPORTED, "room for two cache components is needed");
        set_component(*components[0], "k", s.key() * s.heads, 0);
        set_component(*components[1], "v", s.v * s.heads, 1);
        *count = 2;
    });
}

const tsr_status* latent_components(const tsr_lowering*, const tsr_node* node, tsr_cache_component* const* components,
                                    uint32_t* count) {
    return guarded([&] {
        if (*count < 1) throw Failure(TSR_UNSUPPORTED, "room for a cache component is needed");
        set_component(*components[0], "latent", checked_sizes(*node).row(), 0);
        *count = 1;
    });
}

const tsr_status* build(const tsr_lowering* self, const tsr_node* node, const tsr_lowering_options* options,
                        tsr_builder* builder) {
    return guarded([&] {
        const auto& lowering = *static_cast<const Lowering*>(self);
        const bool flash = lowering.prompt == Kernel::kFlash || lowering.generation == Kernel::kFlash;
        if (flash && !options->flash_attention) throw Failure(TSR_UNSUPPORTED, "flash attention is switched off");
        const Builder table(builder);
        Writer writer(*node, *options, table);
        switch (lowering.mode) {
            case Mode::kExpanded:
                writer.expanded(lowering.prompt);
                break;
            case Mode::kAbsorbed:
                writer.absorbed(lowering.prompt);
                break;
            case Mode::kMixed:
                writer.mixed(lowering.prompt, lowering.generation);
                break;
        }
    });
}

constexpr Lowering lowering(const char* name, int32_t priority, Mode mode, Kernel prompt, Kernel generation,
                            const char* summary) {
    const bool expanded = mode == Mode::kExpanded;
    return {{sizeof(tsr_lowering), priority, nullptr, nullptr, "mla_attention", name, expanded ? "expanded" : "latent",
             summary, expanded ? expanded_components : latent_components, build},
            mode,
            prompt,
            generation};
}

// A name may occur twice: with flash attention, and with lower priority with tiles, for a device that lacks it.
constexpr Lowering kLowerings[] = {
    lowering("3", 31, Mode::kMixed, Kernel::kFlash, Kernel::kFlash,
             "latent cache; prompt expanded, generation absorbed with flash attention"),
    lowering("3", 30, Mode::kMixed, Kernel::kTiles, Kernel::kFlash,
             "latent cache; prompt expanded in tiles, generation absorbed with flash attention"),
    lowering("2", 21, Mode::kMixed, Kernel::kFlash, Kernel::kTiles,
             "latent cache; prompt expanded, generation absorbed in tiles"),
    lowering("2", 20, Mode::kMixed, Kernel::kTiles, Kernel::kTiles,
             "latent cache; prompt expanded in tiles, generation absorbed in tiles"),
    lowering("1", 11, Mode::kAbsorbed, Kernel::kFlash, Kernel::kFlash,
             "latent cache; all absorbed with flash attention"),
    lowering("1", 10, Mode::kAbsorbed, Kernel::kTiles, Kernel::kTiles, "latent cache; all absorbed in tiles"),
    lowering("0", 1, Mode::kExpanded, Kernel::kFlash, Kernel::kFlash,
             "keys and values of each head cached; flash attention"),
    lowering("0", 0, Mode::kExpanded, Kernel::kTiles, Kernel::kTiles, "keys and values of each head cached; tiles"),
};

constexpr const tsr_lowering* kLoweringList[] = {&kLowerings[0], &kLowerings[1], &kLowerings[2], &kLowerings[3],
                                                 &kLowerings[4], &kLowerings[5], &kLowerings[6], &kLowerings[7]};

constexpr tsr_operator kOperator = {
    sizeof(tsr_operator),     1, nullptr, nullptr, "mla_attention", infer_shape, kLoweringList,
    std::size(kLoweringList), 1};
constexpr const tsr_operator* kOperatorList[] = {&kOperator};

constexpr tsr_plugin kPlugin = [] {
    tsr_plugin plugin{};
    plugin.struct_size = sizeof plugin;
    plugin.abi_major = TSR_ABI_MAJOR;
    plugin.abi_minor = TSR_ABI_MINOR;
    plugin.name = "mla";
    plugin.version = "0.1.0";
    plugin.operators = kOperatorList;
    plugin.operator_count = std::size(kOperatorList);
    return plugin;
}();

}  // namespace

extern "C" TSR_EXPORT const tsr_plugin* tessera_plugin_query(const tsr_host* host) {
    // Built for minor version 0, which every host supports.
    static_assert(TSR_ABI_MINOR == 0);
    return host && host->abi_major == TSR_ABI_MAJOR ? &kPlugin : nullptr;
}
