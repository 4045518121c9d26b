/* The extension "org.tessera.simulated-failures/1" of the plugin "simulated": makes devices fail, choose an order of
 * work and lack parts on purpose, and tells what they did. Devices are named by id ("SIM0"), open or not; what is set
 * for an id holds for every device of that id that is open or will be. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TSR_SIMULATED_FAILURES "org.tessera.simulated-failures/1"
/* The interop of simulated devices and of their kernels. */
#define TSR_SIMULATED_INTEROP "simulated/1"

typedef uint32_t tsr_simulated_operation;
enum {
    TSR_SIMULATED_ALLOCATE = 0,
    TSR_SIMULATED_ALLOCATE_PINNED = 1,
    TSR_SIMULATED_REGISTER_HOST = 2,
    TSR_SIMULATED_CREATE_QUEUE = 3,
    TSR_SIMULATED_CREATE_EVENT = 4,
    TSR_SIMULATED_WAIT_QUEUE = 5,
    TSR_SIMULATED_RECORD_EVENT = 6,
    TSR_SIMULATED_QUEUE_WAIT_EVENT = 7,
    TSR_SIMULATED_QUERY_EVENT = 8,
    TSR_SIMULATED_WAIT_EVENT = 9,
    TSR_SIMULATED_EVENT_SECONDS = 10,
    TSR_SIMULATED_UPLOAD = 11,
    TSR_SIMULATED_DOWNLOAD = 12,
    TSR_SIMULATED_COPY = 13,
    TSR_SIMULATED_COPY_FROM_PEER = 14,
    TSR_SIMULATED_BEGIN_RECORDING = 15,
    TSR_SIMULATED_END_RECORDING = 16,
    TSR_SIMULATED_REPLAY = 17,
    TSR_SIMULATED_PREPARE = 18,        /* of a kernel */
    TSR_SIMULATED_ENQUEUE = 19,        /* of a kernel */
    TSR_SIMULATED_EXECUTE_COPY = 20,   /* when the device comes to do it; a wait tells of the failure */
    TSR_SIMULATED_EXECUTE_KERNEL = 21, /* likewise */
    TSR_SIMULATED_MEMORY_INFO = 22,
    TSR_SIMULATED_PACK = 23,   /* tsr_layout.enqueue_pack; executed as a kernel of no op */
    TSR_SIMULATED_UNPACK = 24, /* tsr_layout.enqueue_unpack; likewise */
    TSR_SIMULATED_OPERATION_COUNT = 25
};

#define TSR_SIMULATED_ALWAYS UINT64_MAX

/* Which of the queues that can proceed does so next, and when. */
typedef uint32_t tsr_simulated_policy;
enum {
    TSR_SIMULATED_RANDOM = 0,  /* any; sometimes none for a while */
    TSR_SIMULATED_AT_ONCE = 1, /* work that is ready has ended when the call that put it on its queue returns */
    TSR_SIMULATED_ON_WAIT = 2, /* nothing happens before the host waits for it or queries it, then no more than that */
    TSR_SIMULATED_OLDEST_LAST =
        3,                        /* the queue created first proceeds only where the host waits for it; others freely */
    TSR_SIMULATED_NEWEST_LAST = 4 /* the same of the queue created last */
};

/* What the device does without: functions that are NULL in its table, and packed layouts. */
enum {
    TSR_SIMULATED_NO_RECORDINGS = 1,
    TSR_SIMULATED_NO_PINNED = 2,
    TSR_SIMULATED_NO_REGISTRATION = 4,
    TSR_SIMULATED_NO_PEERS = 8,
    TSR_SIMULATED_NO_MEMORY_INFO = 16,
    TSR_SIMULATED_NO_TIMING = 32,
    TSR_SIMULATED_UNREACHABLE = 64, /* the functions are there, but no peer reaches it and it reaches none */
    TSR_SIMULATED_NO_PACKING = 128, /* products ask for layouts into which the host alone packs */
    TSR_SIMULATED_NO_LAYOUTS = 256  /* products ask for canonical weights */
};

typedef struct tsr_simulated_options {
    uint32_t struct_size;
    tsr_simulated_policy policy;
    uint64_t seed;
    uint32_t without; /* bits TSR_SIMULATED_NO_* */
    uint32_t reserved;
    /* Names of ops and element types, parted by commas, that plan refuses ("matmul,q4_K"); "" or NULL: none. */
    const char* lacks;
} tsr_simulated_options;

/* All functions: [any]. */
typedef struct tsr_simulated_failures {
    uint32_t struct_size;
    uint32_t reserved;
    const void* next;
    /* After `after` more that succeed, `times` operations fail: allocations of any kind with TSR_DOES_NOT_FIT, others
     * with TSR_DEVICE_ERROR. `op`: kernels of that op alone; NULL: all. One setting for each operation, the last. */
    void (*fail)(const char* device, tsr_simulated_operation operation, const char* op, uint64_t after, uint64_t times);
    /* The same, but the operation says that it succeeded and was not done: for tests that find a missing event. Only
     * waits, records, copies, queries (complete at once) and kernels; others fail. */
    void (*omit)(const char* device, tsr_simulated_operation operation, const char* op, uint64_t after, uint64_t times);
    /* After `after` more operations that succeed, the device is lost: all fail with TSR_DEVICE_LOST. */
    void (*vanish)(const char* device, uint64_t after);
    /* Takes effect with the next open, and with the next plan for `lacks` and layouts. Copies the options; NULL: back
     * to a random policy, seed 1 and all parts. 0 if they are malformed, and nothing changes. */
    uint32_t (*configure)(const char* device, const tsr_simulated_options* options);
    /* Failures are taken back and counts start at 0; options stay. */
    void (*reset)(const char* device);
    /* Operations that succeeded since reset; `op` as in fail. Work of a recording counts when it is captured, and as
     * TSR_SIMULATED_EXECUTE_* with each replay. */
    uint64_t (*count)(const char* device, tsr_simulated_operation operation, const char* op);
    /* Bytes of the copies among them. */
    uint64_t (*bytes)(const char* device, tsr_simulated_operation operation);
    /* Bytes of device memory that are allocated now, and the maximum since reset. */
    uint64_t (*allocated_bytes)(const char* device);
    uint64_t (*maximum_allocated_bytes)(const char* device);
    /* The maximum number of queues that had work under way at once, since reset. */
    uint64_t (*maximum_busy_queues)(const char* device);
} tsr_simulated_failures;

#ifdef __cplusplus
}
#endif
