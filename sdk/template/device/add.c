/* The op add on these devices: y = a + b, where b has the shape of a or is one row for all. */
#include "device.h"

#include <tessera/helpers.h>
#include <tessera/ops.h>

static const tsr_status* plan(const tsr_kernel* self, const tsr_node* node, const tsr_device_info* info,
                              tsr_kernel_plan* answer) {
    (void)self;
    for (uint32_t i = 0; i < node->input_count; ++i) {
        if (node->inputs[i]->type != TSR_TYPE_F32)
            return tsr_refuse(answer, "expected f32, found type %u", node->inputs[i]->type);
    }
    double row = (double)node->inputs[0]->dims[0], rows = 1;
    for (uint32_t d = 1; d < node->inputs[0]->rank; ++d) rows *= (double)node->inputs[0]->dims[d];
    /* Seconds on the device that is described: three values of 4 bytes are moved for each element. */
    const double bandwidth = info->memory_bandwidth > 0 ? info->memory_bandwidth : 1e10;
    answer->seconds_one_row = 12 * row / bandwidth;
    answer->seconds_all_rows = rows * answer->seconds_one_row;
    answer->supported = 1;
    return NULL;
}

static const tsr_status* prepare(const tsr_kernel* self, const tsr_node* node, const tsr_device_info* info,
                                 tsr_device* device, void** state) {
    (void)self, (void)info, (void)device;
    *state = (void*)(uintptr_t)node; /* it outlives the state */
    return NULL;
}
static void release(const tsr_kernel* self, void* state) {
    (void)self, (void)state;
}

/* A real kernel only puts work on launch->queue here. The ranges are memory of the device, which is the host's. */
static const tsr_status* enqueue(const tsr_kernel* self, void* state, const tsr_launch* launch) {
    (void)self;
    const tsr_node* node = state;
    const tsr_tensor *a = node->inputs[0], *b = node->inputs[1], *y = node->outputs[0];
    const tsr_run run = {.struct_size = sizeof run, .ranges = launch->ranges};
    const tsr_rows rows = tsr_actual_rows(a, &run);
    for (int64_t r = rows.begin; r < rows.end; ++r) {
        const float* from = tsr_row(a, launch->data[0], r);
        const float* more = tsr_row(b, launch->data[1], b->rank > 1 ? r : 0);
        float* to = tsr_row(y, launch->data[2], r);
        for (int64_t i = 0; i < a->dims[0]; ++i) to[i] = from[i] + more[i];
    }
    return NULL;
}

const tsr_kernel example_add = {
    .struct_size = sizeof(tsr_kernel),
    .op_version = 1,
    .name = "add.example_device",
    .op = TSR_OP_ADD,
    .device_kind = "example",
    .interop = EXAMPLE_INTEROP,
    .device_abi = TSR_DEVICE_ABI,
    .plan = plan,
    .prepare = prepare,
    .release = release,
    .enqueue = enqueue,
};
