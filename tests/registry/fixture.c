/* Plugins that are good, and plugins that are bad in one way each: chosen by macros from the build. Plain C, as the ABI
 * allows. Mapping the library leaves a line in the file that TSR_TEST_MARKERS names: what must never be mapped is seen.
 */
#include <tessera/plugin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef FIXTURE_NAME
#define FIXTURE_NAME "good"
#endif
#ifndef FIXTURE_MAJOR
#define FIXTURE_MAJOR TSR_ABI_MAJOR
#endif
#ifndef FIXTURE_MINOR
#define FIXTURE_MINOR TSR_ABI_MINOR
#endif
#ifndef FIXTURE_SIZE
#define FIXTURE_SIZE sizeof(tsr_plugin)
#endif
#ifndef FIXTURE_PRIORITY
#define FIXTURE_PRIORITY 0
#endif
#ifndef FIXTURE_KERNEL_SIZE
#define FIXTURE_KERNEL_SIZE sizeof(tsr_kernel)
#endif
#ifndef FIXTURE_GROUP_ROWS
#define FIXTURE_GROUP_ROWS 8
#endif
#ifndef FIXTURE_OPERATOR
#define FIXTURE_OPERATOR "fixture_op"
#endif
#ifndef FIXTURE_STATUS_SIZE
#define FIXTURE_STATUS_SIZE sizeof(tsr_status)
#endif
#ifndef FIXTURE_RUN
#define FIXTURE_RUN run
#endif

__attribute__((constructor)) static void leave_mark(void) {
    const char* path = getenv("TSR_TEST_MARKERS");
    FILE* file = path ? fopen(path, "a") : NULL;
    if (!file) return;
    fprintf(file, "%s\n", FIXTURE_NAME);
    fclose(file);
}

#ifndef FIXTURE_NO_SYMBOL

static const tsr_status* plan(const tsr_kernel* self, const tsr_node* node, const tsr_device_info* device,
                              tsr_kernel_plan* out) {
    (void)self, (void)node, (void)device;
    out->supported = 1;
    return NULL;
}
static const tsr_status* prepare(const tsr_kernel* self, const tsr_node* node, const tsr_device_info* device,
                                 tsr_device* opened, void** state) {
    (void)self, (void)node, (void)device, (void)opened;
    *state = NULL;
    return NULL;
}
static void release(const tsr_kernel* self, void* state) {
    (void)self, (void)state;
}
static inline const tsr_status* run(const tsr_kernel* self, void* state, const tsr_run* args) {
    (void)self, (void)state, (void)args;
    return NULL;
}

#ifndef FIXTURE_KERNEL
#define FIXTURE_KERNEL "add.fixture"
#endif
static const tsr_kernel kAdd = {FIXTURE_KERNEL_SIZE, 1, NULL, NULL,    FIXTURE_KERNEL, "add",       "cpu", NULL,
                                FIXTURE_PRIORITY,    0, plan, prepare, release,        FIXTURE_RUN, NULL};
static const tsr_kernel kMul = {
    sizeof(tsr_kernel), 1, NULL, NULL, "mul.fixture", "mul", "cpu", NULL, 0, 0, plan, prepare, release, run, NULL};
static const tsr_kernel* const kKernels[] = {&kAdd, &kMul};

#ifndef FIXTURE_GROUP_BYTES
#define FIXTURE_GROUP_BYTES 4
#endif
static uint64_t group_bytes(const tsr_layout* self, int64_t elements) {
    return self->group_rows * (uint64_t)elements * FIXTURE_GROUP_BYTES;
}
static void pack(const tsr_layout* self, int64_t elements, int64_t groups, const void* rows, void* packed) {
    memcpy(packed, rows, group_bytes(self, elements) * (uint64_t)groups);
}
static const tsr_layout kLayout = {sizeof(tsr_layout),
                                   TSR_TYPE_F32,
                                   NULL,
                                   NULL,
                                   "fixture_rows",
                                   FIXTURE_GROUP_ROWS,
                                   4,
                                   group_bytes,
                                   pack,
                                   NULL,
                                   NULL,
                                   0,
                                   0,
                                   NULL,
                                   NULL};
static const tsr_layout* const kLayouts[] = {&kLayout};

static const tsr_status* infer(const tsr_operator* self, const tsr_node* node, tsr_tensor* const* outputs) {
    (void)self;
    *outputs[0] = *node->inputs[0];
    return NULL;
}
static const tsr_operator kOperator = {sizeof(tsr_operator), 1, NULL, NULL, FIXTURE_OPERATOR, infer, NULL, 0, 1};
static const tsr_operator* const kOperators[] = {&kOperator};

#ifdef FIXTURE_PROVIDER
static uint32_t match(const tsr_device_provider* self, const tsr_device_info* info, char* reason, uint32_t capacity) {
    (void)self;
    if (info->compute_capability >= FIXTURE_PROVIDER) return 1;
    snprintf(reason, capacity, "needs compute capability %d, found %u", FIXTURE_PROVIDER, info->compute_capability);
    return 0;
}
static const tsr_status* open_device(const tsr_device_provider* self, const tsr_device_info* info,
                                     tsr_device** device) {
    (void)self, (void)info;
    *device = NULL;
    return NULL;
}
static const tsr_device_provider kProvider = {
    sizeof(tsr_device_provider), TSR_DEVICE_ABI, NULL, NULL, "cuda", "fixture/1", match, open_device};
static const tsr_device_provider* const kProviders[] = {&kProvider};
#define PROVIDERS kProviders
#define PROVIDER_COUNT 1
#else
#define PROVIDERS NULL
#define PROVIDER_COUNT 0
#endif

static void destroy(const tsr_status* status) {
    (void)status;
}
static const tsr_status kFailure = {FIXTURE_STATUS_SIZE, TSR_DEVICE_ERROR, NULL, "the frobnicator is cold", destroy};

static const tsr_status* initialize(const tsr_plugin* self, const tsr_device_info* const* devices, uint32_t count) {
    (void)self;
    static int calls = 0;
    if (++calls > 1 || count == 0 || strcmp(devices[0]->kind, "cpu") != 0) return &kFailure;
#ifdef FIXTURE_INIT_FAILS
    return &kFailure;
#else
    return NULL;
#endif
}

static const tsr_plugin kPlugin = {FIXTURE_SIZE,
                                   0,
                                   NULL,
                                   NULL,
                                   FIXTURE_MAJOR,
                                   FIXTURE_MINOR,
                                   FIXTURE_NAME,
                                   "1.2.0",
                                   PROVIDERS,
                                   kKernels,
                                   kLayouts,
                                   kOperators,
                                   NULL,
                                   PROVIDER_COUNT,
                                   2,
                                   1,
                                   1,
                                   0,
                                   0,
                                   initialize,
                                   NULL};

#ifdef FIXTURE_EARLY
/* The start of a table as headers had it before ABI 1.0 was final. */
static const struct {
    uint32_t struct_size;
    const void* next;
    uint32_t abi_major, abi_minor;
    const char *name, *version;
    const void* rest[16];
} kEarly = {sizeof kEarly, NULL, 1, 0, FIXTURE_NAME, "1.2.0", {NULL}};
#endif

TSR_EXPORT const tsr_plugin* tessera_plugin_query(const tsr_host* host) {
#ifdef FIXTURE_EARLY
    return host ? (const tsr_plugin*)(const void*)&kEarly : &kPlugin;
#elif defined FIXTURE_DECLINES
    (void)host;
    return NULL;
#else
    return host->abi_major == TSR_ABI_MAJOR ? &kPlugin : NULL;
#endif
}

#endif
