// A host's builder table for tests: it records what a lowering writes, checks every node with the reference's plan, and
// can run the result.
#pragma once

#include "node_builder.hpp"

#include <tessera/cpp/status.hpp>
#include <tessera/plugin.h>

#include <dlfcn.h>

#include <map>

namespace tessera::test {

inline const tsr_operator* mla_operator() {
    static void* library = dlopen(TSR_PLUGIN_DIR "/tessera_mla.so", RTLD_NOW | RTLD_LOCAL);
    if (!library) return nullptr;
    const auto query = reinterpret_cast<tsr_plugin_query_function>(dlsym(library, TSR_PLUGIN_QUERY));
    tsr_host host{};
    host.struct_size = sizeof host;
    host.abi_major = TSR_ABI_MAJOR;
    const tsr_plugin* plugin = query ? query(&host) : nullptr;
    return plugin && plugin->operator_count == 1 ? plugin->operators[0] : nullptr;
}

// The lowering of that name and priority rank: 0 is the one with flash attention, 1 the other.
inline const tsr_lowering* mla_lowering(std::string_view name, int rank) {
    const tsr_operator* op = mla_operator();
    for (uint32_t i = 0; op && i < op->lowering_count; ++i) {
        if (name == op->lowerings[i]->name && rank-- == 0) return op->lowerings[i];
    }
    return nullptr;
}

class RecordingBuilder {
  public:
    struct Recorded {
        tsr_stage stage;
        std::string op, name;
        std::vector<std::pair<std::string, tsr_attribute>> attributes;
        std::vector<std::string> strings;
        std::vector<tsr_value> inputs, outputs;

        int64_t integer(std::string_view attribute) const {
            for (const auto& [key, value] : attributes) {
                if (key == attribute) return value.i;
            }
            return -1;
        }
    };

    // `inputs` of the node that is lowered; absent ones are Tensor{}. `caches` are the family's components.
    RecordingBuilder(std::vector<Tensor> inputs, std::vector<Tensor> caches) {
        values.emplace_back();
        values[0].desc.type = TSR_TYPE_NONE;
        for (Tensor& t : inputs) inputs_.push_back(t.bytes ? keep(t) : 0);
        for (Tensor& t : caches) caches_.push_back(keep(t));
        table.struct_size = sizeof table;
        table.context = this;
        table.describe = [](tsr_builder* self, tsr_value v) -> const tsr_tensor* {
            return &of(self).values.at(v).desc;
        };
        table.input = [](tsr_builder* self, uint32_t i) -> tsr_value { return of(self).inputs_.at(i); };
        table.cache = [](tsr_builder* self, uint32_t i) -> tsr_value { return of(self).caches_.at(i); };
        table.add = [](tsr_builder* self, tsr_stage stage, const char* op, const char* name,
                       const tsr_attribute* const* attributes, uint32_t attribute_count, const tsr_value* in,
                       uint32_t input_count, tsr_value* out, uint32_t output_count) {
            return sdk::guarded([&] {
                of(self).add(stage, op, name, copies(attributes, attribute_count), {in, in + input_count}, out,
                             output_count);
            });
        };
        table.buffer = [](tsr_builder* self, const tsr_tensor* like, tsr_value* value) {
            return sdk::guarded([&] {
                *value = of(self).keep(make_tensor(like->type, {like->dims, like->dims + like->rank}, like->range));
            });
        };
        table.view = [](tsr_builder* self, tsr_value of_value, const tsr_tensor* shape, tsr_value* value) {
            return sdk::guarded([&] { *value = of(self).view(of_value, *shape); });
        };
        table.output = [](tsr_builder* self, uint32_t index, tsr_value value) {
            return sdk::guarded([&] {
                if (index != 0 || value == 0) throw sdk::Failure(TSR_INVALID_ARGUMENT, "no such output");
                of(self).result = value;
            });
        };
    }
    RecordingBuilder(const RecordingBuilder&) = delete;

    // Runs the recorded nodes of a stage.
    void run(tsr_stage stage, const Ranges& ranges, uint32_t workers) {
        for (const Recorded& r : nodes) {
            if (r.stage != stage) continue;
            node_of(r)->run(ranges, workers);
        }
    }

    std::vector<std::string> ops(tsr_stage stage = TSR_STAGE_RUN) const {
        std::vector<std::string> out;
        for (const Recorded& r : nodes) {
            if (r.stage == stage) out.push_back(r.op);
        }
        return out;
    }
    const Recorded* find(std::string_view suffix) const {
        for (const Recorded& r : nodes) {
            if (r.name.ends_with(suffix)) return &r;
        }
        return nullptr;
    }

    tsr_builder table{};
    std::vector<Tensor> values;
    std::vector<Recorded> nodes;
    tsr_value result = 0;

  private:
    static RecordingBuilder& of(tsr_builder* self) { return *static_cast<RecordingBuilder*>(self->context); }

    tsr_value keep(Tensor t) {
        values.push_back(std::move(t));
        return static_cast<tsr_value>(values.size() - 1);
    }

    tsr_value view(tsr_value from, const tsr_tensor& shape) {
        Tensor t = values.at(from);
        if (!t.bytes) throw sdk::Failure(TSR_INVALID_ARGUMENT, "a view of nothing");
        const tsr_type type = t.desc.type;
        const uint32_t role = t.desc.role;
        t.desc = shape;
        t.desc.type = type;
        t.desc.role = role;
        const int64_t block = type == TSR_TYPE_I32 ? 1 : cpu::format_size(type).elements;
        if (block == 0) throw sdk::Failure(TSR_UNSUPPORTED, "a view of a type that is not known");
        int64_t last = shape.offset + shape.dims[0] / block * shape.strides[0];
        for (uint32_t i = 1; i < TSR_MAX_RANK; ++i) last += (shape.dims[i] - 1) * shape.strides[i];
        if (shape.offset < 0 || last > static_cast<int64_t>(t.bytes->size())) {
            throw sdk::Failure(TSR_INVALID_ARGUMENT, "a view that leaves its storage");
        }
        return keep(t);
    }

    static std::vector<tsr_attribute> copies(const tsr_attribute* const* attributes, uint32_t count) {
        std::vector<tsr_attribute> copied;
        for (uint32_t i = 0; i < count; ++i) copied.push_back(*attributes[i]);
        return copied;
    }

    void add(tsr_stage stage, const char* op, const char* name, std::vector<tsr_attribute> attributes,
             std::vector<tsr_value> in, tsr_value* out, uint32_t output_count) {
        Recorded r{stage, op, name, {}, {}, std::move(in), {}};
        r.strings.reserve(attributes.size());
        for (tsr_attribute a : attributes) {
            if (a.s) a.s = r.strings.emplace_back(a.s).c_str();
            r.attributes.emplace_back(a.name, a);
        }
        if (output_count != 1) throw sdk::Failure(TSR_INVALID_ARGUMENT, "one output is expected of every op here");
        if (*out == 0) *out = keep(inferred(r));
        r.outputs = {*out};
        const tsr_kernel_plan plan = node_of(r)->plan(1);
        if (!plan.supported) throw sdk::Failure(TSR_UNSUPPORTED, std::string(name) + ": " + plan.reason);
        nodes.push_back(std::move(r));
    }

    Tensor inferred(const Recorded& r) const {
        const tsr_tensor& x = values.at(r.inputs.at(0)).desc;
        const tsr_tensor* second = r.inputs.size() > 1 ? &values.at(r.inputs[1]).desc : nullptr;
        std::vector<int64_t> dims(x.dims, x.dims + x.rank);
        if (r.op == "matmul") dims[0] = second->dims[r.integer("transpose_weight") == 1 ? 0 : 1];
        if (r.op.ends_with("_attention")) dims[0] = r.integer("head_dim_v");
        if (r.op == "transpose") {
            std::swap(dims[0], dims[1]);
            return make_tensor(static_cast<tsr_type>(r.integer("type")), dims);
        }
        if (r.op == "cache_write") throw sdk::Failure(TSR_INVALID_ARGUMENT, "cache_write is always given its output");
        return make_tensor(TSR_TYPE_F32, dims, x.range);
    }

    std::unique_ptr<TestNode> node_of(const Recorded& r) const {
        std::vector<Tensor> in, out;
        for (const tsr_value v : r.inputs) in.push_back(values.at(v));
        for (const tsr_value v : r.outputs) out.push_back(values.at(v));
        std::vector<tsr_attribute> attributes;
        for (size_t i = 0; i < r.attributes.size(); ++i) {
            attributes.push_back(r.attributes[i].second);
            attributes.back().name = r.attributes[i].first.c_str();
        }
        return std::make_unique<TestNode>(r.op, in, out, attributes);
    }

    std::vector<tsr_value> inputs_, caches_;
};

}  // namespace tessera::test
