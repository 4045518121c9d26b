/* Status: how a function of the ABI reports failure.
 *
 * A function that can fail returns `const tsr_status*`. NULL is success. Anything else is owned by the receiver, which
 * calls its `destroy` when it has read it: the side that made a status frees it. */
#pragma once

#include <tessera/abi.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t tsr_code;
enum {
    TSR_OK = 0,
    TSR_INVALID_ARGUMENT = 1, /* the caller's request is malformed */
    TSR_NOT_FOUND = 2,        /* a file, tensor, key, op, device or plugin does not exist */
    TSR_UNSUPPORTED = 3,      /* well-formed, but nothing here can do it */
    TSR_CORRUPT_DATA = 4,     /* a file or a message contradicts itself or its format */
    TSR_DOES_NOT_FIT = 5,     /* more memory, context or rows than available */
    TSR_IO_ERROR = 6,         /* the operating system refused to read, write, map or open */
    TSR_DEVICE_ERROR = 7,     /* an operation of a device failed; the step is lost, the device can go on */
    TSR_CANCELLED = 8,        /* the caller asked to stop */
    TSR_INTERNAL = 9,         /* an invariant inside the runtime was violated: a bug */
    TSR_DEVICE_LOST = 10      /* a device failed for good: its memory is gone, every later call on it fails */
};

typedef struct tsr_status {
    uint32_t struct_size;
    tsr_code code;
    const tsr_chain* next;
    const char* message; /* UTF-8, NUL-terminated, or NULL; valid until destroy */
    /* [any] Called once. NULL: the status is static. */
    void (*destroy)(const struct tsr_status* self);
} tsr_status;

#ifdef __cplusplus
}
#endif
