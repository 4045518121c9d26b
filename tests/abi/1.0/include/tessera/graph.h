/* Nodes, operators and lowerings.
 *
 * A graph has two levels of ops. A primitive op is computed by a kernel. An abstract op is replaced by one of its
 * lowerings, each of which writes it in primitives. ops.h lists the ops that the core brings. */
#pragma once

#include <tessera/status.h>
#include <tessera/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t tsr_attribute_kind;
enum { TSR_ATTRIBUTE_INT = 0, TSR_ATTRIBUTE_FLOAT = 1, TSR_ATTRIBUTE_STRING = 2 };

typedef struct tsr_attribute {
    uint32_t struct_size;
    tsr_attribute_kind kind; /* which of i, f and s counts */
    const tsr_chain* next;
    const char* name;
    int64_t i;
    double f;
    const char* s;
} tsr_attribute;

/* A node with the descriptions of its operands. What it points to lives as long as the node. */
typedef struct tsr_node {
    uint32_t struct_size;
    uint32_t op_version;
    const tsr_chain* next;
    const char* op;   /* "matmul" */
    const char* name; /* for messages: "blk.3.attn_q" */
    const tsr_attribute* const* attributes;
    const tsr_tensor* const* inputs; /* in the order of the op; optional ones that are absent have type TSR_TYPE_NONE */
    const tsr_tensor* const* outputs;
    uint32_t attribute_count;
    uint32_t input_count;
    uint32_t output_count;
    int32_t layer; /* of the model; -1: none */
} tsr_node;

/* A tensor in a graph that is being built. 0 is no tensor. */
typedef uint32_t tsr_value;

/* When a node runs. */
typedef uint32_t tsr_stage;
enum {
    TSR_STAGE_RUN = 0, /* with every batch */
    TSR_STAGE_INIT = 1 /* once at load; its inputs are weights, and its outputs become weights */
};

/* What the user and the plan ask of a lowering. */
typedef struct tsr_lowering_options {
    uint32_t struct_size;
    uint32_t flash_attention; /* 1: use it, 0: do not */
    const tsr_chain* next;
    uint64_t scratch_bytes; /* what attention may use of scratch memory (-amb) */
    uint32_t max_rows;      /* of a batch */
    uint32_t max_sequences; /* in a batch */
    uint32_t max_tokens;    /* of one sequence, cached */
    /* 1: weights may be derived at load where that is faster; 0: only views of what is there. */
    uint32_t derive_weights;
    /* 1: rows of cache components that hold keys (or the latent), or values, go through the op "hadamard" before they
     * are written. */
    uint32_t hadamard_keys;
    uint32_t hadamard_values;
} tsr_lowering_options;

/* The host's table through which a lowering writes its graph. Valid during the call it was given to, on that thread.
 * A function that fails leaves the builder unusable: return the status. Strings and attributes are copied. */
typedef struct tsr_builder {
    uint32_t struct_size;
    uint32_t reserved;
    const tsr_chain* next;
    void* context;

    /* Description of a tensor, owned by the host, valid until the next call that adds one. */
    const tsr_tensor* (*describe)(struct tsr_builder* self, tsr_value value);
    /* Operand `index` of the node that is lowered; 0 if it is absent. */
    tsr_value (*input)(struct tsr_builder* self, uint32_t index);
    /* Cache component `index` of the lowering's family for this node. */
    tsr_value (*cache)(struct tsr_builder* self, uint32_t index);
    /* Adds a node. Outputs that are 0 on entry are made with inferred shapes; others (views, for instance of a larger
     * buffer, or an input, in place) are written to, and must have the inferred shape and type. */
    const tsr_status* (*add)(struct tsr_builder* self, tsr_stage stage, const char* op, const char* name,
                             const tsr_attribute* const* attributes, uint32_t attribute_count, const tsr_value* inputs,
                             uint32_t input_count, tsr_value* outputs, uint32_t output_count);
    /* An activation that nodes fill through views. `like` gives type, dims and range; strides are made dense. */
    const tsr_status* (*buffer)(struct tsr_builder* self, const tsr_tensor* like, tsr_value* value);
    /* A view: rank, dims, strides, range of `shape`; its offset counts from the start of the storage of `of`. Type and
     * role are those of `of`. Must lie inside `of`. */
    const tsr_status* (*view)(struct tsr_builder* self, tsr_value of, const tsr_tensor* shape, tsr_value* value);
    /* Says that the lowered node's output `index` is `value`. */
    const tsr_status* (*output)(struct tsr_builder* self, uint32_t index, tsr_value value);
} tsr_builder;

/* One component of a cache family: what a lowering keeps of each token of a sequence. */
typedef struct tsr_cache_component {
    uint32_t struct_size;
    uint32_t value; /* 0: stored in the type that the user chose for keys (-ctk), 1: for values (-ctv) */
    const tsr_chain* next;
    const char* name; /* "latent", "k", "v"; lives until the process ends */
    int64_t elements; /* of one token's row */
} tsr_cache_component;

#define TSR_MAX_CACHE_COMPONENTS 4

typedef struct tsr_lowering {
    uint32_t struct_size;
    int32_t priority; /* among the lowerings of one plugin for one op: the largest is tried first */
    const tsr_chain* next;
    const void* context;
    const char* op;      /* the op that it replaces, its own plugin's or another's */
    const char* name;    /* as users choose it: "3" of -mla 3 */
    const char* family;  /* what it caches: lowerings of one family can follow each other on one cache; may be NULL */
    const char* summary; /* one line for people, printed by `tessera plan --why`; may be NULL */
    /* NULL: it caches nothing. Fills components[0 .. *count); on entry *count is the capacity, and the host has zeroed
     * the structs and set struct_size. Pure. [any] */
    const tsr_status* (*components)(const struct tsr_lowering* self, const tsr_node* node,
                                    tsr_cache_component* const* components, uint32_t* count);
    /* Writes the graph. Pure. TSR_UNSUPPORTED with a reason if these options cannot be met. [any] */
    const tsr_status* (*build)(const struct tsr_lowering* self, const tsr_node* node,
                               const tsr_lowering_options* options, tsr_builder* builder);
} tsr_lowering;

/* An op that a plugin brings. An op without lowerings is a primitive: some plugin must bring kernels for it. */
typedef struct tsr_operator {
    uint32_t struct_size;
    uint32_t version;
    const tsr_chain* next;
    const void* context;
    const char* name;
    /* Shape inference. `node` has inputs and attributes, no outputs; fills *outputs[0 .. output_count), which the host
     * has zeroed and given their struct_size. Pure. [any] */
    const tsr_status* (*infer)(const struct tsr_operator* self, const tsr_node* node, tsr_tensor* const* outputs);
    const tsr_lowering* const* lowerings;
    uint32_t lowering_count;
    uint32_t output_count; /* 0: one for each input after the first */
} tsr_operator;

#ifdef __cplusplus
}
#endif
