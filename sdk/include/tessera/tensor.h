/* Tensors as a node's kernel sees them: a description without data. The addresses of the data are passed to each
 * run (tsr_run), so a prepared kernel serves every batch, and weights may be rebound between runs. */
#pragma once

#include <tessera/device.h>
#include <tessera/status.h>
#include <tessera/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TSR_MAX_RANK 4

typedef uint32_t tsr_role;
enum {
    TSR_ROLE_ACTIVATION = 0, /* written by one node of a step, read by later ones */
    TSR_ROLE_WEIGHT = 1,     /* constant after loading; like TSR_ROLE_CACHE it can have a private layout */
    TSR_ROLE_INPUT = 2,      /* written by the core before a step: token ids, positions, page tables */
    TSR_ROLE_CACHE = 3       /* pages of cached rows: dims {elements, TSR_PAGE_TOKENS, pages} */
};

/* A range of rows that a step works on: begin <= row < end. A value of two numbers that never grows. The memory plan
 * uses the maximum (tsr_tensor.dims), a kernel the actual range. Rows are numbered in the batch: a tensor over the
 * range [3, 5) has its data at rows 3 and 4 of a buffer that is as large as the maximum. An empty range costs nothing.
 */
typedef struct tsr_range {
    int32_t begin;
    int32_t end;
} tsr_range;

enum {
    TSR_RANGE_FIXED = -1,          /* not bounded: all rows, always */
    TSR_RANGE_ROWS = 0,            /* all rows of the batch: [0, n) */
    TSR_RANGE_PROMPT_ROWS = 1,     /* rows of sequences that bring many new rows: [0, p) */
    TSR_RANGE_GENERATION_ROWS = 2, /* rows of sequences that bring few: [p, n) */
    TSR_RANGE_OUTPUT_ROWS = 3,     /* rows whose outputs are wanted: [0, o) */
    TSR_RANGE_COUNT = 4
};

typedef struct tsr_tensor {
    uint32_t struct_size;
    tsr_type type; /* TSR_TYPE_NONE: an optional operand that is absent; no other field counts then */
    const tsr_chain* next;
    tsr_role role;
    uint32_t rank; /* 1 .. TSR_MAX_RANK */
    int32_t range; /* TSR_RANGE_*: what bounds the slowest dimension (dims[rank - 1]) */
    uint32_t reserved;
    int64_t dims[TSR_MAX_RANK];    /* extents in elements, fastest first, maxima where bounded; 1 past the rank */
    int64_t strides[TSR_MAX_RANK]; /* bytes between neighbours along each dimension; [0] is the bytes of one block.
                                      Rows of some types have a prefix before their first block (types.h).
                                      They describe the canonical layout, also where `layout` names another */
    int64_t offset;     /* bytes from the start of the storage to the row of element 0, in the canonical layout; of
                           types without a prefix to its block */
    const char* layout; /* "" or NULL: canonical. Else the name of a tsr_layout in which the storage was packed */
    const char* name;   /* for messages: "blk.3.ffn_down.weight"; may be NULL */
} tsr_tensor;

/* A layout into which rows can be packed: weights for a kernel, or pages of a cache. Two plugins that use one name
 * mean the same bytes. Rows are numbered over all dimensions but the first; a group is `group_rows` neighbours. A
 * tensor can be packed if its rows are a multiple of that and its row length of `elements_multiple`. Because packed
 * groups follow each other, a view that starts at a group's first row is a view of the packed storage too. */
typedef struct tsr_layout {
    uint32_t struct_size;
    tsr_type type; /* of the canonical rows */
    const tsr_chain* next;
    const void* context;
    const char* name; /* "q4_0_x8" */
    uint32_t group_rows;
    uint32_t elements_multiple;
    /* Bytes of one packed group of rows of `elements`. Pure. [any] */
    uint64_t (*group_bytes)(const struct tsr_layout* self, int64_t elements);
    /* Packs `groups` groups from canonical rows that follow each other. Host memory; buffers do not overlap. `packed`
     * is a group in memory aligned to 64 bytes. Pure, without allocation. NULL: cannot; then kernels may ask for it on
     * devices with enqueue_pack alone, but files can hold it. [any] */
    void (*pack)(const struct tsr_layout* self, int64_t elements, int64_t groups, const void* rows, void* packed);
    /* The inverse, exact: canonical rows as they were. NULL: cannot. [any] */
    void (*unpack)(const struct tsr_layout* self, int64_t elements, int64_t groups, const void* packed, void* rows);
    /* Provisional (TSR_DEVICE_ABI). The same bytes, made on a device of `interop`: puts the work on `queue` and
     * returns, without allocation. NULL: made on the host. docs/plugins.md says who calls them, and when. [step] */
    const char* interop;
    uint32_t device_abi; /* TSR_DEVICE_ABI of the plugin; 0 without these functions */
    uint32_t reserved;
    const tsr_status* (*enqueue_pack)(const struct tsr_layout* self, tsr_device* device, tsr_queue queue,
                                      int64_t elements, int64_t groups, const void* rows, void* packed);
    const tsr_status* (*enqueue_unpack)(const struct tsr_layout* self, tsr_device* device, tsr_queue queue,
                                        int64_t elements, int64_t groups, const void* packed, void* rows);
} tsr_layout;

/* Tokens in a page of the cache. A constant of the ABI. */
#define TSR_PAGE_TOKENS 64

#ifdef __cplusplus
}
#endif
