#include "core/graph/builder_table.hpp"

#include "core/base/plugin_status.hpp"

#include <tessera/cpp/abi.hpp>

#include <algorithm>

namespace tessera {
namespace {

constexpr uint32_t kMostValues = 1 << 20;

BuilderSession& session(tsr_builder* self) {
    return *static_cast<BuilderSession*>(self->context);
}
Graph& graph(tsr_builder* self) {
    return session(self).graph;
}

// What the plugin hands over, as this host knows it.
template <typename T>
T taken(tsr_builder* self, const T& from) {
    return sdk::copy_struct(from, sdk::size_in_version<T>(session(self).abi_minor));
}

void require_value(tsr_builder* self, Value value, bool optional) {
    if (value >= graph(self).value_count() || (value == 0 && !optional)) {
        fail(TSR_INVALID_ARGUMENT, "{} is no tensor of this graph", value);
    }
}

const tsr_tensor* describe_value(tsr_builder* self, tsr_value value) {
    return &graph(self).tensor(value < graph(self).value_count() ? value : 0);
}

tsr_value input_of(tsr_builder* self, uint32_t index) {
    const std::span<const Value> inputs = session(self).inputs;
    return index < inputs.size() ? inputs[index] : 0;
}

tsr_value cache(tsr_builder* self, uint32_t index) {
    return index < session(self).caches.size() ? session(self).caches[index] : 0;
}

const tsr_status* add(tsr_builder* self, tsr_stage stage, const char* op, const char* name,
                      const tsr_attribute* const* attributes, uint32_t attribute_count, const tsr_value* inputs,
                      uint32_t input_count, tsr_value* outputs, uint32_t output_count) {
    return status_for_plugin([&] {
        if ((input_count > 0 && !inputs) || (output_count > 0 && !outputs) || (attribute_count > 0 && !attributes))
            fail(TSR_INVALID_ARGUMENT, "a node with a list that is NULL");
        for (uint32_t i = 0; i < input_count; ++i) require_value(self, inputs[i], true);
        for (uint32_t i = 0; i < output_count; ++i) require_value(self, outputs[i], true);
        if (!op || !name) fail(TSR_INVALID_ARGUMENT, "a node without an op or without a name");
        if (session(self).only_run && stage != TSR_STAGE_RUN)
            fail(TSR_INVALID_ARGUMENT, "{} ({}): a node of stage {}, where all run with every batch", name, op, stage);
        require_room(graph(self));
        std::vector<tsr_attribute> copied;
        for (uint32_t i = 0; i < attribute_count; ++i) {
            if (!attributes[i]) fail(TSR_INVALID_ARGUMENT, "{} ({}): attribute {} is NULL", name, op, i);
            const tsr_attribute attribute = taken(self, *attributes[i]);
            if (!attribute.name || (attribute.kind == TSR_ATTRIBUTE_STRING && !attribute.s))
                fail(TSR_INVALID_ARGUMENT, "{} ({}): attribute {} has no name or no text", name, op, i);
            copied.push_back(attribute);
        }
        const std::vector<Value> made =
            graph(self).add(op, name, {inputs, inputs + input_count}, copied, {outputs, outputs + output_count}, stage);
        if (made.size() != output_count) {
            fail(TSR_INVALID_ARGUMENT, "{} ({}): {} outputs, where {} are taken", name, op, made.size(), output_count);
        }
        std::copy(made.begin(), made.end(), outputs);
    });
}

const tsr_status* buffer(tsr_builder* self, const tsr_tensor* like, tsr_value* value) {
    return status_for_plugin([&] {
        require_room(graph(self));
        if (!like || !value) fail(TSR_INVALID_ARGUMENT, "a buffer without a shape or without a place for it");
        const tsr_tensor shape = taken(self, *like);
        if (shape.rank == 0 || shape.rank > TSR_MAX_RANK) fail(TSR_INVALID_ARGUMENT, "a buffer of rank {}", shape.rank);
        *value = graph(self).buffer("buffer", {shape.type, {shape.dims, shape.dims + shape.rank}, shape.range});
    });
}

const tsr_status* view(tsr_builder* self, tsr_value of, const tsr_tensor* shape, tsr_value* value) {
    return status_for_plugin([&] {
        require_value(self, of, false);
        require_room(graph(self));
        if (!shape || !value) fail(TSR_INVALID_ARGUMENT, "a view without a shape or without a place for it");
        *value = graph(self).view(of, taken(self, *shape));
    });
}

const tsr_status* output(tsr_builder* self, uint32_t index, tsr_value value) {
    return status_for_plugin([&] {
        require_value(self, value, false);
        const std::span<Value> outputs = session(self).outputs;
        if (index >= outputs.size()) fail(TSR_INVALID_ARGUMENT, "the node has no output {}", index);
        outputs[index] = value;
    });
}

}  // namespace

void require_room(const Graph& graph) {
    if (graph.value_count() >= kMostValues)
        fail(TSR_INVALID_ARGUMENT, "the graph has {} tensors, more than a model needs", kMostValues);
}

tsr_builder builder_table(BuilderSession& session) noexcept {
    return {sizeof(tsr_builder), 0, nullptr, &session, describe_value, input_of, cache, add, buffer, view, output};
}

}  // namespace tessera
