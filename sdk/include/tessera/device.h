/* Devices: what the core tells plugins about hardware, and what a plugin that owns devices offers.
 *
 * A device is asynchronous. Queues run what is put on them in order, at some later time; queues are ordered against
 * each other, and against the host, by events alone. Only functions whose name begins with wait_ block. An optional
 * function is NULL where the device does not offer it; the core then does without. */
#pragma once

#include <tessera/status.h>
#include <tessera/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One device, as the core found it or as a rig file describes it. Plugins match against this; they do not probe.
 * Numbers are 0 and strings "" where unknown. */
typedef struct tsr_device_info {
    uint32_t struct_size;
    uint32_t index; /* among the devices of its kind; parts of one card that are devices of their own share it */
    const tsr_chain* next;
    const char* kind;             /* "cpu", "cuda" */
    const char* id;               /* as users write it: "CPU", "CUDA0" */
    const char* name;             /* "AMD EPYC", "NVIDIA GeForce RTX 3090" */
    const char* link;             /* to the host: "pcie4x16" */
    const char* pci_id;           /* "0000:01:00.0" */
    const char* uuid;             /* "GPU-8a5e...", as the driver writes it */
    const char* const* cpu_flags; /* CPU: names as in /proc/cpuinfo ("avx2", "fma"), ends with NULL. Others: NULL */
    uint32_t compute_capability;  /* GPUs: 100 * major + 10 * minor ("8.6" is 860); 0 for a CPU */
    uint32_t processors;          /* GPUs: multiprocessors. CPU: physical cores */
    uint32_t threads;             /* CPU: workers of the team */
    uint32_t numa_nodes;          /* CPU: nodes of host memory */
    int32_t numa_node;            /* nearest to a GPU; -1 unknown */
    uint32_t unified_memory;      /* 1: the device's memory is the host's own */
    uint64_t memory_bytes;        /* of the device; host memory for a CPU */
    uint64_t free_memory_bytes;
    uint64_t largest_allocation_bytes;
    uint64_t allocation_alignment;      /* of what allocate returns, bytes */
    uint64_t l1_bytes, l2_bytes;        /* data caches. CPU: of one core. GPU: l2 of the whole device */
    uint64_t l3_bytes;                  /* CPU: of all cores together */
    uint64_t shared_memory_bytes;       /* GPUs: of one multiprocessor */
    uint64_t shared_memory_block_bytes; /* GPUs: maximum of one block */
    double clock_hz;                    /* sustained under load */
    double memory_bandwidth;            /* bytes/s, of all threads or multiprocessors together */
    double link_bandwidth;              /* bytes/s from the host, one direction */
} tsr_device_info;

typedef void* tsr_queue;
typedef void* tsr_event;
typedef void* tsr_recording;

/* An opened device. The plugin that opened it owns everything behind it. Addresses are of the device's own space: the
 * core never reads through them and never passes a host address where one is expected.
 *
 * Functions without a thread class of their own are [step]: [load] while a model is loaded, then the thread that runs
 * its steps, one at a time. A failure TSR_DEVICE_LOST is final: every later call but the release functions and `close`
 * returns it. */
typedef struct tsr_device {
    uint32_t struct_size;
    uint32_t reserved;
    const tsr_chain* next;
    void* context;
    const tsr_device_info* info;
    /* What its addresses, queues and events are to kernels and to other devices. "cuda-driver/1": addresses are
     * CUdeviceptr; native_context is a CUcontext; the native handles of queues and events are CUstream and CUevent. */
    const char* interop;

    /* Memory of the device, aligned to info->allocation_alignment. release may not be called while work that was put on
     * a queue and has not ended, or a recording that will be replayed, refers to the memory. [load] */
    const tsr_status* (*allocate)(struct tsr_device* self, uint64_t bytes, void** address);
    void (*release)(struct tsr_device* self, void* address);
    /* Optional. Free and total bytes of the device's memory, as its driver counts them now. [any] */
    const tsr_status* (*memory_info)(struct tsr_device* self, uint64_t* free_bytes, uint64_t* total_bytes);
    /* Optional. Page-locked host memory, aligned to 64 bytes, which upload and download move without a copy in between,
     * on every device of this interop. [load] */
    const tsr_status* (*allocate_pinned)(struct tsr_device* self, uint64_t bytes, void** host_address);
    void (*release_pinned)(struct tsr_device* self, void* host_address);
    /* Optional. Page-locks host memory of the caller; it stays valid until unregister_host. Both are aligned to 4096.
     * [load] */
    const tsr_status* (*register_host)(struct tsr_device* self, void* host_address, uint64_t bytes);
    void (*unregister_host)(struct tsr_device* self, void* host_address);

    /* Queues. destroy_queue does not wait: nothing may be under way. [load] */
    const tsr_status* (*create_queue)(struct tsr_device* self, tsr_queue* queue);
    void (*destroy_queue)(struct tsr_device* self, tsr_queue queue);
    /* Blocks until all that was put on the queue has ended; returns the first failure among it, once. */
    const tsr_status* (*wait_queue)(struct tsr_device* self, tsr_queue queue);

    /* Events. One that was never recorded counts as complete. Recording an event again moves it: a wait that was
     * enqueued before waits for the earlier record. timed: 1 if event_seconds will be asked. destroy_event may be
     * called while work that was put on a queue refers to the event: that work goes on as if the event were still
     * there. A failure of the work before an event is reported by wait_event until wait_queue of its queue has returned
     * that failure. [load] */
    const tsr_status* (*create_event)(struct tsr_device* self, uint32_t timed, tsr_event* event);
    void (*destroy_event)(struct tsr_device* self, tsr_event event);
    /* The event completes when all that was put on the queue before has ended. */
    const tsr_status* (*record_event)(struct tsr_device* self, tsr_queue queue, tsr_event event);
    /* What is put on the queue from now on starts after `event`, which belongs to `owner`: this device or another one
     * of the same interop. */
    const tsr_status* (*queue_wait_event)(struct tsr_device* self, tsr_queue queue, struct tsr_device* owner,
                                          tsr_event event);
    /* complete: 1 or 0. [any] */
    const tsr_status* (*query_event)(struct tsr_device* self, tsr_event event, uint32_t* complete);
    /* Blocks until the event is complete. Returns the first failure of the work before it on its queue, each time it is
     * called until wait_queue of that queue has returned the failure; NULL after that. [any] */
    const tsr_status* (*wait_event)(struct tsr_device* self, tsr_event event);
    /* Optional. Seconds between two complete timed events. */
    const tsr_status* (*event_seconds)(struct tsr_device* self, tsr_event begin, tsr_event end, double* seconds);

    /* Copies. Host memory stays valid and, but for what a download writes, unchanged until the copy has ended; it may
     * be read or written as late as that. Host memory that is not page-locked is allowed outside recordings, and may
     * make the call as slow as the copy. */
    const tsr_status* (*upload)(struct tsr_device* self, tsr_queue queue, void* to, const void* from_host,
                                uint64_t bytes);
    const tsr_status* (*download)(struct tsr_device* self, tsr_queue queue, void* to_host, const void* from,
                                  uint64_t bytes);
    /* Within the device; the ranges do not overlap. */
    const tsr_status* (*copy)(struct tsr_device* self, tsr_queue queue, void* to, const void* from, uint64_t bytes);
    /* Optional. Whether copy_from_peer reaches the memory of `peer`, a device of the same interop, directly and not
     * through host memory: 1 or 0. [any] */
    uint32_t (*can_reach_peer)(struct tsr_device* self, struct tsr_device* peer);
    /* Optional, with can_reach_peer. Put on a queue of this device. */
    const tsr_status* (*copy_from_peer)(struct tsr_device* self, tsr_queue queue, void* to, struct tsr_device* peer,
                                        const void* from, uint64_t bytes);

    /* Optional, all four or none. Recordings: work captured once and replayed. Between begin_recording and
     * end_recording what is put on the queue (copies, kernels) is captured instead of run; events, waits, allocation,
     * other queues and host memory that is not page-locked are refused then. end_recording makes the recording ready:
     * its memory is allocated here and replay allocates nothing. With recording NULL it discards what was captured,
     * also after a failure. destroy_recording may not be called while a replay of the recording has not ended. [load]
     */
    const tsr_status* (*begin_recording)(struct tsr_device* self, tsr_queue queue);
    const tsr_status* (*end_recording)(struct tsr_device* self, tsr_queue queue, tsr_recording* recording);
    void (*destroy_recording)(struct tsr_device* self, tsr_recording recording);
    /* Puts the recorded work on the queue, as one unit in its order. */
    const tsr_status* (*replay)(struct tsr_device* self, tsr_queue queue, tsr_recording recording);

    /* Native handles, as the interop defines them, for kernels and devices of other plugins; NULL where it defines
     * none. They stay owned by the device. [any] */
    void* (*native_context)(struct tsr_device* self);
    void* (*native_queue)(struct tsr_device* self, tsr_queue queue);
    void* (*native_event)(struct tsr_device* self, tsr_event event);

    /* Closes the device; everything on it is gone. Called once, when no work is under way. [load] */
    void (*close)(struct tsr_device* self);
} tsr_device;

typedef struct tsr_device_provider {
    uint32_t struct_size;
    uint32_t device_abi; /* TSR_DEVICE_ABI */
    const tsr_chain* next;
    const void* context;
    const char* kind;    /* the device kind that it owns: "cuda". Never "cpu": that is the core's */
    const char* interop; /* of the devices that it opens */
    /* Whether this provider can own the device: 1 or 0. Pure. On no, `reason` (capacity bytes) says what is required
     * and what was found. [any] */
    uint32_t (*match)(const struct tsr_device_provider* self, const tsr_device_info* info, char* reason,
                      uint32_t capacity);
    /* `info` outlives the device. Several opened devices of one info are independent of each other. [load] */
    const tsr_status* (*open)(const struct tsr_device_provider* self, const tsr_device_info* info, tsr_device** device);
} tsr_device_provider;

#ifdef __cplusplus
}
#endif
