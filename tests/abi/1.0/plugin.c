/* A plugin as somebody wrote it for ABI 1.0, in plain C, against the headers in include/. It is never changed: it must
 * load and run on every later host of major version 1.
 *
 * Everything that it hands to the host lies at the end of a page, before one that nobody may read: a host that reads
 * past a struct_size dies. */
#define _GNU_SOURCE
#include <tessera/ops.h>
#include <tessera/plugin.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef PLUGIN_NAME
#define PLUGIN_NAME "recorded"
#endif
#ifndef PLUGIN_ABI_MINOR
#define PLUGIN_ABI_MINOR TSR_ABI_MINOR
#endif

static const tsr_host* the_host = NULL;

/* A copy whose last byte is the last of a page. */
static void* at_page_end(const void* from, size_t bytes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (bytes + page - 1) / page;
    char* const block = mmap(NULL, (pages + 1) * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED || mprotect(block + pages * page, page, PROT_NONE) != 0) return NULL;
    return memcpy(block + pages * page - bytes, from, bytes);
}
#define AT_PAGE_END(value) at_page_end(&(value), sizeof(value))

static const tsr_status* failure(tsr_code code, const char* message) {
    const tsr_status status = {sizeof status, code, NULL, message, NULL};
    return AT_PAGE_END(status);
}

/* Kernels. */

struct kernel {
    tsr_kernel table;
    double seconds; /* what it claims: behind the table, where `self` reaches it */
};

static const tsr_status* plan_add(const tsr_kernel* self, const tsr_node* node, const tsr_device_info* info,
                                  tsr_kernel_plan* plan) {
    static const char* const layouts[] = {"", NULL};
    if (plan->struct_size < sizeof *plan || info->struct_size < sizeof *info || node->struct_size < sizeof *node)
        return failure(TSR_INTERNAL, "the host's structs are shorter than those of ABI 1.0");
    for (uint32_t i = 0; i < node->input_count; ++i) {
        if (node->inputs[i]->type != TSR_TYPE_F32) {
            snprintf(plan->reason, sizeof plan->reason, "needs f32, found type %u", node->inputs[i]->type);
            return NULL;
        }
    }
    plan->supported = 1;
    plan->seconds_one_row = plan->seconds_all_rows = ((const struct kernel*)self)->seconds;
    plan->workspace_bytes = 64;
    plan->layouts[0] = layouts;
    return NULL;
}

static const tsr_status* prepare_add(const tsr_kernel* self, const tsr_node* node, const tsr_device_info* info,
                                     tsr_device* device, void** state) {
    (void)self, (void)info, (void)device;
    *state = malloc(sizeof node);
    if (!*state) return failure(TSR_DOES_NOT_FIT, "out of memory");
    memcpy(*state, &node, sizeof node);
    return NULL;
}

static void release_add(const tsr_kernel* self, void* state) {
    (void)self;
    free(state);
}

/* a [n, R] + b [n, R], rows divided by worker. */
static const tsr_status* run_add(const tsr_kernel* self, void* state, const tsr_run* run) {
    const tsr_node* node;
    (void)self;
    memcpy(&node, state, sizeof node);
    if (run->cancelled && *(const volatile uint32_t*)run->cancelled) return NULL;
    const tsr_tensor *a = node->inputs[0], *b = node->inputs[1], *out = node->outputs[0];
    const tsr_range rows = run->ranges[TSR_RANGE_ROWS];
    for (int64_t row = rows.begin + (int64_t)run->worker; row < rows.end; row += run->workers) {
        const float* x = (const float*)((const char*)run->data[0] + a->offset + row * a->strides[1]);
        const float* y = (const float*)((const char*)run->data[1] + b->offset + row * b->strides[1]);
        float* z = (float*)((char*)run->data[2] + out->offset + row * out->strides[1]);
        for (int64_t i = 0; i < out->dims[0]; ++i) z[i] = x[i] + y[i];
    }
    run->barrier(run->team, run->worker);
    return NULL;
}

/* A layout: pairs of rows, their elements taken by turns. */

static uint64_t group_bytes(const tsr_layout* self, int64_t elements) {
    return (uint64_t)elements * self->group_rows * sizeof(float);
}
static void pack(const tsr_layout* self, int64_t elements, int64_t groups, const void* rows, void* packed) {
    const float* from = rows;
    float* to = packed;
    for (int64_t g = 0; g < groups; ++g, from += 2 * elements) {
        for (int64_t i = 0; i < elements; ++i) *to++ = from[i], *to++ = from[elements + i];
    }
    (void)self;
}
static void unpack(const tsr_layout* self, int64_t elements, int64_t groups, const void* packed, void* rows) {
    const float* from = packed;
    float* to = rows;
    for (int64_t g = 0; g < groups; ++g, to += 2 * elements) {
        for (int64_t i = 0; i < elements; ++i) to[i] = *from++, to[elements + i] = *from++;
    }
    (void)self;
}

/* An operator, "recorded_triple": x f32 [n, R] -> 3 * x, with a lowering; and a lowering of the core's silu_mul. */

static const tsr_status* infer_triple(const tsr_operator* self, const tsr_node* node, tsr_tensor* const* outputs) {
    (void)self;
    if (node->input_count != 1) return failure(TSR_INVALID_ARGUMENT, "one input is needed");
    *outputs[0] = *node->inputs[0];
    outputs[0]->role = TSR_ROLE_ACTIVATION;
    return NULL;
}

static const tsr_status* cached(const tsr_lowering* self, const tsr_node* node, tsr_cache_component* const* components,
                                uint32_t* count) {
    (void)self;
    if (*count < 1) return failure(TSR_INVALID_ARGUMENT, "room for one component is needed");
    components[0]->name = "seen";
    components[0]->elements = node->inputs[0]->dims[0];
    *count = 1;
    return NULL;
}

static const tsr_status* build_triple(const tsr_lowering* self, const tsr_node* node,
                                      const tsr_lowering_options* options, tsr_builder* builder) {
    (void)self, (void)node;
    if (options->struct_size < sizeof *options || builder->struct_size < sizeof *builder)
        return failure(TSR_INTERNAL, "the host's structs are shorter than those of ABI 1.0");
    if (options->max_rows == 1) return failure(TSR_UNSUPPORTED, "recorded: one row is not enough");
    if (!builder->describe(builder, builder->cache(builder, 0))) return failure(TSR_INTERNAL, "no cache");
    const tsr_value x = builder->input(builder, 0);
    /* A copy of a struct of the host, which may be longer: struct_size is the host's, the memory is not. */
    const tsr_tensor described = *builder->describe(builder, x);
    tsr_tensor* const shape = AT_PAGE_END(described);
    tsr_value buffer = 0, whole = 0;
    const tsr_status* status = builder->buffer(builder, shape, &buffer);
    if (status) return status;
    const tsr_tensor made = *builder->describe(builder, buffer);
    status = builder->view(builder, buffer, AT_PAGE_END(made), &whole);
    if (status) return status;
    const tsr_attribute note = {sizeof note, TSR_ATTRIBUTE_INT, NULL, "note", 7, 0, NULL};
    const tsr_attribute* const attributes[] = {AT_PAGE_END(note)};
    const tsr_value twice_inputs[] = {x, x};
    tsr_value twice = 0;
    status = builder->add(builder, TSR_STAGE_RUN, TSR_OP_ADD, "twice", attributes, 1, twice_inputs, 2, &twice, 1);
    if (status) return status;
    const tsr_value inputs[] = {twice, x};
    status = builder->add(builder, TSR_STAGE_RUN, TSR_OP_ADD, "triple", NULL, 0, inputs, 2, &whole, 1);
    return status ? status : builder->output(builder, 0, whole);
}

static const tsr_status* build_silu_mul(const tsr_lowering* self, const tsr_node* node,
                                        const tsr_lowering_options* options, tsr_builder* builder) {
    (void)self, (void)node, (void)options;
    const tsr_value inputs[] = {builder->input(builder, 0), builder->input(builder, 1)};
    tsr_value out = 0;
    const tsr_status* status =
        builder->add(builder, TSR_STAGE_RUN, TSR_OP_ADD, "no silu at all", NULL, 0, inputs, 2, &out, 1);
    return status ? status : builder->output(builder, 0, out);
}

static const tsr_status* initialize(const tsr_plugin* self, const tsr_device_info* const* devices, uint32_t count) {
    if (strcmp(self->name, PLUGIN_NAME) != 0 || !self->context)
        return failure(TSR_INTERNAL, "self is not the plugin's");
    if (count == 0 || strcmp(devices[0]->kind, "cpu") != 0)
        return failure(TSR_INTERNAL, "the CPU is not the first device");
    the_host->log(the_host, TSR_LOG_INFO, PLUGIN_NAME, "initialised");
    if (the_host->get_extension(the_host, "org.example.unknown/1")) return failure(TSR_INTERNAL, "unknown extension");
    return NULL;
}

static const void* get_extension(const tsr_plugin* self, const char* tag) {
    return strcmp(tag, "org.example.recorded/1") == 0 ? self->context : NULL;
}

static const tsr_plugin* make_plugin(void) {
    struct kernel add;
    memset(&add, 0, sizeof add);
    add.table.struct_size = sizeof(tsr_kernel);
    add.table.op_version = 1;
    add.table.name = "add.recorded";
    add.table.op = TSR_OP_ADD;
    add.table.device_kind = "cpu";
    add.table.plan = plan_add;
    add.table.prepare = prepare_add;
    add.table.release = release_add;
    add.table.run = run_add;
    add.seconds = 1e-6;

    const tsr_chain unknown = {sizeof unknown, 0, NULL, "org.example.nobody-knows/1"};
    const tsr_layout layout = {.struct_size = sizeof layout,
                               .type = TSR_TYPE_F32,
                               .next = AT_PAGE_END(unknown),
                               .name = "recorded_pairs",
                               .group_rows = 2,
                               .elements_multiple = 1,
                               .group_bytes = group_bytes,
                               .pack = pack,
                               .unpack = unpack};
    const tsr_lowering triple = {.struct_size = sizeof triple,
                                 .op = "recorded_triple",
                                 .name = "sums",
                                 .family = "recorded",
                                 .summary = "two additions",
                                 .components = cached,
                                 .build = build_triple};
    const tsr_lowering silu = {.struct_size = sizeof silu,
                               .op = TSR_OP_SILU_MUL,
                               .name = "sum",
                               .family = "",
                               .summary = "an addition",
                               .build = build_silu_mul};
    const tsr_lowering* const triples[] = {AT_PAGE_END(triple)};
    const tsr_operator op = {.struct_size = sizeof op,
                             .version = 1,
                             .name = "recorded_triple",
                             .infer = infer_triple,
                             .lowerings = AT_PAGE_END(triples),
                             .lowering_count = 1,
                             .output_count = 1};
    const tsr_kernel* const kernels[] = {AT_PAGE_END(add)};
    const tsr_layout* const layouts[] = {AT_PAGE_END(layout)};
    const tsr_operator* const operators[] = {AT_PAGE_END(op)};
    const tsr_lowering* const lowerings[] = {AT_PAGE_END(silu)};
    const tsr_plugin plugin = {.struct_size = sizeof plugin,
                               .context = PLUGIN_NAME,
                               .abi_major = TSR_ABI_MAJOR,
                               .abi_minor = PLUGIN_ABI_MINOR,
                               .name = PLUGIN_NAME,
                               .version = "1.0.0",
                               .kernels = AT_PAGE_END(kernels),
                               .layouts = AT_PAGE_END(layouts),
                               .operators = AT_PAGE_END(operators),
                               .lowerings = AT_PAGE_END(lowerings),
                               .kernel_count = 1,
                               .layout_count = 1,
                               .operator_count = 1,
                               .lowering_count = 1,
                               .initialize = initialize,
                               .get_extension = get_extension};
    return AT_PAGE_END(plugin);
}

TSR_EXPORT const tsr_plugin* tessera_plugin_query(const tsr_host* host) {
    static const tsr_plugin* plugin = NULL;
    if (host->abi_major != TSR_ABI_MAJOR) return NULL;
    the_host = host;
    if (!plugin) plugin = make_plugin();
    return plugin;
}
