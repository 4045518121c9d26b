// Devices, and what of the model lies on each: {"devices": [...], "layers": [...]}.
#include "apps/server/endpoint.hpp"
#include "core/text/json_writer.hpp"

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
    std::string out;
    text::JsonWriter json(out);
    json.begin_object().key("devices").begin_list();
    for (DeviceIndex i = 0; i < plan.devices.size(); ++i) {
        const DeviceMemory& memory = plan.memory[i];
        json.begin_object().member("id", plan.devices[i]->id).member("name", plan.devices[i]->name);
        json.member("memory_bytes", plan.devices[i]->memory_bytes);
        json.member("weights_bytes", memory.weights).member("cache_bytes", memory.cache);
        json.member("work_bytes", memory.activations + memory.workspace + memory.staging + memory.streaming);
        json.member("mapped_bytes", memory.mapped).end_object();
    }
    json.end_list().key("layers").begin_list();
    for (const auto& [number, layer] : layers_of(plan)) {
        json.begin_object().member("layer", number).member("attention", layer.attention);
        json.key("experts").text_or_null(layer.experts).key("weights").begin_object();
        for (const auto& [device, bytes] : layer.bytes) json.member(device, bytes);
        json.end_object().end_object();
    }
    json.end_list().end_object();
    return json_response(std::move(out));
}

}  // namespace

namespace endpoint_files {

constexpr Endpoint kMachine[] = {{.method = "GET", .paths = "/tessera/machine", .look = machine_json}};
extern const std::span<const Endpoint> machine = kMachine;

}  // namespace endpoint_files

}  // namespace tessera::server
