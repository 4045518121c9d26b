/* A kernel for the op rms_norm on the CPU: y = x / sqrt(mean(x^2) + epsilon) * weight, row by row. */
#include <tessera/helpers.h>
#include <tessera/ops.h>
#include <tessera/plugin.h>

#include <math.h>

/* What prepare keeps of a node, which outlives it. */
typedef struct {
    const tsr_node* node;
    double epsilon;
} state_t;

/* Pure: the same answer to the same question. Whatever the kernel cannot do it refuses here, with the reason. */
static const tsr_status* plan(const tsr_kernel* self, const tsr_node* node, const tsr_device_info* info,
                              tsr_kernel_plan* answer) {
    (void)self;
    if (node->input_count != 2 || node->output_count != 1)
        return tsr_refuse(answer, "expected 2 inputs and 1 output, found %u and %u", node->input_count,
                          node->output_count);
    if (node->inputs[0]->type != TSR_TYPE_F32 || node->inputs[1]->type != TSR_TYPE_F32)
        return tsr_refuse(answer, "expected f32, found type %u with a weight of type %u", node->inputs[0]->type,
                          node->inputs[1]->type);
    double row = (double)node->inputs[0]->dims[0], rows = 1;
    for (uint32_t d = 1; d < node->inputs[0]->rank; ++d) rows *= (double)node->inputs[0]->dims[d];
    /* Seconds on the device that is described: some 5e8 elements a second on each core (tessera plugin-test --time). */
    const double speed = 5e8;
    answer->seconds_one_row = row / speed;
    answer->seconds_all_rows = row * rows / (speed * (info->threads ? info->threads : 1));
    answer->supported = 1;
    snprintf(answer->reason, sizeof answer->reason, "plain C");
    return NULL;
}

static const tsr_status* prepare(const tsr_kernel* self, const tsr_node* node, const tsr_device_info* info,
                                 tsr_device* device, void** state) {
    (void)self, (void)info, (void)device;
    state_t* made = malloc(sizeof *made);
    if (!made) return tsr_fail(TSR_DOES_NOT_FIT, "no memory for the state of %s", node->name);
    made->node = node;
    made->epsilon = tsr_float_attribute(node, "epsilon", 0);
    *state = made;
    return NULL;
}

static void release(const tsr_kernel* self, void* state) {
    (void)self;
    free(state);
}

/* Called by all workers at once. What comes out must not depend on how many there are: each row is one worker's. */
static const tsr_status* run(const tsr_kernel* self, void* state, const tsr_run* args) {
    (void)self;
    const state_t* s = state;
    const tsr_tensor *x = s->node->inputs[0], *w = s->node->inputs[1], *y = s->node->outputs[0];
    const float* weight = tsr_row(w, args->data[1], 0);
    const tsr_rows mine = tsr_share_of(tsr_actual_rows(x, args), args);
    for (int64_t r = mine.begin; r < mine.end; ++r) {
        const float* from = tsr_row(x, args->data[0], r);
        float* to = tsr_row(y, args->data[2], r);
        double squares = 0;
        for (int64_t i = 0; i < x->dims[0]; ++i) squares += (double)from[i] * from[i];
        const float scale = (float)(1 / sqrt(squares / (double)x->dims[0] + s->epsilon));
        for (int64_t i = 0; i < x->dims[0]; ++i) to[i] = from[i] * scale * weight[i];
    }
    return NULL;
}

static const tsr_kernel kernel = {
    .struct_size = sizeof(tsr_kernel),
    .op_version = 1,
    .name = "rms_norm.example_c",
    .op = TSR_OP_RMS_NORM,
    .device_kind = "cpu",
    .priority = 1, /* goes before the built-in kernels, whatever it costs; with 0 the estimates decide */
    .plan = plan,
    .prepare = prepare,
    .release = release,
    .run = run,
};
static const tsr_kernel* const kernels[] = {&kernel};

static const tsr_plugin plugin = {
    .struct_size = sizeof(tsr_plugin),
    .abi_major = TSR_ABI_MAJOR,
    .abi_minor = TSR_ABI_MINOR,
    .name = "example_c",
    .version = "1.0.0",
    .kernels = kernels,
    .kernel_count = 1,
};

TSR_EXPORT const tsr_plugin* tessera_plugin_query(const tsr_host* host) {
    return host->abi_major == TSR_ABI_MAJOR ? &plugin : NULL;
}
