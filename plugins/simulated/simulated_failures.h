/* The extension "org.tessera.simulated_failures/1" of the plugin "simulated": makes devices fail on purpose, and tells
 * what they did. Devices are named by id ("SIM0"), open or not. Any thread. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TSR_SIMULATED_FAILURES "org.tessera.simulated_failures/1"

typedef struct tsr_simulated_failures {
    uint32_t struct_size;
    uint32_t reserved;
    /* After `after` more that succeed, every allocation is refused (TSR_DOES_NOT_FIT). */
    void (*refuse_allocations)(const char* device, uint64_t after);
    /* After `after` more that succeed, one upload, download or copy fails (TSR_DEVICE_ERROR). */
    void (*fail_copy)(const char* device, uint64_t after);
    /* After `after` more that succeed, one enqueue of that op (NULL: of any) fails (TSR_DEVICE_ERROR), though plan said
     * yes. */
    void (*fail_kernel)(const char* device, const char* op, uint64_t after);
    /* From now on everything on the device fails (TSR_DEVICE_ERROR). */
    void (*vanish)(const char* device);
    /* All of the device's failures are taken back and its counts start at 0. */
    void (*reset)(const char* device);
    /* Bytes that are allocated now, and the most that were since reset. */
    uint64_t (*allocated_bytes)(const char* device);
    uint64_t (*most_allocated_bytes)(const char* device);
    /* Kernels that have been computed since reset; `op` NULL: of any op. */
    uint64_t (*kernels_run)(const char* device, const char* op);
} tsr_simulated_failures;

#ifdef __cplusplus
}
#endif
