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

typedef uint32_t tsr_log_level;
enum { TSR_LOG_DEBUG = 0, TSR_LOG_INFO = 1, TSR_LOG_WARNING = 2, TSR_LOG_ERROR = 3 };

/* What the host offers. Lives until the process ends. */
typedef struct tsr_host {
    uint32_t struct_size;
    uint32_t reserved;
    const tsr_chain* next;
    void* context;
    uint32_t abi_major;
    uint32_t abi_minor;
    /* Takes a line for the log. `message` is copied, up to 255 bytes of it. Within tsr_kernel.run it never waits, and
     * the line is printed after the nodes that the team runs in one go; else it is printed before the call returns,
     * unless another thread is printing. Where lines come faster than they are printed some are dropped, and their
     * number is printed. `plugin` is the plugin's name and lives until the process ends. [any], and [team] from run. */
    void (*log)(const struct tsr_host* self, tsr_log_level level, const char* plugin, const char* message);
    /* An extension by its tag, "org.tessera.NAME/1", or NULL. It lives until the process ends. [any] */
    const void* (*get_extension)(const struct tsr_host* self, const char* tag);
} tsr_host;

/* What the plugin brings. Lives until the process ends: a plugin is never unloaded. Empty lists are NULL and 0. */
typedef struct tsr_plugin {
    uint32_t struct_size;
    uint32_t reserved;
    const tsr_chain* next;
    const void* context;
    uint32_t abi_major; /* that the plugin was built for */
    uint32_t abi_minor;
    const char* name;    /* as in the manifest */
    const char* version; /* as in the manifest */

    const tsr_device_provider* const* providers;
    const tsr_kernel* const* kernels;
    const tsr_layout* const* layouts;
    const tsr_operator* const* operators; /* with their lowerings */
    const tsr_lowering* const* lowerings; /* for ops that others bring */
    uint32_t provider_count;
    uint32_t kernel_count;
    uint32_t layout_count;
    uint32_t operator_count;
    uint32_t lowering_count;
    uint32_t reserved_count;

    /* Called once, before anything else of the table; may be NULL. The list lives during the call. [load] */
    const tsr_status* (*initialize)(const struct tsr_plugin* self, const tsr_device_info* const* devices,
                                    uint32_t device_count);
    /* An extension of the plugin by its tag, or NULL; may be NULL itself. [any] */
    const void* (*get_extension)(const struct tsr_plugin* self, const char* tag);
} tsr_plugin;

/* The one symbol. No side effects. NULL if the plugin cannot serve a host of this version. [load] */
typedef const tsr_plugin* (*tsr_plugin_query_function)(const tsr_host* host);
#define TSR_PLUGIN_QUERY "tessera_plugin_query"

#ifdef __cplusplus
}
#endif
