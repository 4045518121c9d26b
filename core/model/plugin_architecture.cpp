#include "core/model/plugin_architecture.hpp"

#include "core/base/pattern.hpp"
#include "core/base/plugin_status.hpp"
#include "core/base/text.hpp"
#include "core/graph/builder_table.hpp"
#include "core/graph/types.hpp"
#include "core/model/build_graph.hpp"
#include "core/model/readers.hpp"
#include "core/model/weights.hpp"

#include <tessera/ops.h>

#include <array>
#include <deque>
#include <limits>
#include <map>
#include <utility>

namespace tessera {
namespace {

constexpr uint32_t kMostCounts = 1 << 20;

// Behind tsr_model.context.
struct Session {
    ModelFile& model;
    Graph* graph;    // nullptr: the model is only measured
    int64_t layers;  // of `graph`
    std::deque<std::string> texts;
    std::map<std::string, tsr_tensor, std::less<>> tensors;
};

Session& session(tsr_model* self) {
    return *static_cast<Session*>(self->context);
}

std::string_view text_of(const char* text, std::string_view what) {
    if (!text || !*text) fail(TSR_INVALID_ARGUMENT, "{} is missing", what);
    return text;
}

// Gives the value that `find` finds, leaves what is there, or fails.
template <typename To, typename Find>
const tsr_status* give(tsr_model* self, const char* key, uint32_t presence, To* to, Find&& find) {
    return status_for_plugin([&] {
        ModelFile& model = session(self).model;
        const std::string_view name = text_of(key, "the name of a key");
        if (!to) fail(TSR_INVALID_ARGUMENT, "{}: there is no place for its value", name);
        if (auto value = find(model, name)) {
            *to = static_cast<To>(*value);
        } else if (presence != TSR_OPTIONAL) {
            fail(TSR_NOT_FOUND, "{}: key '{}' is missing", model.source(), model.key(name));
        }
    });
}

const tsr_status* integer(tsr_model* self, const char* key, uint32_t presence, int64_t minimum, int64_t* value) {
    return give(self, key, presence, value,
                [&](ModelFile& model, std::string_view name) { return model.find_count(name, minimum); });
}

const tsr_status* number(tsr_model* self, const char* key, uint32_t presence, double* value) {
    return give(self, key, presence, value,
                [](ModelFile& model, std::string_view name) { return model.find_number(name); });
}

const tsr_status* boolean(tsr_model* self, const char* key, uint32_t presence, uint32_t* value) {
    return give(self, key, presence, value,
                [](ModelFile& model, std::string_view name) { return model.find_bool(name); });
}

const tsr_status* text(tsr_model* self, const char* key, uint32_t presence, const char** value) {
    return give(self, key, presence, value, [&](ModelFile& model, std::string_view name) {
        const auto found = model.find_text(name);
        return found ? std::optional(session(self).texts.emplace_back(*found).c_str()) : std::nullopt;
    });
}

const tsr_status* integers(tsr_model* self, const char* key, uint32_t presence, int64_t minimum, uint32_t count,
                           int64_t* values) {
    return status_for_plugin([&] {
        ModelFile& model = session(self).model;
        const std::string_view name = text_of(key, "the name of a key");
        if (!values || count == 0 || count > kMostCounts)
            fail(TSR_INVALID_ARGUMENT, "{}: there is no place for {} values", name, count);
        if (const auto found = model.find_counts(name, count, minimum)) {
            std::ranges::copy(*found, values);
        } else if (presence != TSR_OPTIONAL) {
            fail(TSR_NOT_FOUND, "{}: key '{}' is missing", model.source(), model.key(name));
        }
    });
}

const tsr_tensor* tensor(tsr_model* self, const char* name) {
    const gguf::TensorEntry* entry = name ? session(self).model.file().find_tensor(name) : nullptr;
    if (!entry) return nullptr;
    tsr_tensor& described = session(self).tensors[entry->name];
    described.struct_size = sizeof described;
    described.type = type_info(entry->type).rows_type;
    described.role = TSR_ROLE_WEIGHT;
    described.rank = entry->rank;
    described.range = TSR_RANGE_FIXED;
    for (size_t i = 0; i < TSR_MAX_RANK; ++i) described.dims[i] = static_cast<int64_t>(entry->dims[i]);
    described.name = entry->name.c_str();
    return &described;
}

const tsr_status* note(tsr_model* self, const char* line) {
    return status_for_plugin([&] { session(self).model.note(printable(text_of(line, "a line"), 200)); });
}

const tsr_status* leave_out(tsr_model* self, const char* pattern, const char* reason) {
    return status_for_plugin([&] {
        std::string found(text_of(pattern, "a pattern"));
        (void)Pattern(found);  // throws for one that is none
        session(self).model.leave_out({std::move(found), printable(text_of(reason, "a reason"), 200)});
    });
}

Graph& graph_of(tsr_model* self) {
    Graph* const graph = session(self).graph;
    if (!graph) fail(TSR_INVALID_ARGUMENT, "there is no graph yet: weights and layers belong to build");
    return *graph;
}

const tsr_status* weight(tsr_model* self, const char* name, const int64_t* dims, uint32_t rank, uint32_t flags,
                         tsr_value* value) {
    return status_for_plugin([&] {
        Graph& graph = graph_of(self);
        ModelFile& model = session(self).model;
        const std::string_view full = text_of(name, "the name of a weight");
        if (!dims || !value || rank < 1 || rank > TSR_MAX_RANK)
            fail(TSR_INVALID_ARGUMENT, "{}: a weight of 1 to {} dimensions, and a place for it, are expected", full,
                 TSR_MAX_RANK);
        if (flags & ~(uint32_t{TSR_OPTIONAL} | uint32_t{TSR_WEIGHT_VECTOR}))
            fail(TSR_INVALID_ARGUMENT, "{}: flags {:#x} are not known", full, flags);
        require_room(graph);
        *value = 0;
        const gguf::TensorEntry* entry = model.claim_tensor(full);
        if (!entry && (flags & TSR_OPTIONAL)) return;
        if (!entry) fail(TSR_NOT_FOUND, "{}: the tensor {} is missing", model.source(), full);
        *value = add_weight(graph, model, *entry, {dims, rank}, flags & TSR_WEIGHT_VECTOR);
    });
}

const tsr_status* set_layer(tsr_model* self, int64_t layer) {
    return status_for_plugin([&] {
        Graph& graph = graph_of(self);
        if (layer < 0 || layer > session(self).layers)
            fail(TSR_INVALID_ARGUMENT, "layer {} of {}", layer, session(self).layers);
        graph.set_layer(static_cast<int>(layer));
    });
}

tsr_model table_of(Session& session) {
    return {sizeof(tsr_model), 0,      nullptr, &session,  integer, number,   boolean, text,
            integers,          tensor, note,    leave_out, weight,  set_layer};
}

uint32_t checked_size(const ModelFile& model, const PluginCall& call, std::string_view what, int64_t value,
                      int64_t minimum, int64_t most = std::numeric_limits<int32_t>::max()) {
    if (value >= minimum && value <= most) return static_cast<uint32_t>(value);
    fail(TSR_CORRUPT_DATA, "{}: {}: it says that the model has {} {}; expected {} to {}", model.source(),
         describe(call), value, what, minimum, most);
}

}  // namespace

PluginArchitecture::PluginArchitecture(const tsr_architecture& architecture, const Registry& registry)
    : table_(architecture),
      plugin_(registry.owner(architecture).table->name),
      abi_minor_(registry.owner(architecture).table->abi_minor) {}

void PluginArchitecture::measure(ModelFile& model, ModelInfo& info) const {
    Session state{model, nullptr, 0, {}, {}};
    tsr_model table = table_of(state);
    tsr_model_sizes sizes{};
    sizes.struct_size = sizeof sizes;
    const PluginCall measuring = call("measure");
    call_checked(measuring, [&] { return table_.measure(&table_, &table, &sizes); });
    const auto size = [&](std::string_view what, int64_t value, int64_t minimum) {
        return checked_size(model, measuring, what, value, minimum);
    };
    // Every layer has tensors of its own.
    const auto tensors = static_cast<int64_t>(model.file().tensors().size());
    info.layers = checked_size(model, measuring, "layers", sizes.layers, 1, tensors);
    info.embedding = size("elements of a row", sizes.embedding, 1);
    info.vocabulary = size("tokens", sizes.vocabulary, 1);
    info.context = size("tokens of context", sizes.context, 0);
    info.experts_used = size("experts of a row", sizes.experts_used, 0);
    info.latent_attention = sizes.latent_attention != 0;
}

Graph PluginArchitecture::build(ModelFile& model, const ModelInfo& info, const OpSet& ops,
                                const GraphLimits& given_limits) const {
    GraphLimits limits = given_limits;
    limits.hidden_states = false;
    Graph graph(ops);
    const GraphInputs inputs = add_inputs(graph, limits);
    const std::array<Value, 5> given = {inputs.tokens, inputs.positions, inputs.sequences, inputs.page_table,
                                        inputs.output_rows};
    std::array<Value, 1> logits{};
    BuilderSession building{graph, given, {}, logits, abi_minor_, true};
    tsr_builder builder = builder_table(building);
    Session state{model, &graph, info.layers, {}, {}};
    tsr_model table = table_of(state);
    tsr_graph_options options{};
    options.struct_size = sizeof options;
    options.keep_at_least = limits.experts.at_least;
    options.keep_ratio = limits.experts.ratio;
    call_checked(call("build"), [&] { return table_.build(&table_, &table, &options, &builder); });
    check(graph, inputs.tokens, logits[0], info, limits);
    graph.set_output(kLogits, logits[0]);
    return graph;
}

void PluginArchitecture::check(const Graph& graph, Value tokens, Value logits, const ModelInfo& info,
                               const GraphLimits& limits) const {
    if (logits == 0) fail(TSR_INTERNAL, "{}: it gave no logits (output 0)", describe(call("build")));
    const tsr_tensor& t = graph.tensor(logits);
    if (t.type != TSR_TYPE_F32 || t.role != TSR_ROLE_ACTIVATION || t.rank != 2 || t.dims[0] != info.vocabulary ||
        t.dims[1] != limits.output_rows || t.range != TSR_RANGE_OUTPUT_ROWS) {
        fail(TSR_INTERNAL, "{}: its logits are not f32 rows [{}, {}] over the range of output rows",
             describe(call("build")), info.vocabulary, limits.output_rows);
    }
    for (const Node& node : graph.nodes()) {
        if (node.op != TSR_OP_GET_ROWS || node.inputs.size() < 2 || node.inputs[1] != tokens) continue;
        const tsr_tensor& rows = graph.tensor(node.inputs[0]);
        if (rows.dims[1] >= info.vocabulary) continue;
        fail(TSR_INTERNAL, "{}: {} has {} rows, but the vocabulary {} tokens", describe(call("build")), node.name,
             rows.dims[1], info.vocabulary);
    }
}

}  // namespace tessera
