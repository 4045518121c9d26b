// Qwen3, dense: grouped queries with normalised heads, and a gated feed-forward network.
#include "qwen3.hpp"

#include <tessera/cpp/architecture.hpp>
#include <tessera/cpp/builder.hpp>
#include <tessera/ops.h>

#include <cmath>
#include <string>

namespace example {
namespace {

using tessera::sdk::attribute;
using tessera::sdk::Builder;
using tessera::sdk::Failure;
using tessera::sdk::Model;

struct Sizes {
    int64_t layers, embedding, vocabulary, context, heads, kv_heads, head, feed_forward;
    double epsilon, base;
};

Sizes read(const Model& model) {
    Sizes s{};
    s.layers = model.integer("block_count");
    s.embedding = model.integer("embedding_length");
    s.context = model.integer("context_length");
    s.heads = model.integer("attention.head_count");
    s.kv_heads = model.integer_or("attention.head_count_kv", s.heads);
    s.head = model.integer_or("attention.key_length", s.embedding / s.heads);
    s.feed_forward = model.integer("feed_forward_length");
    s.epsilon = model.number("attention.layer_norm_rms_epsilon");
    s.base = model.number_or("rope.freq_base", 10000);
    s.vocabulary = model.extent("token_embd.weight", 1);
    // What this code does not compute is refused: a key that nobody reads refuses the file, one that is read has to be
    // right.
    if (s.heads % s.kv_heads != 0 || s.head % 2 != 0 || model.integer_or("attention.value_length", s.head) != s.head)
        throw Failure(TSR_UNSUPPORTED, "expected heads of one even length, in groups of one size");
    if (model.integer_or("vocab_size", s.vocabulary) != s.vocabulary)
        throw Failure(TSR_CORRUPT_DATA, "vocab_size is not the number of rows of token_embd.weight");
    return s;
}

class Writer {
  public:
    Writer(const Model& model, const Builder& b, const Sizes& s) : model_(model), b_(b), s_(s) {}

    void write() {
        const tsr_value table = model_.matrix("token_embd.weight", {s_.embedding, s_.vocabulary});
        tsr_value rows = b_.add(TSR_OP_GET_ROWS, "token_embd", {table, b_.input(TSR_INPUT_TOKENS)});
        for (layer_ = 0; layer_ < s_.layers; ++layer_) {
            model_.set_layer(layer_);
            rows = layer(rows);
        }
        model_.set_layer(s_.layers);
        rows = norm("output_norm", rows, s_.embedding);
        const bool tied = !model_.has_tensor("output.weight");
        const tsr_value matrix =
            model_.matrix(tied ? "token_embd.weight" : "output.weight", {s_.embedding, s_.vocabulary});
        b_.output(0, b_.add(TSR_OP_MATMUL, "output", {rows, matrix}));
    }

  private:
    std::string name(const char* part) const { return "blk." + std::to_string(layer_) + "." + part; }

    tsr_value matrix(const char* part, int64_t in, int64_t out) const {
        return model_.matrix(name(part) + ".weight", {in, out});
    }

    tsr_value norm(const std::string& full, tsr_value x, int64_t length) const {
        return b_.add(TSR_OP_RMS_NORM, full.c_str(), {x, model_.vector(full + ".weight", length)},
                      {attribute("epsilon", s_.epsilon)});
    }

    tsr_value layer(tsr_value rows) const {
        tsr_value heads = attention(norm(name("attn_norm"), rows, s_.embedding));
        if (layer_ + 1 == s_.layers) {  // further rows of the last layer are not needed
            const tsr_value wanted = b_.input(TSR_INPUT_OUTPUT_ROWS);
            heads = b_.add(TSR_OP_GET_ROWS, name("output_rows").c_str(), {heads, wanted});
            rows = b_.add(TSR_OP_GET_ROWS, name("output_residual").c_str(), {rows, wanted});
        }
        const tsr_value given = b_.add(TSR_OP_MATMUL, name("attn_output").c_str(),
                                       {heads, matrix("attn_output", s_.heads * s_.head, s_.embedding)});
        const tsr_value middle = b_.add(TSR_OP_ADD, name("attn_residual").c_str(), {given, rows});
        const tsr_value x = norm(name("ffn_norm"), middle, s_.embedding);
        const tsr_value ffn = b_.add(
            TSR_OP_GATED_FFN, name("ffn").c_str(),
            {x, matrix("ffn_gate", s_.embedding, s_.feed_forward), matrix("ffn_up", s_.embedding, s_.feed_forward),
             matrix("ffn_down", s_.feed_forward, s_.embedding)});
        return b_.add(TSR_OP_ADD, name("ffn_residual").c_str(), {ffn, middle});
    }

    // x [embedding, R] -> [heads * head, R].
    tsr_value attention(tsr_value x) const {
        const int64_t rows = b_.describe(x).dims[1], q_length = s_.heads * s_.head, kv_length = s_.kv_heads * s_.head;
        const auto qkv =
            b_.add_many(TSR_OP_MATMUL_GROUP, name("attn_qkv").c_str(),
                        {x, matrix("attn_q", s_.embedding, q_length), matrix("attn_k", s_.embedding, kv_length),
                         matrix("attn_v", s_.embedding, kv_length)},
                        3);
        const tsr_value q =
            rope("attn_q", norm(name("attn_q_norm"), b_.reshape(qkv[0], {s_.head, s_.heads, rows}), s_.head));
        const tsr_value k =
            rope("attn_k", norm(name("attn_k_norm"), b_.reshape(qkv[1], {s_.head, s_.kv_heads, rows}), s_.head));
        const tsr_value v = b_.reshape(qkv[2], {s_.head, s_.kv_heads, rows});
        const tsr_value heads = b_.add(
            TSR_OP_CACHED_ATTENTION, name("attn").c_str(),
            {q, k, v, b_.input(TSR_INPUT_POSITIONS), b_.input(TSR_INPUT_SEQUENCES), b_.input(TSR_INPUT_PAGE_TABLE)},
            {attribute("scale", 1 / std::sqrt(static_cast<double>(s_.head)))});
        return b_.reshape(heads, {q_length, rows});
    }

    tsr_value rope(const char* part, tsr_value x) const {
        return b_.add(TSR_OP_ROPE, (name(part) + "_rope").c_str(), {x, b_.input(TSR_INPUT_POSITIONS)},
                      {attribute("mode", "neox"), attribute("base", s_.base)});
    }

    const Model& model_;
    const Builder& b_;
    const Sizes& s_;
    int64_t layer_ = 0;
};

const tsr_status* measure(const tsr_architecture*, tsr_model* table, tsr_model_sizes* sizes) {
    return tessera::sdk::guarded([&] {
        const Sizes s = read(Model(table));
        sizes->layers = s.layers;
        sizes->embedding = s.embedding;
        sizes->vocabulary = s.vocabulary;
        sizes->context = s.context;
    });
}

const tsr_status* build(const tsr_architecture*, tsr_model* table, const tsr_graph_options*, tsr_builder* builder) {
    return tessera::sdk::guarded([&] {
        const Model model(table);
        const Builder graph(builder);
        const Sizes sizes = read(model);
        Writer(model, graph, sizes).write();
    });
}

}  // namespace

const tsr_architecture kQwen3 = {sizeof(tsr_architecture), 0, nullptr, nullptr, "qwen3", measure, build};

}  // namespace example
