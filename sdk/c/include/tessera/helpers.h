/* Helpers for plugins in C: reading nodes, rows of tensors, statuses. All inline; nothing here is part of the ABI. */
#pragma once

#include <tessera/kernel.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* NULL if the node has no such attribute. */
static inline const tsr_attribute* tsr_find_attribute(const tsr_node* node, const char* name) {
    for (uint32_t i = 0; i < node->attribute_count; ++i) {
        if (strcmp(node->attributes[i]->name, name) == 0) return node->attributes[i];
    }
    return NULL;
}

static inline double tsr_float_attribute(const tsr_node* node, const char* name, double otherwise) {
    const tsr_attribute* at = tsr_find_attribute(node, name);
    if (!at) return otherwise;
    if (at->kind == TSR_ATTRIBUTE_FLOAT) return at->f;
    return at->kind == TSR_ATTRIBUTE_INT ? (double)at->i : otherwise;
}

static inline int64_t tsr_int_attribute(const tsr_node* node, const char* name, int64_t otherwise) {
    const tsr_attribute* at = tsr_find_attribute(node, name);
    return at && at->kind == TSR_ATTRIBUTE_INT ? at->i : otherwise;
}

static inline int tsr_is_present(const tsr_tensor* tensor) {
    return tensor && tensor->type != TSR_TYPE_NONE;
}

/* Rows of a tensor over all dimensions but the first that a run works on: [begin, end). Row numbers count the faster
 * dimensions first. */
typedef struct tsr_rows {
    int64_t begin;
    int64_t end;
} tsr_rows;

static inline tsr_rows tsr_actual_rows(const tsr_tensor* tensor, const tsr_run* run) {
    int64_t inner = 1, slowest = 1;
    tsr_rows rows = {0, 1};
    uint32_t d;
    if (tensor->rank > 1) slowest = tensor->dims[tensor->rank - 1];
    for (d = 1; d + 1 < tensor->rank; ++d) inner *= tensor->dims[d];
    rows.end = slowest;
    if (tensor->rank > 1 && tensor->range != TSR_RANGE_FIXED) {
        rows.begin = run->ranges[tensor->range].begin;
        rows.end = run->ranges[tensor->range].end;
    }
    rows.begin *= inner;
    rows.end *= inner;
    return rows;
}

/* The share of these rows that one worker of a run has. Every row belongs to one worker. */
static inline tsr_rows tsr_share_of(tsr_rows rows, const tsr_run* run) {
    const int64_t count = rows.end - rows.begin;
    tsr_rows share;
    share.begin = rows.begin + count * run->worker / run->workers;
    share.end = rows.begin + count * (run->worker + 1) / run->workers;
    return share;
}

/* The first element of row `row` of a tensor in the canonical layout, of which `data` is the start of the storage. */
static inline void* tsr_row(const tsr_tensor* tensor, void* data, int64_t row) {
    int64_t at = tensor->offset;
    for (uint32_t d = 1; d < tensor->rank; ++d) {
        at += row % tensor->dims[d] * tensor->strides[d];
        row /= tensor->dims[d];
    }
    return (char*)data + at;
}

static inline void tsr_destroy_text_status(const tsr_status* status) {
    free((void*)(uintptr_t)status);
}

/* A status with a message as printf writes it, up to 400 bytes. Its receiver destroys it. */
static inline const tsr_status* tsr_fail(tsr_code code, const char* format, ...) {
    static const tsr_status out_of_memory = {sizeof(tsr_status), TSR_DOES_NOT_FIT, NULL, "out of host memory", NULL};
    struct text_status {
        tsr_status status;
        char text[400];
    };
    struct text_status* made = (struct text_status*)calloc(1, sizeof *made);
    va_list arguments;
    if (!made) return &out_of_memory;
    va_start(arguments, format);
    vsnprintf(made->text, sizeof made->text, format, arguments);
    va_end(arguments);
    made->status.struct_size = sizeof(tsr_status);
    made->status.code = code;
    made->status.message = made->text;
    made->status.destroy = tsr_destroy_text_status;
    return &made->status;
}

/* For plan: a refusal with its reason. */
static inline const tsr_status* tsr_refuse(tsr_kernel_plan* plan, const char* format, ...) {
    va_list arguments;
    plan->supported = 0;
    va_start(arguments, format);
    vsnprintf(plan->reason, sizeof plan->reason, format, arguments);
    va_end(arguments);
    return NULL;
}

#ifdef __cplusplus
}
#endif
