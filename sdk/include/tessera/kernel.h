/* Kernels: plan, prepare, run.
 *
 * plan is asked often, also for hardware that is not here; prepare once for each node that is kept; run (CPU) or
 * enqueue (a device's queue) once for each batch. A node that plan accepted and that fails later is a bug of the
 * plugin. */
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

/* What a kernel answers about a node. The host zeroes it and sets struct_size. Estimates are seconds on the device as
 * described, finite and not negative; a kernel whose plan breaks this, or asks for a workspace of more than 2^46 bytes
 * or for layouts that no plugin brings or of which none can hold the operand, is not used for the node. */
typedef struct tsr_kernel_plan {
    uint32_t struct_size;
    uint32_t supported; /* 1 or 0 */
    const tsr_chain* next;
    char reason[TSR_REASON_BYTES]; /* UTF-8. No: required, supported, missing. Yes: the variant, for people */
    uint64_t workspace_bytes;      /* scratch for the time of one run, shared by all workers, aligned to 64 bytes */
    /* Attention: the smallest scratch_bytes (attribute of the node) with which it can work; else 0. */
    uint64_t minimum_scratch_bytes;
    /* One row, and the maximum of rows (of one sequence), with nothing cached before them. */
    double seconds_one_row; /* on a CPU without the call and the barrier after it, which the host adds to all */
    double seconds_all_rows;
    /* The same where max_tokens of the sequence are cached; between the two time is linear in the depth. 0: as with
     * nothing cached. */
    double seconds_one_row_full;
    double seconds_all_rows_full;
    /* Memory traffic of the first two: bytes read and written past the last cache. 0: unknown. It tells whether memory
     * or arithmetic bounds a node. */
    double bytes_one_row;
    double bytes_all_rows;
    /* For each operand (inputs, then outputs) the layouts that it may have, best first, ended by NULL; one that cannot
     * hold it is passed over. "" is the canonical one. NULL: canonical only. Lists live until the process ends. */
    const char* const* layouts[TSR_MAX_OPERANDS];
} tsr_kernel_plan;

/* One run on the CPU. */
typedef struct tsr_run {
    uint32_t struct_size;
    uint32_t reserved;
    const tsr_chain* next;
    /* For each operand (inputs, then outputs) the start of its storage: add tsr_tensor.offset. NULL for absent ones. */
    void* const* data;
    const tsr_range* ranges; /* [TSR_RANGE_COUNT]: the actual ranges of this step */
    void* workspace;
    /* All workers call run with the same arguments but `worker`. There is one where its estimate says that a barrier
     * takes longer than the node. */
    uint32_t worker;
    uint32_t workers;
    void* team;
    /* Returns when all workers of the team have called it. Orders memory. [team] */
    void (*barrier)(void* team, uint32_t worker);
    /* Assigns the numbers 0 .. count - 1 (count <= 65535), each to one worker; starts again with each node and each
     * barrier. First the numbers of the worker's own share, ascending, then those that others have left, descending;
     * UINT32_MAX when all are taken. All workers that call it pass the same count. It does not order memory. NULL: work
     * has to be divided by worker and workers alone. [team] */
    uint32_t (*piece)(void* team, uint32_t worker, uint32_t count);
    /* Becomes 1 when the step is cancelled, at any time; its outputs are discarded then. A kernel may read it
     * (atomically, relaxed) and return early; all of its workers must still pass the same barriers. NULL: never. */
    const uint32_t* cancelled;
} tsr_run;

/* One run on a device. Provisional (TSR_DEVICE_ABI). Addresses are the device's, but for this struct, `data` and
 * `row_bounds`, which are host memory for the time of the call. */
typedef struct tsr_launch {
    uint32_t struct_size;
    uint32_t reserved;
    const tsr_chain* next;
    void* const* data; /* as in tsr_run: of each operand the start of its storage on the device */
    /* On the device, [TSR_RANGE_COUNT]: what to do. Read by the kernel when it runs, not before. */
    const tsr_range* ranges;
    /* On the host, [TSR_RANGE_COUNT]: of each range no more rows than this; how much to launch. A recording is replayed
     * for all ranges within the bounds that it was made with. */
    const int32_t* row_bounds;
    /* No sequence of the step has more tokens cached, its new ones included. */
    int64_t token_bound;
    void* workspace;
    tsr_queue queue;
} tsr_launch;

typedef struct tsr_kernel {
    uint32_t struct_size;
    uint32_t op_version;
    const tsr_chain* next;
    const void* context;
    const char* name; /* unique in the plugin: "matmul.q4_0_x8" */
    const char* op;
    const char* device_kind; /* "cpu", "cuda" */
    /* Provisional (TSR_DEVICE_ABI). The interop that it needs of the device (tsr_device_provider.interop): it is bound
     * to no other device, whatever its kind. NULL for kind "cpu". */
    const char* interop;
    /* Compared before cost. 0 usually, negative for fallbacks, positive to replace others whatever they cost. */
    int32_t priority;
    uint32_t device_abi; /* TSR_DEVICE_ABI of the plugin; 0 for kind "cpu" */

    /* Pure, without allocation. [any] */
    const tsr_status* (*plan)(const struct tsr_kernel* self, const tsr_node* node, const tsr_device_info* info,
                              tsr_kernel_plan* plan);
    /* The layouts of the node's operands are now those chosen. `node`, `info` and `device` (NULL for kind "cpu")
     * outlive the state. May be called again for a node, before its old state is released, when a weight of it is
     * now in another layout. [step] */
    const tsr_status* (*prepare)(const struct tsr_kernel* self, const tsr_node* node, const tsr_device_info* info,
                                 tsr_device* device, void** state);
    /* `state` as prepare set it, also NULL. [step] */
    void (*release)(const struct tsr_kernel* self, void* state);

    /* Kind "cpu". Results must not depend on the number of workers. When run has returned to all workers, its outputs
     * are complete. A status other than NULL from any worker fails the step; even then every worker must pass the same
     * barriers. [team] */
    const tsr_status* (*run)(const struct tsr_kernel* self, void* state, const tsr_run* run);
    /* Other kinds, provisional (TSR_DEVICE_ABI): puts the work on launch->queue and returns; no allocation, no wait,
     * nothing that a recording refuses. [step] */
    const tsr_status* (*enqueue)(const struct tsr_kernel* self, void* state, const tsr_launch* launch);
} tsr_kernel;

#ifdef __cplusplus
}
#endif
