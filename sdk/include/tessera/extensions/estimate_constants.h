/* An extension of a plugin (tsr_plugin.get_extension): what estimates of its kernels take of a device that neither the
 * device's description nor the kernel says. The host shows which of it nobody has measured. */
#pragma once

#include <tessera/device.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TSR_ESTIMATE_CONSTANTS "org.tessera.estimate_constants/1"

typedef struct tsr_estimate_constant {
    const char* name;     /* for people, without a unit: "graph node". The host itself reads "launch", in "us": from one
                             kernel to the next where they are not recorded */
    const char* unit;     /* "us"; "" of shares and factors */
    double value;         /* in that unit; finite */
    const char* measured; /* on which device, and when: "RTX 3090, 2026-11-30"; NULL: it is assumed */
} tsr_estimate_constant;

typedef struct tsr_estimate_constants {
    uint32_t struct_size;
    uint32_t reserved;
    const tsr_chain* next;
    /* Writes those of estimates for the device to `constants`, at most `room` of them, and returns how many it wrote.
     * Strings live until the process ends. Pure. [any] */
    uint32_t (*list)(const struct tsr_estimate_constants* self, const tsr_device_info* device,
                     tsr_estimate_constant* constants, uint32_t room);
} tsr_estimate_constants;

#ifdef __cplusplus
}
#endif
