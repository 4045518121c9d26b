// Devices, and what of the model lies on each: {"devices": [...], "layers": [...]}.
#include "apps/server/endpoint.hpp"
#include "apps/server/json_text.hpp"

#include <spdlog/fmt/fmt.h>

#include <map>

namespace tessera::server {
namespace {

// Devices of one layer.
struct Layer {
    std::string_view attention;                  // that computes attention
    std::string_view experts;                    // that holds experts' weights; empty: the layer has none
    std::map<std::string_view, uint64_t> bytes;  // of weights, by device
};

std::map<int, Layer> layers_of(const Plan& plan) {
    std::map<int, Layer> layers;
    for (const LoweringChoice& choice : plan.lowerings)
        layers[choice.layer].attention = plan.devices[choice.device]->id;
    for (InstanceId id = 1; id < plan.instances.size(); ++id) {
        const Instance& instance = plan.instances[id];
        const Storage& storage = plan.graph.storage(instance.storage);
        if (instance.place == Place::kLoading || storage.role != TSR_ROLE_WEIGHT || storage.layer < 0) continue;
        Layer& layer = layers[storage.layer];
        const std::string_view device = plan.devices[instance.device]->id;
        layer.bytes[device] += instance.bytes;
        // As GGUF files name them.
        if (storage.name.find("_exps") != std::string::npos) layer.experts = device;
    }
    return layers;
}

HttpResponse machine_json(const EndpointContext& context, const HttpRequest&) {
    const std::shared_ptr<const ServedModel> model = context.host.model();
    const Plan& plan = model->engine->plan();
    std::string devices, layers;
    for (DeviceIndex i = 0; i < plan.devices.size(); ++i) {
        const DeviceMemory& memory = plan.memory[i];
        devices += fmt::format(
            R"({}{{"id":{},"name":{},"memory_bytes":{},"weights_bytes":{},"cache_bytes":{},"work_bytes":{},"mapped_bytes":{}}})",
            i ? "," : "", json_string(plan.devices[i]->id), json_string(plan.devices[i]->name),
            plan.devices[i]->memory_bytes, memory.weights, memory.cache,
            memory.activations + memory.workspace + memory.staging + memory.streaming, memory.mapped);
    }
    for (const auto& [number, layer] : layers_of(plan)) {
        layers +=
            fmt::format(R"({}{{"layer":{},"attention":{},"experts":{},"weights":{{)", layers.empty() ? "" : ",", number,
                        json_string(layer.attention), layer.experts.empty() ? "null" : json_string(layer.experts));
        for (const auto& [device, bytes] : layer.bytes) {
            if (device != layer.bytes.begin()->first) layers += ',';
            layers += fmt::format("{}:{}", json_string(device), bytes);
        }
        layers += "}}";
    }
    return json_response(fmt::format(R"({{"devices":[{}],"layers":[{}]}})", devices, layers));
}

}  // namespace

namespace endpoint_files {

constexpr Endpoint kMachine[] = {{.method = "GET", .paths = "/tessera/machine", .look = machine_json}};
extern const std::span<const Endpoint> machine = kMachine;

}  // namespace endpoint_files

}  // namespace tessera::server
