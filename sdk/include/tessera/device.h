/* Devices: what the core tells plugins about hardware, and what a plugin that owns devices offers. */
#pragma once

#include <tessera/status.h>
#include <tessera/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One device, as the core found it or as a rig file describes it. Plugins match against this; they do not probe. */
typedef struct tsr_device_info {
    uint32_t struct_size;
    const void* next;
    const char* kind;            /* "cpu", "cuda", "simulated" */
    const char* id;              /* as users write it: "CPU", "CUDA0", "SIM1" */
    const char* name;            /* "AMD EPYC", "NVIDIA GeForce RTX 3090" */
    uint32_t index;              /* among the devices of its kind */
    uint32_t compute_capability; /* GPUs: 100 * major + 10 * minor ("8.6" is 860); 0 for a CPU */
    uint64_t memory_bytes;       /* what the device has; host memory for a CPU */
    uint64_t free_memory_bytes;
    const char* link;             /* "pcie4x16" or "" */
    const char* pci_id;           /* "0000:01:00.0" or "" */
    const char* const* cpu_flags; /* CPU: names as in /proc/cpuinfo ("avx2", "fma"), ends with NULL. Others: NULL */
    uint32_t threads;             /* CPU: workers of the team */
    uint32_t numa_nodes;
    uint64_t l1_bytes, l2_bytes,
        l3_bytes;            /* CPU: data caches, of one core (l1, l2) and of all together (l3); 0 unknown */
    double memory_bandwidth; /* bytes a second, an estimate for costs; 0 unknown */
} tsr_device_info;

/* An opened device. The plugin that opened it owns everything behind it. Addresses are of the device's own space: the
 * core never reads through them and never hands a host address where one is expected. */
typedef struct tsr_device {
    uint32_t struct_size;
    const void* next;
    const tsr_device_info* info;

    /* `bytes` of device memory, aligned to 256 or better. Called while loading only. */
    const tsr_status* (*allocate)(struct tsr_device* self, uint64_t bytes, void** address);
    void (*release)(struct tsr_device* self, void* address);

    /* Queues run what is given to them in order. The core uses one queue from one thread at a time. */
    const tsr_status* (*create_queue)(struct tsr_device* self, void** queue);
    void (*destroy_queue)(struct tsr_device* self, void* queue);

    /* Host memory given to upload and download stays valid until wait returns. */
    const tsr_status* (*upload)(struct tsr_device* self, void* queue, void* to, const void* from_host, uint64_t bytes);
    const tsr_status* (*download)(struct tsr_device* self, void* queue, void* to_host, const void* from,
                                  uint64_t bytes);
    const tsr_status* (*copy)(struct tsr_device* self, void* queue, void* to, const void* from, uint64_t bytes);
    const tsr_status* (*wait)(struct tsr_device* self, void* queue);

    /* Ends the device; everything allocated on it is gone. Called once, when no work is under way. */
    void (*close)(struct tsr_device* self);
} tsr_device;

typedef struct tsr_device_provider {
    uint32_t struct_size;
    const void* next;
    const char* kind; /* the device kind that it owns: "cuda", "simulated". Never "cpu": that is the core's */
    const void* context;
    /* Whether this provider can own the device. Pure; any thread. On no, `reason` (capacity bytes) says what is
     * required, what was found. */
    uint32_t (*match)(const struct tsr_device_provider* self, const tsr_device_info* info, char* reason,
                      uint32_t capacity);
    /* `info` outlives the device. One device is opened once. */
    const tsr_status* (*open)(const struct tsr_device_provider* self, const tsr_device_info* info, tsr_device** device);
} tsr_device_provider;

#ifdef __cplusplus
}
#endif
