/* Kernels: plan, prepare, run.
 *
 * plan is asked often, also for hardware that is not here; prepare once for each node that is kept; run (CPU) or
 * enqueue (a device's queue) once for each batch. A yes of plan that fails later is a bug of the plugin. */
#pragma once

#include <tessera/device.h>
#include <tessera/graph.h>
#include <tessera/status.h>
#include <tessera/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TSR_MAX_OPERANDS 24 /* inputs and outputs of one node together */
#define TSR_REASON_BYTES 256

/* What a kernel answers about a node. The host zeroes it and sets struct_size. */
typedef struct tsr_kernel_plan {
    uint32_t struct_size;
    uint32_t supported;            /* 1 or 0 */
    char reason[TSR_REASON_BYTES]; /* no: required, supported, missing. Yes: the variant, for people */
    uint64_t workspace_bytes;      /* scratch for the time of one run, shared by all workers, 64-byte aligned */
    uint64_t state_bytes;          /* host memory that prepare will allocate: at most 64 KiB */
    double seconds_one_row;        /* estimated time with one row, and one sequence at half of its cached tokens */
    double seconds_all_rows;       /* the same with the maximum of rows */
    /* For each operand (inputs, then outputs) the layouts that it may have, best first, ended by NULL; "" is the
     * canonical one. NULL: canonical only. Lists live as long as the plugin. */
    const char* const* layouts[TSR_MAX_OPERANDS];
    /* Attention: the least cap (scratch_bytes attribute) under which it can work; else 0. */
    uint64_t least_scratch_bytes;
} tsr_kernel_plan;

/* One run. On a device every address in it is the device's, `ranges` too. */
typedef struct tsr_run {
    uint32_t struct_size;
    const void* next;
    /* For each operand (inputs, then outputs) the start of its storage: add tsr_tensor.offset. NULL for absent ones. On
     * a device the array itself is host memory. */
    void* const* data;
    const tsr_range* ranges; /* [TSR_RANGE_COUNT] */
    void* workspace;
    /* CPU only: all workers call run with the same arguments but `worker`. */
    uint32_t worker;
    uint32_t workers;
    void* team;
    /* Returns when all workers of the team have called it. Orders memory. */
    void (*barrier)(void* team, uint32_t worker);
    /* Hands out the numbers 0 .. count - 1 (count <= 65535), each to one worker, anew with the node and with every
     * barrier: first those of the worker's own share, rising, then what others have left, from the back. UINT32_MAX
     * when all are taken. All workers that ask give the same count. Orders nothing. NULL: work has to be shared by
     * worker and workers alone. */
    uint32_t (*piece)(void* team, uint32_t worker, uint32_t count);
} tsr_run;

typedef struct tsr_kernel {
    uint32_t struct_size;
    const void* next;
    const char* name; /* unique in the plugin: "matmul.q4_0_x8" */
    const char* op;
    uint32_t op_version;
    const char* device_kind;
    /* Decides before cost. 0 for built-in kernels, negative for fallbacks, positive to replace others. */
    int32_t priority;
    const void* context;

    /* Pure; any thread; no allocation. */
    const tsr_status* (*plan)(const struct tsr_kernel* self, const tsr_node* node, const tsr_device_info* device,
                              tsr_kernel_plan* plan);
    /* The layouts of the node's operands are now those chosen. `node` outlives the state. The
     * thread that loads and takes steps: again for a node, before its old state is released, when a weight of it has
     * come to lie in another layout. */
    const tsr_status* (*prepare)(const struct tsr_kernel* self, const tsr_node* node, const tsr_device_info* device,
                                 void** state);
    void (*release)(const struct tsr_kernel* self, void* state);

    /* Kind "cpu": called by every worker at once; no allocation, no lock, no wait but run->barrier. Results must not
     * depend on the number of workers. When run has returned to all workers, its outputs are complete. A status other
     * than NULL from any worker fails the step; even then every worker must pass the same barriers. */
    const tsr_status* (*run)(const struct tsr_kernel* self, void* state, const tsr_run* run);
    /* Other kinds: puts the work on the queue and returns; no allocation, no wait. */
    const tsr_status* (*enqueue)(const struct tsr_kernel* self, void* state, const tsr_run* run, void* queue);
} tsr_kernel;

#ifdef __cplusplus
}
#endif
