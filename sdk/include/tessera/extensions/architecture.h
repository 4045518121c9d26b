/* An extension of a plugin (tsr_plugin.get_extension): architectures of models. One reads the metadata of a file, takes
 * tensors of it as weights, and writes the graph of the model in ops of the core and of plugins.
 *
 * Nothing of a file is ignored: a tensor that was not taken and a key that was not read refuse it, unless leave_out
 * names them. Structs grow at their end, as those of the ABI do. */
#pragma once

#include <tessera/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TSR_ARCHITECTURES "org.tessera.architecture/1"

/* Of functions that look something up. */
enum { TSR_REQUIRED = 0, TSR_OPTIONAL = 1 };

/* Of weights; they can be combined with TSR_OPTIONAL. */
enum {
    TSR_WEIGHT_VECTOR = 2 /* f32 in the graph; the file may have f16 or bf16, which are converted */
};

/* The host's view of a file. Valid during the call it was given to, on that thread; so are the strings and tensors that
 * it hands out. Keys are named without the prefix: "block_count" is ARCHITECTURE.block_count. A function that fails
 * leaves the table unusable: return the status. */
typedef struct tsr_model {
    uint32_t struct_size;
    uint32_t reserved;
    const tsr_chain* next;
    void* context;

    /* Each reads a key. One that is missing leaves *value as it is, or fails if `presence` is TSR_REQUIRED. An integer
     * lies in minimum .. 2^31 - 1; an array of equal ones, an element for each layer, counts as one. A number is
     * finite. */
    const tsr_status* (*integer)(struct tsr_model* self, const char* key, uint32_t presence, int64_t minimum,
                                 int64_t* value);
    const tsr_status* (*number)(struct tsr_model* self, const char* key, uint32_t presence, double* value);
    const tsr_status* (*boolean)(struct tsr_model* self, const char* key, uint32_t presence, uint32_t* value);
    const tsr_status* (*text)(struct tsr_model* self, const char* key, uint32_t presence, const char** value);
    /* An array of `count` integers, or one for all of them. */
    const tsr_status* (*integers)(struct tsr_model* self, const char* key, uint32_t presence, int64_t minimum,
                                  uint32_t count, int64_t* values);
    /* A tensor of the file by its full name; NULL if there is none. Type, rank and dims count. Does not take it. */
    const tsr_tensor* (*tensor)(struct tsr_model* self, const char* name);

    /* A line for people about what was assumed. Copied. */
    const tsr_status* (*note)(struct tsr_model* self, const char* line);
    /* Tensors whose names the regular expression (PCRE2) is found in are known and not used, and why. Copied. */
    const tsr_status* (*leave_out)(struct tsr_model* self, const char* pattern, const char* reason);

    /* In tsr_architecture.build only. Takes the tensor of this full name with exactly these extents (fastest first) as
     * a weight of the graph. flags: TSR_WEIGHT_*, and TSR_OPTIONAL: *value is 0 if it is missing. */
    const tsr_status* (*weight)(struct tsr_model* self, const char* name, const int64_t* dims, uint32_t rank,
                                uint32_t flags, tsr_value* value);
    /* In tsr_architecture.build only. Nodes and weights that follow belong to this layer, which placement goes by:
     * 0 .. layers - 1, and `layers` for what comes after the last. */
    const tsr_status* (*set_layer)(struct tsr_model* self, int64_t layer);
} tsr_model;

/* What the host needs to know before there is a graph. */
typedef struct tsr_model_sizes {
    uint32_t struct_size;
    uint32_t latent_attention; /* 1: the layers have the op "mla_attention", so that -mla has a meaning */
    const tsr_chain* next;
    int64_t layers; /* that are computed */
    int64_t embedding;
    int64_t vocabulary;
    int64_t context;      /* tokens that the model was made for; 0: unknown */
    int64_t experts_used; /* routed ones of a row; 0: there are none */
} tsr_model_sizes;

/* What the user asks of the graph. */
typedef struct tsr_graph_options {
    uint32_t struct_size;
    uint32_t keep_at_least; /* attributes of the op "moe_route"; keep_ratio 0: leave both out */
    const tsr_chain* next;
    double keep_ratio;
} tsr_graph_options;

/* Inputs of the builder of tsr_architecture.build: tokens, positions and sequences i32 [R], page_table i32 [P, S],
 * output_rows i32 [O]. */
enum {
    TSR_INPUT_TOKENS = 0,
    TSR_INPUT_POSITIONS = 1,
    TSR_INPUT_SEQUENCES = 2,
    TSR_INPUT_PAGE_TABLE = 3,
    TSR_INPUT_OUTPUT_ROWS = 4
};

typedef struct tsr_architecture {
    uint32_t struct_size;
    uint32_t reserved;
    const tsr_chain* next;
    const void* context;
    const char* name; /* general.architecture of its files */
    /* Fills *sizes, which the host has zeroed and given its struct_size. Pure. [any] */
    const tsr_status* (*measure)(const struct tsr_architecture* self, tsr_model* model, tsr_model_sizes* sizes);
    /* Writes the graph: nodes of TSR_STAGE_RUN, no caches (abstract ops have them), and as output 0 the logits, f32
     * [vocabulary, O] over TSR_RANGE_OUTPUT_ROWS. Reads every key that results depend on. Pure. [any] */
    const tsr_status* (*build)(const struct tsr_architecture* self, tsr_model* model, const tsr_graph_options* options,
                               tsr_builder* builder);
} tsr_architecture;

/* The extension itself. Lives until the process ends. */
typedef struct tsr_architectures {
    uint32_t struct_size;
    uint32_t count;
    const tsr_chain* next;
    const tsr_architecture* const* architectures;
} tsr_architectures;

#ifdef __cplusplus
}
#endif
