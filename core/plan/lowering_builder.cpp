#include "core/plan/lowering_builder.hpp"

#include "core/base/error.hpp"

#include <tessera/cpp/abi.hpp>
#include <tessera/cpp/status.hpp>

#include <array>

namespace tessera {
namespace {

// Everything a call of the table needs, behind tsr_builder.context.
struct Session {
    Written* written;
    std::vector<Value> caches;
    uint32_t abi_minor;  // of the lowering's plugin: its structs are no longer than those of that version
};

Session& session(tsr_builder* self) {
    return *static_cast<Session*>(self->context);
}
Graph& graph(tsr_builder* self) {
    return session(self).written->graph;
}

// What the lowering hands over, as this host knows it.
template <typename T>
T taken(tsr_builder* self, const T& from) {
    return sdk::copy_struct(from, sdk::size_in_version<T>(session(self).abi_minor));
}

// The core's errors keep their code on the way through the plugin.
template <typename Body>
const tsr_status* answer(Body&& body) noexcept {
    return sdk::guarded([&] {
        try {
            body();
        } catch (const Error& error) {
            throw sdk::Failure(error.code(), error.what());
        }
    });
}

void require_value(tsr_builder* self, Value value, bool optional) {
    if (value >= graph(self).value_count() || (value == 0 && !optional)) {
        fail(TSR_INVALID_ARGUMENT, "{} is no tensor of this graph", value);
    }
}

const tsr_tensor* describe(tsr_builder* self, tsr_value value) {
    return &graph(self).tensor(value < graph(self).value_count() ? value : 0);
}

tsr_value input(tsr_builder* self, uint32_t index) {
    const std::vector<Value>& inputs = session(self).written->inputs;
    return index < inputs.size() ? inputs[index] : 0;
}

tsr_value cache(tsr_builder* self, uint32_t index) {
    return index < session(self).caches.size() ? session(self).caches[index] : 0;
}

const tsr_status* add(tsr_builder* self, tsr_stage stage, const char* op, const char* name,
                      const tsr_attribute* const* attributes, uint32_t attribute_count, const tsr_value* inputs,
                      uint32_t input_count, tsr_value* outputs, uint32_t output_count) {
    return answer([&] {
        for (uint32_t i = 0; i < input_count; ++i) require_value(self, inputs[i], true);
        for (uint32_t i = 0; i < output_count; ++i) require_value(self, outputs[i], true);
        if (!op || !name) fail(TSR_INVALID_ARGUMENT, "a node without an op or without a name");
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
    return answer([&] {
        const tsr_tensor shape = taken(self, *like);
        if (shape.rank == 0 || shape.rank > TSR_MAX_RANK) fail(TSR_INVALID_ARGUMENT, "a buffer of rank {}", shape.rank);
        *value = graph(self).buffer("buffer", {shape.type, {shape.dims, shape.dims + shape.rank}, shape.range});
    });
}

const tsr_status* view(tsr_builder* self, tsr_value of, const tsr_tensor* shape, tsr_value* value) {
    return answer([&] {
        require_value(self, of, false);
        *value = graph(self).view(of, taken(self, *shape));
    });
}

const tsr_status* output(tsr_builder* self, uint32_t index, tsr_value value) {
    return answer([&] {
        require_value(self, value, false);
        std::vector<Value>& outputs = session(self).written->outputs;
        if (index >= outputs.size()) fail(TSR_INVALID_ARGUMENT, "the node has no output {}", index);
        outputs[index] = value;
    });
}

std::vector<Value> make_caches(Graph& target, const tsr_lowering& lowering, const char* plugin, const tsr_node& node,
                               const std::string& name, const ScheduleOptions& options) {
    std::vector<Value> caches;
    if (!lowering.components) return caches;
    std::array<tsr_cache_component, TSR_MAX_CACHE_COMPONENTS> components{};
    std::array<tsr_cache_component*, TSR_MAX_CACHE_COMPONENTS> pointers{};
    for (size_t i = 0; i < components.size(); ++i) {
        components[i].struct_size = sizeof components[i];
        pointers[i] = &components[i];
    }
    auto count = static_cast<uint32_t>(components.size());
    const PluginCall asking{plugin, "components", "lowering", lowering.name, name.c_str()};
    call_checked(asking, [&] { return lowering.components(&lowering, &node, pointers.data(), &count); });
    if (count > components.size()) {
        fail(TSR_INTERNAL, "{}: it has {} cache components, expected at most {}", describe(asking), count,
             components.size());
    }
    for (uint32_t i = 0; i < count; ++i) {
        if (components[i].name && *components[i].name && components[i].elements > 0) continue;
        fail(TSR_INTERNAL, "{}: cache component {} has no name, or no elements", describe(asking), i);
    }
    for (uint32_t i = 0; i < count; ++i) {
        const tsr_type type = components[i].value ? options.cache_type_v : options.cache_type_k;
        caches.push_back(target.cache(fmt::format("{}.cache_{}", name, components[i].name),
                                      {type, {components[i].elements, TSR_PAGE_TOKENS, options.cache_pages}}));
    }
    return caches;
}

}  // namespace

Written write_lowering(const Graph& from, const Node& node, const tsr_lowering& lowering, const LoweringOwner& owner,
                       const ScheduleOptions& options, bool derive_weights) {
    Written written{Graph(from.ops()), {}, {}, std::vector<Value>(node.outputs.size(), 0)};
    written.graph.set_layer(node.layer);
    std::vector<Value> values;
    for (const Value value : node.inputs) {
        written.inputs.push_back(written.graph.import(from, value, written.storages, values));
    }
    const NodeView lowered(from, node);
    Session state{&written, make_caches(written.graph, lowering, owner.plugin, lowered.abi(), node.name, options),
                  owner.abi_minor};

    tsr_lowering_options asked{};
    asked.struct_size = sizeof asked;
    asked.flash_attention = options.flash_attention ? 1 : 0;
    asked.scratch_bytes = options.scratch_bytes;
    asked.max_rows = options.max_rows;
    asked.max_sequences = options.max_sequences;
    asked.max_tokens = options.max_tokens;
    asked.derive_weights = derive_weights ? 1 : 0;
    asked.hadamard_keys = options.hadamard_keys ? 1 : 0;
    asked.hadamard_values = options.hadamard_values ? 1 : 0;
    tsr_builder table{sizeof(tsr_builder), 0, nullptr, &state, describe, input, cache, add, buffer, view, output};
    call_checked({owner.plugin, "build", "lowering", lowering.name, node.name.c_str()},
                 [&] { return lowering.build(&lowering, &lowered.abi(), &asked, &table); });

    for (size_t i = 0; i < written.outputs.size(); ++i) {
        const Value value = written.outputs[i];
        if (value == 0) fail(TSR_INTERNAL, "{}: lowering '{}' gave no output {}", node.name, lowering.name, i);
        const tsr_tensor &got = written.graph.tensor(value), &wanted = from.tensor(node.outputs[i]);
        const bool whole = got.type == wanted.type && got.offset == wanted.offset && got.range == wanted.range &&
                           extent_bytes(got) == extent_bytes(wanted) &&
                           written.graph.storage(written.graph.storage_of(value)).bytes ==
                               from.storage(from.storage_of(node.outputs[i])).bytes;
        if (!whole) {
            fail(TSR_INTERNAL, "{}: output {} of lowering '{}' is not a whole buffer of the output's size", node.name,
                 i, lowering.name);
        }
    }
    return written;
}

}  // namespace tessera
