#include "core/graph/graph.hpp"

#include "core/base/checked.hpp"
#include "core/base/error.hpp"
#include "core/graph/types.hpp"

#include <algorithm>

namespace tessera {
namespace {

std::string describe(const tsr_tensor& t) {
    if (t.type == TSR_TYPE_NONE) return "none";
    std::string text{type_info(t.type).name};
    text += " [";
    for (uint32_t i = 0; i < t.rank; ++i) text += fmt::format("{}{}", i ? ", " : "", t.dims[i]);
    return text + "]";
}

bool same_shape(const tsr_tensor& a, const tsr_tensor& b) {
    return a.type == b.type && a.rank == b.rank && a.range == b.range && std::ranges::equal(a.dims, b.dims);
}

// Shapes that a plugin infers are untrusted.
void check_inferred(const PluginCall& call, const tsr_tensor& output) {
    if (output.rank < 1 || output.rank > TSR_MAX_RANK) {
        fail(TSR_INTERNAL, "{}: an output has rank {}, expected 1 to {}", describe(call), output.rank, TSR_MAX_RANK);
    }
    if (!find_type(output.type)) {
        fail(TSR_INTERNAL, "{}: an output has the type {}, which is not known", describe(call),
             static_cast<uint32_t>(output.type));
    }
    if (output.range < TSR_RANGE_FIXED || output.range >= TSR_RANGE_COUNT) {
        fail(TSR_INTERNAL, "{}: an output has the range {}, expected {} to {}", describe(call), output.range,
             static_cast<int>(TSR_RANGE_FIXED), TSR_RANGE_COUNT - 1);
    }
    for (uint32_t d = 0; d < output.rank; ++d) {
        if (output.dims[d] >= 1) continue;
        fail(TSR_INTERNAL, "{}: an output has the extent {}, expected at least 1", describe(call), output.dims[d]);
    }
}

}  // namespace

tsr_tensor dense_tensor(const Shape& shape, tsr_role role) {
    if (shape.dims.empty() || shape.dims.size() > TSR_MAX_RANK) {
        fail(TSR_CORRUPT_DATA, "a tensor of {} dimensions: 1 to {} are possible", shape.dims.size(), TSR_MAX_RANK);
    }
    tsr_tensor t{};
    t.struct_size = sizeof t;
    t.type = shape.type;
    t.role = role;
    t.rank = static_cast<uint32_t>(shape.dims.size());
    t.range = shape.range;
    std::ranges::fill(t.dims, 1);
    for (uint32_t i = 0; i < t.rank; ++i) {
        if (shape.dims[i] <= 0) fail(TSR_CORRUPT_DATA, "dimension {} of a tensor is {}", i, shape.dims[i]);
        t.dims[i] = shape.dims[i];
    }
    t.strides[0] = type_info(t.type).block_bytes;
    uint64_t stride = row_bytes(t.type, static_cast<uint64_t>(t.dims[0]));
    for (uint32_t i = 1; i < TSR_MAX_RANK; ++i) {
        t.strides[i] = checked_cast<int64_t>(stride, "bytes of a tensor");
        stride = checked_mul(stride, static_cast<uint64_t>(t.dims[i]), "bytes of a tensor");
    }
    checked_cast<int64_t>(stride, "bytes of a tensor");
    return t;
}

uint64_t extent_bytes(const tsr_tensor& t) {
    uint64_t bytes = row_bytes(t.type, static_cast<uint64_t>(t.dims[0]));
    for (uint32_t i = 1; i < t.rank; ++i) {
        const auto steps = static_cast<uint64_t>(t.dims[i] - 1);
        bytes = checked_add(bytes, checked_mul(steps, static_cast<uint64_t>(t.strides[i]), "extent"), "extent");
    }
    return bytes;
}

Graph::Graph(const OpSet& ops) : ops_(&ops) {
    tsr_tensor none{};
    none.struct_size = sizeof none;
    none.type = TSR_TYPE_NONE;
    storages_.emplace_back();
    tensors_.push_back({none, 0});
}

namespace {

// Kernels take their actual range by this index.
void require_range(int32_t range) {
    if (range < TSR_RANGE_FIXED || range >= TSR_RANGE_COUNT) fail(TSR_INVALID_ARGUMENT, "there is no range {}", range);
}

}  // namespace

const char* Graph::keep(std::string_view text) {
    return strings_.emplace_back(text).c_str();
}

Value Graph::append(tsr_tensor desc, StorageId storage) {
    tensors_.push_back({desc, storage});
    return static_cast<Value>(tensors_.size() - 1);
}

Value Graph::make(std::string name, const Shape& shape, tsr_role role) {
    tsr_tensor t;
    try {
        require_range(shape.range);
        t = dense_tensor(shape, role);
    } catch (const Error& error) {
        fail(error.code(), "{}: {}", name, error.what());
    }
    t.name = keep(name);
    Storage& storage = storages_.emplace_back();
    storage.name = std::move(name);
    storage.role = role;
    storage.type = shape.type;
    storage.range = shape.range;
    storage.row_elements = static_cast<uint64_t>(t.dims[0]);
    storage.bytes = extent_bytes(t);
    storage.row_bytes = t.rank > 1 ? static_cast<uint64_t>(t.strides[t.rank - 1]) : static_cast<uint64_t>(t.strides[0]);
    storage.layer = layer_;
    const Value value = append(t, static_cast<StorageId>(storages_.size() - 1));
    if (role == TSR_ROLE_INPUT) inputs_.push_back(value);
    return value;
}

Value Graph::view(Value of, const tsr_tensor& shape) {
    const tsr_tensor& parent = tensor(of);
    require_range(shape.range);
    if (shape.rank < 1 || shape.rank > TSR_MAX_RANK) fail(TSR_INVALID_ARGUMENT, "a view of rank {}", shape.rank);
    tsr_tensor t = shape;
    t.struct_size = sizeof t;
    t.next = nullptr;
    t.type = parent.type;
    t.role = parent.role;
    t.name = parent.name;
    t.layout = parent.layout;
    const Storage& storage = storages_.at(storage_of(of));
    bool inside = t.offset >= 0 && t.strides[0] == parent.strides[0];
    // Blocks of a row with a prefix cannot be used without the prefix, which an offset inside the row does not locate:
    // views take whole rows.
    if (type_info(t.type).prefix_bytes != 0) {
        inside = inside && t.dims[0] == parent.dims[0] && (t.offset - parent.offset) % parent.strides[1] == 0;
    } else {
        inside = inside && t.offset % parent.strides[0] == 0;
    }
    for (uint32_t i = 0; inside && i < TSR_MAX_RANK; ++i) inside = t.dims[i] > 0 && t.strides[i] >= 0;
    if (!inside || checked_add(static_cast<uint64_t>(t.offset), extent_bytes(t), "view") > storage.bytes) {
        fail(TSR_INTERNAL, "a view {} at byte {} leaves the {} bytes of '{}'", describe(t), t.offset, storage.bytes,
             storage.name);
    }
    return append(t, storage_of(of));
}

std::vector<Value> Graph::add(std::string_view op_name, std::string name, std::vector<Value> inputs,
                              std::span<const tsr_attribute> attributes, std::vector<Value> outputs, tsr_stage stage) {
    const tsr_operator* op = ops_->find(op_name);
    if (!op) fail(TSR_NOT_FOUND, "{}: no op '{}': neither the core nor a loaded plugin provides it", name, op_name);

    Node& node = nodes_.emplace_back();
    node.op = op_name;
    node.name = std::move(name);
    node.stage = stage;
    node.layer = layer_;
    node.inputs = std::move(inputs);
    for (tsr_attribute attribute : attributes) {
        attribute.name = keep(attribute.name);
        attribute.next = nullptr;
        attribute.s = attribute.kind == TSR_ATTRIBUTE_STRING ? keep(attribute.s) : nullptr;
        node.attributes.push_back(attribute);
    }

    std::vector<tsr_tensor> inferred(op->output_count ? op->output_count : std::max<size_t>(node.inputs.size(), 1) - 1);
    std::vector<tsr_tensor*> to_infer;
    for (tsr_tensor& output : inferred) {
        output.struct_size = sizeof output;
        to_infer.push_back(&output);
    }
    try {
        const NodeView view(*this, node);
        const PluginCall inferring = ops_->call(*op, "infer", node.name.c_str());
        const tsr_status* const status =
            call_plugin(inferring, [&] { return op->infer(op, &view.abi(), to_infer.data()); });
        if (ops_->is_own(op->name)) {
            check(status);
        } else {
            check_call(inferring, status);
            for (const tsr_tensor& output : inferred) check_inferred(inferring, output);
        }
    } catch (const Error& error) {
        std::string operands;
        for (const Value value : node.inputs) operands += (operands.empty() ? "" : ", ") + describe(tensor(value));
        const std::string message = fmt::format("{} ({} of {}): {}", node.name, node.op, operands, error.what());
        nodes_.pop_back();
        throw Error(error.code(), message);
    }

    outputs.resize(inferred.size(), 0);
    for (size_t i = 0; i < outputs.size(); ++i) {
        if (outputs[i] == 0) {
            const Shape shape{
                inferred[i].type, {inferred[i].dims, inferred[i].dims + inferred[i].rank}, inferred[i].range};
            const bool init = stage == TSR_STAGE_INIT;
            outputs[i] = make(node.name, shape, init ? TSR_ROLE_WEIGHT : TSR_ROLE_ACTIVATION);
            storages_.back().derived = init;
        } else if (tensor(outputs[i]).role != TSR_ROLE_CACHE && !same_shape(tensor(outputs[i]), inferred[i])) {
            fail(TSR_INTERNAL, "{} ({}): output {} is given as {} but is {}", node.name, node.op, i,
                 describe(tensor(outputs[i])), describe(inferred[i]));
        }
    }
    node.outputs = outputs;
    return outputs;
}

void Graph::set_output(std::string name, Value value) {
    outputs_.emplace_back(std::move(name), value);
}

Value Graph::find_output(std::string_view name) const {
    const auto at = std::ranges::find(outputs_, name, &std::pair<std::string, Value>::first);
    return at == outputs_.end() ? 0 : at->second;
}

Value Graph::import(const Graph& from, Value value, std::vector<StorageId>& storage_map,
                    std::vector<Value>& value_map) {
    if (value == 0) return 0;
    storage_map.resize(from.storages_.size(), 0);
    value_map.resize(from.tensors_.size(), 0);
    if (value_map[value]) return value_map[value];
    const StorageId old = from.storage_of(value);
    if (storage_map[old] == 0) {
        storages_.push_back(from.storages_[old]);
        storage_map[old] = static_cast<StorageId>(storages_.size() - 1);
    }
    tsr_tensor desc = from.tensor(value);
    if (desc.name) desc.name = keep(desc.name);
    value_map[value] = append(desc, storage_map[old]);
    return value_map[value];
}

NodeView::NodeView(const Graph& graph, const Node& node) {
    operands_.reserve(node.inputs.size() + node.outputs.size());
    for (const Value value : node.inputs) operands_.push_back(graph.tensor(value));
    for (const Value value : node.outputs) operands_.push_back(graph.tensor(value));
    for (const tsr_tensor& operand : operands_) pointers_.push_back(&operand);
    abi_.struct_size = sizeof abi_;
    abi_.op = node.op.c_str();
    abi_.op_version = 1;
    abi_.name = node.name.c_str();
    attributes_ = sdk::pointers_to(node.attributes.data(), node.attributes.size());
    abi_.attributes = attributes_.data();
    abi_.attribute_count = static_cast<uint32_t>(attributes_.size());
    abi_.layer = node.layer;
    abi_.inputs = pointers_.data();
    abi_.input_count = static_cast<uint32_t>(node.inputs.size());
    abi_.outputs = pointers_.data() + node.inputs.size();
    abi_.output_count = static_cast<uint32_t>(node.outputs.size());
}

}  // namespace tessera
