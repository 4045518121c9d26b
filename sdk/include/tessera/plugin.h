/* The plugin: one exported function, one table. */
#pragma once

#include <tessera/device.h>
#include <tessera/graph.h>
#include <tessera/kernel.h>
#include <tessera/status.h>
#include <tessera/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A host takes plugins of its own major version whose minor version is not above its own. Within a major version
 * structs only grow at their end and functions keep their meaning. */
#define TSR_ABI_MAJOR 1
#define TSR_ABI_MINOR 0

typedef enum tsr_log_level {
    TSR_LOG_DEBUG = 0,
    TSR_LOG_INFO = 1,
    TSR_LOG_WARNING = 2,
    TSR_LOG_ERROR = 3
} tsr_log_level;

/* What the host offers. Lives until the process ends. */
typedef struct tsr_host {
    uint32_t struct_size;
    const void* next;
    uint32_t abi_major;
    uint32_t abi_minor;
    /* Any thread; not from run. */
    void (*log)(tsr_log_level level, const char* plugin, const char* message);
    /* "org.tessera.NAME/1" or NULL. */
    const void* (*get_extension)(const char* name);
} tsr_host;

/* What the plugin brings. Lives until the process ends: a plugin is never unloaded. Empty lists are NULL and 0. */
typedef struct tsr_plugin {
    uint32_t struct_size;
    const void* next;
    uint32_t abi_major;
    uint32_t abi_minor;
    const char* name;    /* as in the manifest */
    const char* version; /* as in the manifest */

    const tsr_device_provider* const* providers;
    uint32_t provider_count;
    const tsr_kernel* const* kernels;
    uint32_t kernel_count;
    const tsr_layout* const* layouts;
    uint32_t layout_count;
    const tsr_operator* const* operators;
    uint32_t operator_count;

    /* Called once, before anything else of the table; may be NULL. The list lives during the call. */
    const tsr_status* (*initialize)(const tsr_device_info* const* devices, uint32_t device_count);
    const void* (*get_extension)(const char* name); /* may be NULL */
} tsr_plugin;

/* The one symbol. No side effects. NULL if the plugin cannot serve a host of this version. */
typedef const tsr_plugin* (*tsr_plugin_query_function)(const tsr_host* host);
#define TSR_PLUGIN_QUERY "tessera_plugin_query"

#if defined(__GNUC__)
#define TSR_EXPORT __attribute__((visibility("default")))
#else
#define TSR_EXPORT
#endif

#ifdef __cplusplus
}
#endif
