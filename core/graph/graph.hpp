// The graph: an ordered list of nodes over tensors, each a view of a storage. Node order is execution order; a node
// that is added later sees what earlier ones wrote, also through views of one storage.
#pragma once

#include "core/cache/cache_rule.hpp"
#include "core/graph/op_set.hpp"

#include <tessera/cpp/node.hpp>
#include <tessera/graph.h>

#include <deque>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

using Value = tsr_value;  // 0: none
using StorageId = uint32_t;

// A weight that its source holds as rows of another tensor: of a matrix [k, of], or of each matrix of a stack [k, of,
// E], `count` rows from `first` on; of a vector [of] so many elements.
struct SourceRows {
    std::string tensor;  // "blk.0.attn_qkv.weight"
    uint64_t first = 0, count = 0, of = 0;
    bool in_place = false;  // they follow each other as the weight's do, so that a mapped file can serve as the weight
};

// Memory that one or more tensors view.
struct Storage {
    std::string name;  // weights: the tensor's name in the file; inputs: "tokens", ...; else for messages
    tsr_role role = TSR_ROLE_ACTIVATION;
    tsr_type type = TSR_TYPE_F32;
    uint64_t row_elements = 0;  // of the first dimension
    uint64_t bytes = 0;         // in the canonical layout, at the maximum of rows
    uint64_t row_bytes = 0;     // stride of the slowest dimension, which `range` bounds
    int32_t range = TSR_RANGE_FIXED;
    bool derived = false;       // a weight that an init node makes
    std::string source_layout;  // a weight's rows in its source: "" canonical, else the tsr_layout that unpacks them
    std::optional<SourceRows> source_rows;  // none: a tensor of this name
    int layer = -1;                         // of the node or weight that made it
    CacheRule caches;                       // of a page table: what the caches that are read by it keep

    bool can_be_mapped() const { return !source_rows || source_rows->in_place; }
};

struct Node {
    std::string op;
    std::string name;
    tsr_stage stage = TSR_STAGE_RUN;
    int layer = -1;  // which layer of the model it belongs to, for placement and reports; -1: none
    std::vector<Value> inputs;
    std::vector<Value> outputs;
    std::vector<tsr_attribute> attributes;
};

// Shape of a tensor to be made. Dims fastest first.
struct Shape {
    tsr_type type = TSR_TYPE_F32;
    std::vector<int64_t> dims;
    int32_t range = TSR_RANGE_FIXED;
};

// Fills strides for the dense canonical layout; offset 0. Throws Error(TSR_CORRUPT_DATA) for sizes that overflow or
// rows that are not whole blocks.
tsr_tensor dense_tensor(const Shape& shape, tsr_role role);

// Bytes from the first to past the last element of a tensor's view.
uint64_t extent_bytes(const tsr_tensor& tensor);

class Graph {
  public:
    // `ops` outlives the graph.
    explicit Graph(const OpSet& ops);
    Graph(Graph&&) = default;
    Graph& operator=(Graph&&) = default;

    const OpSet& ops() const { return *ops_; }

    // Nodes and storages made from now on belong to this layer.
    void set_layer(int layer) { layer_ = layer; }
    int layer() const { return layer_; }

    Value weight(std::string name, const Shape& shape, std::string source_layout = "",
                 std::optional<SourceRows> source_rows = std::nullopt) {
        const Value value = make(std::move(name), shape, TSR_ROLE_WEIGHT);
        Storage& storage = storages_.at(storage_of(value));
        storage.source_layout = std::move(source_layout);
        storage.source_rows = std::move(source_rows);
        return value;
    }
    Value input(std::string name, const Shape& shape) { return make(std::move(name), shape, TSR_ROLE_INPUT); }
    Value page_table(std::string name, const Shape& shape, const CacheRule& caches) {
        const Value value = input(std::move(name), shape);
        Storage& storage = storages_.at(storage_of(value));
        storage.caches = caches;
        storage.layer = -1;  // of all layers that share it
        return value;
    }
    Value cache(std::string name, const Shape& shape) { return make(std::move(name), shape, TSR_ROLE_CACHE); }
    Value buffer(std::string name, const Shape& shape) { return make(std::move(name), shape, TSR_ROLE_ACTIVATION); }

    // Shape's offset counts from the start of `of`'s storage, type and role are taken from `of`. Throws if it leaves
    // the storage.
    Value view(Value of, const tsr_tensor& shape);

    // Adds a node. `outputs` that are 0 or missing are made with inferred shapes; given ones must agree with them.
    // Returns the outputs. Throws Error naming the node for an unknown op or shapes that do not fit.
    std::vector<Value> add(std::string_view op, std::string name, std::vector<Value> inputs,
                           std::span<const tsr_attribute> attributes = {}, std::vector<Value> outputs = {},
                           tsr_stage stage = TSR_STAGE_RUN);

    // The same for an op of one output.
    Value add_one(std::string_view op, std::string name, std::initializer_list<Value> inputs,
                  std::initializer_list<tsr_attribute> attributes = {}) {
        return add(op, std::move(name), inputs, std::span(attributes.begin(), attributes.size())).front();
    }

    void set_output(std::string name, Value value);
    Value find_output(std::string_view name) const;  // 0 if there is none
    std::span<const std::pair<std::string, Value>> outputs() const { return outputs_; }

    // An absent tensor's description has type TSR_TYPE_NONE. References stay valid while the graph lives.
    const tsr_tensor& tensor(Value value) const { return tensors_.at(value).desc; }
    StorageId storage_of(Value value) const { return tensors_.at(value).storage; }
    const Storage& storage(StorageId id) const { return storages_.at(id); }
    uint32_t storage_count() const { return static_cast<uint32_t>(storages_.size()); }
    std::span<const Value> inputs() const { return inputs_; }
    const std::deque<Node>& nodes() const { return nodes_; }
    uint32_t value_count() const { return static_cast<uint32_t>(tensors_.size()); }

    // A copy of a value of another graph over the same storage identity; used when a graph is rewritten.
    Value import(const Graph& from, Value value, std::vector<StorageId>& storage_map, std::vector<Value>& value_map);

  private:
    struct TensorRecord {
        tsr_tensor desc;
        StorageId storage;
    };

    Value make(std::string name, const Shape& shape, tsr_role role);
    Value append(tsr_tensor desc, StorageId storage);
    const char* keep(std::string_view text);

    const OpSet* ops_;
    std::deque<TensorRecord> tensors_;
    std::deque<Storage> storages_;
    std::deque<Node> nodes_;
    std::deque<std::string> strings_;
    std::vector<Value> inputs_;
    std::vector<std::pair<std::string, Value>> outputs_;
    int layer_ = -1;
};

// A node as the ABI has it: owns the arrays that tsr_node points to. Must not outlive graph and node.
class NodeView {
  public:
    NodeView(const Graph& graph, const Node& node);
    NodeView(const NodeView&) = delete;
    NodeView& operator=(const NodeView&) = delete;

    const tsr_node& abi() const { return abi_; }
    // The node's own copy of an operand's description (inputs, then outputs): layouts are set here.
    tsr_tensor& operand(uint32_t index) { return operands_[index]; }
    uint32_t operand_count() const { return static_cast<uint32_t>(operands_.size()); }

  private:
    std::vector<tsr_tensor> operands_;
    std::vector<const tsr_tensor*> pointers_;
    std::vector<const tsr_attribute*> attributes_;
    tsr_node abi_{};
};

}  // namespace tessera
