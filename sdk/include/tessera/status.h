/* Status: how a function of the ABI says that it failed.
 *
 * A function that can fail returns `const tsr_status*`. NULL is success. Anything else is owned by the
 * receiver, who reads it and then hands it back through its own `destroy`; so the side that made a status
 * is the side that frees it. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tsr_code {
    TSR_OK = 0,
    TSR_INVALID_ARGUMENT = 1, /* what the caller asked is malformed */
    TSR_NOT_FOUND = 2,        /* a file, tensor, key, op, device or plugin is not there */
    TSR_UNSUPPORTED = 3,      /* well-formed, but nothing here can do it */
    TSR_CORRUPT_DATA = 4,     /* a file or a message contradicts itself or its format */
    TSR_DOES_NOT_FIT = 5,     /* more memory, context or rows than there are */
    TSR_IO_ERROR = 6,         /* the operating system refused to read, write, map or open */
    TSR_DEVICE_ERROR = 7,     /* a device failed; its work is lost, the process goes on */
    TSR_CANCELLED = 8,        /* the caller asked to stop */
    TSR_INTERNAL = 9          /* a promise inside the runtime was broken: a bug */
} tsr_code;

typedef struct tsr_status {
    uint32_t struct_size;
    tsr_code code;
    const char* message;                            /* UTF-8, NUL-terminated; lives until destroy */
    void (*destroy)(const struct tsr_status* self); /* any thread, once */
} tsr_status;

#ifdef __cplusplus
}
#endif
