#include "core/plan/lowering_builder.hpp"

#include "core/base/error.hpp"
#include "core/graph/builder_table.hpp"
#include "core/plan/cache_groups.hpp"

#include <array>

namespace tessera {
namespace {

std::vector<Value> make_caches(Graph& target, const tsr_lowering& lowering, const char* plugin, const tsr_node& node,
                               const std::string& name, const CacheRule& rule, const ScheduleOptions& options) {
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
    const auto pages = static_cast<int64_t>(pages_of_caches(rule, options));
    for (uint32_t i = 0; i < count; ++i) {
        const tsr_type type = components[i].value ? options.cache_type_v : options.cache_type_k;
        caches.push_back(target.cache(fmt::format("{}.cache_{}", name, components[i].name),
                                      {type, {components[i].elements, TSR_PAGE_TOKENS, pages}}));
    }
    return caches;
}

// What the page table among a node's operands says of its caches.
CacheRule cache_rule_of(const Graph& graph, const Node& node) {
    for (const Value value : node.inputs) {
        const Storage& storage = graph.storage(graph.storage_of(value));
        if (storage.role == TSR_ROLE_INPUT && !storage.caches.keeps_all()) return storage.caches;
    }
    return {};
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
    const std::vector<Value> caches = make_caches(written.graph, lowering, owner.plugin, lowered.abi(), node.name,
                                                  cache_rule_of(from, node), options);
    BuilderSession session{written.graph, written.inputs, caches, written.outputs, owner.abi_minor};

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
    tsr_builder table = builder_table(session);
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
