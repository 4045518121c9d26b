/* A kernel for rms_norm with one fault, chosen by the macro FAULT: what `tessera plugin-test` must find, and what a run
 * must survive or name. Of FAULT_NONE nothing is wrong. */
#define _GNU_SOURCE
#include "planted.h"

#include <tessera/helpers.h>
#include <tessera/ops.h>
#include <tessera/plugin.h>

#include <immintrin.h>
#include <math.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#define IS(fault) (FAULT == (fault))
/* One row takes so little that one worker computes it. */
#define IS_SHORT (IS(SHORT_FAILS) || IS(SHORT_THROWS) || IS(SHORT_SHARED))

static const tsr_status* plan(const tsr_kernel* self, const tsr_node* node, const tsr_device_info* info,
                              tsr_kernel_plan* answer) {
    (void)self, (void)info;
    if (node->inputs[0]->type != TSR_TYPE_F32 || node->inputs[1]->type != TSR_TYPE_F32)
        return tsr_refuse(answer, "expected f32");
    answer->supported = 1;
    answer->seconds_one_row = 1e-9;
    answer->seconds_all_rows = 1e-8;
    if (IS_SHORT) answer->bytes_one_row = answer->bytes_all_rows = 1024;
    if (IS(ESTIMATE_NAN)) answer->seconds_one_row = NAN;
    if (IS(ESTIMATE_NEGATIVE)) answer->seconds_all_rows = -1;
    if (IS(ESTIMATE_INFINITE)) answer->seconds_one_row = INFINITY;
    if (IS(HUGE_WORKSPACE)) answer->workspace_bytes = 1ull << 50;
    if (IS(WORKSPACE_NOWHERE)) answer->workspace_bytes = 1ull << 45;
    if (IS(HUGE_SCRATCH)) answer->minimum_scratch_bytes = UINT64_MAX;
    if (IS(SUPPORTED_SEVEN)) answer->supported = 7;
    if (IS(ENDLESS_REASON)) memset(answer->reason, 'x', sizeof answer->reason);
    if (IS(UNKNOWN_LAYOUT)) {
        static const char* const list[] = {"no_such_layout", NULL};
        answer->layouts[1] = list;
    }
    if (IS(LAYOUT_OF_ACTIVATION)) {
        static const char* const list[] = {"f32_x8", NULL};
        answer->layouts[0] = list;
    }
    if (IS(WILD_LAYOUT)) {
        static const char* const list[] = {(const char*)(uintptr_t)16, NULL};
        answer->layouts[1] = list;
    }
    if (IS(PLAN_ROUNDS)) _mm_setcsr(_mm_getcsr() | 0x2000);
    if (IS(PLAN_FAILS)) return tsr_fail(TSR_INTERNAL, "plan: out of order");
    if (IS(PLAN_THROWS)) throw_here();
    if (IS(PLAN_CRASHES)) abort();
    return NULL;
}

static const tsr_status* prepare(const tsr_kernel* self, const tsr_node* node, const tsr_device_info* info,
                                 tsr_device* device, void** state) {
    (void)self, (void)info, (void)device;
    if (IS(PREPARE_FAILS)) return tsr_fail(TSR_UNSUPPORTED, "prepare: changed its mind");
    *state = (void*)(uintptr_t)node;
    if (IS(WILD_STATUS)) return (const tsr_status*)(uintptr_t)0xDEAD;
    return NULL;
}

static void release(const tsr_kernel* self, void* state) {
    (void)self, (void)state;
}

static const tsr_host* host_of_all;

static const tsr_status* run(const tsr_kernel* self, void* state, const tsr_run* args) {
    (void)self;
    const tsr_node* node = state;
    const tsr_tensor *x = node->inputs[0], *w = node->inputs[1], *y = node->outputs[0];
    const double epsilon = tsr_float_attribute(node, "epsilon", 0);
    const tsr_rows all = tsr_actual_rows(x, args), mine = tsr_share_of(all, args);
    float* weight = tsr_row(w, args->data[1], 0);
    if (IS(DOES_NOTHING)) return NULL;
    if (IS(WRITES_WEIGHT)) weight[0] = 3;
    if (IS(RUN_FAILS) && args->worker == 0) return tsr_fail(TSR_DEVICE_ERROR, "run: failed on purpose");
    if (IS(RUN_THROWS) && args->worker + 1 == args->workers) throw_here();
    if (IS(RUN_CRASHES)) *(volatile int*)(uintptr_t)8 = 1;
    if (IS(WILD_LOG_NAME)) host_of_all->log(host_of_all, TSR_LOG_WARNING, (const char*)(uintptr_t)8, "a line");
    if (IS(RUN_ABORTS)) abort();
    if (IS(RUN_EXITS)) exit(0);
    if (IS(RUN_HANGS) && args->worker == 0) sleep(3600);
    if (IS(ODD_BARRIER) && args->worker == 0) args->barrier(args->team, args->worker);
    if (IS(STATUS_OF_NO_CODE) && args->worker == 0) return tsr_fail(777, "no such code");
    if (IS_SHORT && all.end - all.begin == 1) {
        if (IS(SHORT_FAILS)) return tsr_fail(TSR_DEVICE_ERROR, "run: failed on purpose");
        if (IS(SHORT_THROWS)) throw_here();
        if (args->workers != 1 || args->worker != 0) return tsr_fail(TSR_INTERNAL, "run: expected one worker");
        args->barrier(args->team, args->worker);
    }
    if (args->piece && IS(PIECES_LEFT) && args->worker == 0) args->piece(args->team, args->worker, 100);
    if (args->piece && IS(PIECES_TOO_MANY)) args->piece(args->team, args->worker, 70000);
    if (args->piece && (IS(PIECES_AGAIN) || IS(PIECES_DIFFER))) {
        const uint32_t count = IS(PIECES_DIFFER) ? 8 + args->worker : 8;
        while (args->piece(args->team, args->worker, count) != UINT32_MAX) {
        }
        if (IS(PIECES_AGAIN)) args->piece(args->team, args->worker, count);
    }
    if (IS(BARRIER_OF_ANOTHER)) args->barrier(args->team, args->workers - 1 - args->worker);
    if (IS(RUN_ROUNDS)) _mm_setcsr((_mm_getcsr() & ~0x6000u) | 0x6000);
    if (IS(RUN_FLUSHES)) _mm_setcsr(_mm_getcsr() | 0x8040);
    for (int64_t r = mine.begin; r < mine.end; ++r) {
        const float* from = tsr_row(x, args->data[0], r);
        float* to = tsr_row(y, args->data[2], r);
        double squares = 0;
        for (int64_t i = 0; i < x->dims[0]; ++i) squares += (double)from[i] * from[i];
        float scale = (float)(1 / sqrt(squares / (double)x->dims[0] + epsilon));
        if (IS(DEPENDS_ON_WORKERS)) scale *= 1 + 1e-6f * (float)args->workers;
        for (int64_t i = 0; i < x->dims[0]; ++i) to[i] = from[i] * scale * weight[i];
    }
    if (IS(WRITES_PAST) && args->worker == 0) {
        float* past = tsr_row(y, args->data[2], all.end);
        for (int i = 0; i < 64; ++i) past[i] = 1e30f;
    }
    if (IS(WRITES_OTHER_ROWS) && args->worker == 0 && all.begin > 0) *(float*)tsr_row(y, args->data[2], 0) = 0;
    return NULL;
}

static const tsr_kernel kernel = {
    .struct_size = sizeof(tsr_kernel),
    .op_version = IS(OTHER_VERSION) ? 99 : 1,
    .name = IS(NAME_OF_TWO_LINES) ? "rms_norm.\nplanted" : "rms_norm.planted",
    .op = TSR_OP_RMS_NORM,
    .device_kind = "cpu",
    .priority = 10,
    .plan = plan,
    .prepare = prepare,
    .release = release,
    .run = run,
};
static const tsr_kernel* const kernels[] = {&kernel};

/* Asked for when the table is read. */
static uint64_t group_bytes(const tsr_layout* self, int64_t elements) {
    (void)self;
    if (IS(GROUP_BYTES_CRASHES)) *(volatile int*)(uintptr_t)8 = 1;
    if (IS(GROUP_BYTES_THROWS)) throw_here();
    if (IS(GROUP_BYTES_ROUNDS)) _mm_setcsr(_mm_getcsr() | 0x2000);
    return (uint64_t)elements * sizeof(float);
}

static void pack(const tsr_layout* self, int64_t elements, int64_t groups, const void* rows, void* packed) {
    (void)self;
    memcpy(packed, rows, (size_t)(elements * groups) * sizeof(float));
}

static const tsr_layout layout = {
    .struct_size = sizeof(tsr_layout),
    .type = TSR_TYPE_F32,
    .name = "f32_planted",
    .group_rows = 1,
    .elements_multiple = 1,
    .group_bytes = group_bytes,
    .pack = pack,
    .unpack = pack,
};
static const tsr_layout* const layouts[] = {&layout};

static const tsr_status* initialize(const tsr_plugin* self, const tsr_device_info* const* devices, uint32_t count) {
    (void)self, (void)devices, (void)count;
    if (IS(INITIALIZE_CRASHES)) *(volatile int*)(uintptr_t)8 = 1;
    if (IS(INITIALIZE_EXITS)) _exit(7);
    if (IS(INITIALIZE_THROWS)) throw_here();
    return NULL;
}

static const tsr_plugin plugin = {
    .struct_size = sizeof(tsr_plugin),
    .abi_major = TSR_ABI_MAJOR,
    .abi_minor = TSR_ABI_MINOR,
    .name = "planted",
    .version = "1.0.0",
    .kernels = kernels,
    .kernel_count = 1,
    .layouts = layouts,
    .layout_count = IS(GROUP_BYTES_CRASHES) || IS(GROUP_BYTES_THROWS) || IS(GROUP_BYTES_ROUNDS),
    .initialize = initialize,
};

__attribute__((constructor)) static void on_mapping(void) {
    if (IS(CONSTRUCTOR_CRASHES)) *(volatile int*)(uintptr_t)8 = 1;
    if (IS(CONSTRUCTOR_THROWS)) throw_here();
    if (IS(CONSTRUCTOR_EXITS)) _exit(0);
    if (IS(CONSTRUCTOR_HANGS)) pause();
    if (IS(CONSTRUCTOR_ROUNDS)) _mm_setcsr(_mm_getcsr() | 0x8040);
    if (IS(CONSTRUCTOR_CHANGES)) {
        if (chdir("/")) abort();
        umask(0777);
        for (int number = 1; number < 32; ++number) signal(number, SIG_IGN);
    }
}

TSR_EXPORT const tsr_plugin* tessera_plugin_query(const tsr_host* host) {
    host_of_all = host;
    if (IS(QUERY_CRASHES)) abort();
    return &plugin;
}
