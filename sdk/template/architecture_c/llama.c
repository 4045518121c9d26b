/* Llama, dense: grouped queries and a gated feed-forward network. */
#include "llama.h"

#include <tessera/ops.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A function of the host that fails has said why: its status is handed on. */
#define TRY(call)                                \
    do {                                         \
        const tsr_status* const status = (call); \
        if (status) return status;               \
    } while (0)

static const tsr_status refused = {sizeof(tsr_status), TSR_UNSUPPORTED, NULL,
                                   "expected heads of one even length, all of it rotated, in groups of one size", NULL};

typedef struct sizes {
    int64_t layers, embedding, vocabulary, context, heads, kv_heads, head, feed_forward;
    double epsilon, base;
} sizes;

static const tsr_status* read_sizes(tsr_model* m, sizes* s) {
    int64_t value_length, rotary, vocabulary;
    const tsr_tensor* table = m->tensor(m, "token_embd.weight");
    s->vocabulary = table ? table->dims[1] : 0;
    TRY(m->integer(m, "block_count", TSR_REQUIRED, 1, &s->layers));
    TRY(m->integer(m, "embedding_length", TSR_REQUIRED, 1, &s->embedding));
    TRY(m->integer(m, "context_length", TSR_REQUIRED, 1, &s->context));
    TRY(m->integer(m, "attention.head_count", TSR_REQUIRED, 1, &s->heads));
    TRY(m->integer(m, "feed_forward_length", TSR_REQUIRED, 1, &s->feed_forward));
    TRY(m->number(m, "attention.layer_norm_rms_epsilon", TSR_REQUIRED, &s->epsilon));
    s->kv_heads = s->heads;
    TRY(m->integer(m, "attention.head_count_kv", TSR_OPTIONAL, 1, &s->kv_heads));
    s->head = s->embedding / s->heads;
    TRY(m->integer(m, "attention.key_length", TSR_OPTIONAL, 1, &s->head));
    s->base = 10000;
    TRY(m->number(m, "rope.freq_base", TSR_OPTIONAL, &s->base));
    /* A key that nobody reads refuses the file; what is read and not computed has to be refused here. */
    value_length = rotary = s->head;
    vocabulary = s->vocabulary;
    TRY(m->integer(m, "attention.value_length", TSR_OPTIONAL, 1, &value_length));
    TRY(m->integer(m, "rope.dimension_count", TSR_OPTIONAL, 1, &rotary));
    TRY(m->integer(m, "vocab_size", TSR_OPTIONAL, 1, &vocabulary));
    if (value_length != s->head || rotary != s->head || s->head % 2 != 0 || s->heads % s->kv_heads != 0 ||
        vocabulary != s->vocabulary)
        return &refused;
    return NULL;
}

/* What functions that write the graph have in common. */
typedef struct writer {
    tsr_model* m;
    tsr_builder* b;
    sizes s;
    int64_t layer;
    char name[64]; /* of a node or a weight of the layer */
} writer;

static const char* name_of(writer* w, const char* part, const char* end) {
    snprintf(w->name, sizeof w->name, "blk.%lld.%s%s", (long long)w->layer, part, end);
    return w->name;
}

static const tsr_status* matrix(writer* w, const char* part, int64_t in, int64_t out, tsr_value* value) {
    const int64_t dims[] = {in, out};
    return w->m->weight(w->m, name_of(w, part, ".weight"), dims, 2, 0, value);
}

/* A node of one output and at most one attribute. `output` may be one of the inputs. */
static const tsr_status* add(writer* w, const char* op, const char* name, const tsr_value* inputs, uint32_t count,
                             const tsr_attribute* attribute, tsr_value* output) {
    tsr_value made = 0;
    TRY(w->b->add(w->b, TSR_STAGE_RUN, op, name, &attribute, attribute ? 1 : 0, inputs, count, &made, 1));
    *output = made;
    return NULL;
}

static tsr_attribute number(const char* name, double value) {
    tsr_attribute attribute = {sizeof(tsr_attribute), TSR_ATTRIBUTE_FLOAT, NULL, name, 0, value, NULL};
    return attribute;
}

static const tsr_status* norm(writer* w, const char* node, const char* weight, tsr_value x, tsr_value* y) {
    const tsr_attribute epsilon = number("epsilon", w->s.epsilon);
    tsr_value inputs[2] = {x, 0};
    TRY(w->m->weight(w->m, weight, &w->s.embedding, 1, TSR_WEIGHT_VECTOR, &inputs[1]));
    return add(w, TSR_OP_RMS_NORM, node, inputs, 2, &epsilon, y);
}

static const tsr_status* layer_norm(writer* w, const char* part, tsr_value x, tsr_value* y) {
    char weight[64];
    snprintf(weight, sizeof weight, "%s", name_of(w, part, ".weight"));
    return norm(w, name_of(w, part, ""), weight, x, y);
}

/* Dense f32 rows with other extents. */
static const tsr_status* reshape(writer* w, tsr_value of, const int64_t* dims, uint32_t rank, tsr_value* view) {
    tsr_tensor shape = *w->b->describe(w->b, of);
    int64_t stride = shape.strides[0];
    uint32_t i;
    shape.struct_size = sizeof shape;
    shape.rank = rank;
    for (i = 0; i < TSR_MAX_RANK; ++i) {
        shape.dims[i] = i < rank ? dims[i] : 1;
        shape.strides[i] = stride;
        stride *= shape.dims[i];
    }
    return w->b->view(w->b, of, &shape, view);
}

static const tsr_status* rope(writer* w, const char* part, tsr_value x, tsr_value* y) {
    const tsr_attribute mode = {sizeof mode, TSR_ATTRIBUTE_STRING, NULL, "mode", 0, 0, "norm"};
    const tsr_attribute base = number("base", w->s.base);
    const tsr_attribute* const attributes[] = {&mode, &base};
    const tsr_value inputs[] = {x, w->b->input(w->b, TSR_INPUT_POSITIONS)};
    *y = 0;
    return w->b->add(w->b, TSR_STAGE_RUN, TSR_OP_ROPE, name_of(w, part, ""), attributes, 2, inputs, 2, y, 1);
}

/* x [embedding, R] -> [heads * head, R]. */
static const tsr_status* attention(writer* w, tsr_value x, tsr_value* heads) {
    const sizes* s = &w->s;
    const int64_t rows = w->b->describe(w->b, x)->dims[1], q_length = s->heads * s->head,
                  kv_length = s->kv_heads * s->head;
    const int64_t q_dims[] = {s->head, s->heads, rows}, kv_dims[] = {s->head, s->kv_heads, rows},
                  out_dims[] = {q_length, rows};
    const tsr_attribute scale = number("scale", 1 / sqrt((double)s->head));
    tsr_value inputs[6] = {x, 0, 0, 0, 0, 0}, qkv[3] = {0, 0, 0}, q, k, v, attended;
    TRY(matrix(w, "attn_q", s->embedding, q_length, &inputs[1]));
    TRY(matrix(w, "attn_k", s->embedding, kv_length, &inputs[2]));
    TRY(matrix(w, "attn_v", s->embedding, kv_length, &inputs[3]));
    TRY(w->b->add(w->b, TSR_STAGE_RUN, TSR_OP_MATMUL_GROUP, name_of(w, "attn_qkv", ""), NULL, 0, inputs, 4, qkv, 3));
    TRY(reshape(w, qkv[0], q_dims, 3, &q));
    TRY(reshape(w, qkv[1], kv_dims, 3, &k));
    TRY(reshape(w, qkv[2], kv_dims, 3, &v));
    TRY(rope(w, "attn_q_rope", q, &inputs[0]));
    TRY(rope(w, "attn_k_rope", k, &inputs[1]));
    inputs[2] = v;
    inputs[3] = w->b->input(w->b, TSR_INPUT_POSITIONS);
    inputs[4] = w->b->input(w->b, TSR_INPUT_SEQUENCES);
    inputs[5] = w->b->input(w->b, TSR_INPUT_PAGE_TABLE);
    TRY(add(w, TSR_OP_CACHED_ATTENTION, name_of(w, "attn", ""), inputs, 6, &scale, &attended));
    return reshape(w, attended, out_dims, 2, heads);
}

static const tsr_status* layer(writer* w, tsr_value rows, tsr_value* next) {
    const sizes* s = &w->s;
    tsr_value x, pair[2], ffn[4];
    TRY(layer_norm(w, "attn_norm", rows, &x));
    TRY(attention(w, x, &x));
    if (w->layer + 1 == s->layers) { /* further rows of the last layer are not needed */
        pair[0] = x;
        pair[1] = w->b->input(w->b, TSR_INPUT_OUTPUT_ROWS);
        TRY(add(w, TSR_OP_GET_ROWS, name_of(w, "output_rows", ""), pair, 2, NULL, &x));
        pair[0] = rows;
        TRY(add(w, TSR_OP_GET_ROWS, name_of(w, "output_residual", ""), pair, 2, NULL, &rows));
    }
    pair[0] = x;
    TRY(matrix(w, "attn_output", s->heads * s->head, s->embedding, &pair[1]));
    TRY(add(w, TSR_OP_MATMUL, name_of(w, "attn_output", ""), pair, 2, NULL, &pair[0]));
    pair[1] = rows;
    TRY(add(w, TSR_OP_ADD, name_of(w, "attn_residual", ""), pair, 2, NULL, &rows));
    TRY(layer_norm(w, "ffn_norm", rows, &ffn[0]));
    TRY(matrix(w, "ffn_gate", s->embedding, s->feed_forward, &ffn[1]));
    TRY(matrix(w, "ffn_up", s->embedding, s->feed_forward, &ffn[2]));
    TRY(matrix(w, "ffn_down", s->feed_forward, s->embedding, &ffn[3]));
    TRY(add(w, TSR_OP_GATED_FFN, name_of(w, "ffn", ""), ffn, 4, NULL, &pair[0]));
    pair[1] = rows;
    return add(w, TSR_OP_ADD, name_of(w, "ffn_residual", ""), pair, 2, NULL, next);
}

static const tsr_status* measure(const tsr_architecture* self, tsr_model* model, tsr_model_sizes* measured) {
    sizes s;
    (void)self;
    memset(&s, 0, sizeof s);
    TRY(read_sizes(model, &s));
    measured->layers = s.layers;
    measured->embedding = s.embedding;
    measured->vocabulary = s.vocabulary;
    measured->context = s.context;
    return NULL;
}

static const tsr_status* build(const tsr_architecture* self, tsr_model* model, const tsr_graph_options* options,
                               tsr_builder* builder) {
    writer w;
    int64_t dims[2];
    tsr_value pair[2], rows;
    const char* output = "output.weight";
    (void)self;
    (void)options;
    memset(&w, 0, sizeof w);
    w.m = model;
    w.b = builder;
    TRY(read_sizes(model, &w.s));
    dims[0] = w.s.embedding;
    dims[1] = w.s.vocabulary;
    TRY(model->weight(model, "token_embd.weight", dims, 2, 0, &pair[0]));
    pair[1] = builder->input(builder, TSR_INPUT_TOKENS);
    TRY(add(&w, TSR_OP_GET_ROWS, "token_embd", pair, 2, NULL, &rows));
    for (w.layer = 0; w.layer < w.s.layers; ++w.layer) {
        TRY(model->set_layer(model, w.layer));
        TRY(layer(&w, rows, &rows));
    }
    TRY(model->set_layer(model, w.s.layers));
    TRY(norm(&w, "output_norm", "output_norm.weight", rows, &pair[0]));
    if (!model->tensor(model, output)) output = "token_embd.weight";
    TRY(model->weight(model, output, dims, 2, 0, &pair[1]));
    TRY(add(&w, TSR_OP_MATMUL, "output", pair, 2, NULL, &rows));
    return builder->output(builder, 0, rows);
}

const tsr_architecture example_llama = {sizeof(tsr_architecture), 0, NULL, NULL, "llama", measure, build};
