/* Rules that hold for every declaration of the ABI.
 *
 * Versions. A host takes plugins of its own major version whose minor version is not above its own. Within a major
 * version structs only grow at their end, enumerators keep their values, and functions keep their meaning. sizes.h
 * records the size that each struct had in each minor version: a struct that a plugin hands out has at least the size
 * of the version that the plugin was built for, and the host reads no further than its struct_size. A copy of a struct
 * has the struct_size of the copier's header, whatever that of the original was.
 *
 * Structs begin with struct_size, which whoever fills the struct sets to sizeof, and with `next`, a chain of
 * extensions (tsr_chain) or NULL. They have no padding, at their end neither; reserved fields are 0. Arrays of structs
 * are arrays of pointers, so that the structs may grow. Three small types never grow: tsr_range, tsr_value and
 * tsr_chain. Enumerations are uint32_t.
 *
 * Ownership. Pointers that a function is given are valid for the time of the call unless the declaration says
 * otherwise. What a plugin's table points to lives until the process ends. What one side allocates, that side frees.
 *
 * Threads. Each function names the class of threads that calls it:
 *   [any]   any thread, also several at once. The function is reentrant and takes no lock for long.
 *   [load]  the thread that opens a model or closes it. One at a time for one object; no step is under way on it.
 *   [step]  the thread that runs steps. One at a time for one object; never at once with [load] of the same object.
 *   [team]  every worker of the thread team at once. No allocation, no lock, no wait but the team's barrier.
 * A function may be called from a narrower class than its own, [any] from all. No exception leaves a function of the
 * ABI, in neither direction. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TSR_ABI_MAJOR 1
#define TSR_ABI_MINOR 0

/* The part of the ABI by which GPUs are driven (device.h, tsr_kernel.enqueue, tsr_layout.enqueue_pack) is provisional:
 * it changes with every number, and host and plugin must have the same one. */
#define TSR_DEVICE_ABI 1

#if defined(__GNUC__)
#define TSR_EXPORT __attribute__((visibility("default")))
#else
#define TSR_EXPORT
#endif

/* An extension of a struct: a struct of its own that begins with this one, which therefore never grows. Each side skips
 * tags that it does not know. A chain has no more than 64 links. */
typedef struct tsr_chain {
    uint32_t struct_size; /* of the whole extension */
    uint32_t reserved;
    const struct tsr_chain* next;
    const char* tag; /* "org.tessera.NAME/1" */
} tsr_chain;

#ifdef __cplusplus
}
#endif
