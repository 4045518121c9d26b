/* The size of every struct in every minor version of the ABI, and how a field that a struct may not have is read.
 *
 * A struct that begins with struct_size is as long as the header that its writer was compiled with says. A reader reads
 * no further: a
 * field that came with a later minor version than 0 is read through TSR_HAS_FIELD, and counts as 0 or NULL where the
 * struct ends before it. A copy of a struct has the struct_size of the copier's own header, not that of the original.
 */
#pragma once

#include <tessera/plugin.h>

/* X(struct, minor version, bytes): the size from that minor version on. A struct that grows gets another line below its
 * last; lines never change. tsr_range and tsr_value, which have no struct_size, and tsr_chain never
 * grow. */
#define TSR_STRUCT_SIZES(X)        \
    X(tsr_chain, 0, 24)            \
    X(tsr_status, 0, 32)           \
    X(tsr_tensor, 0, 120)          \
    X(tsr_layout, 0, 96)           \
    X(tsr_attribute, 0, 48)        \
    X(tsr_node, 0, 72)             \
    X(tsr_lowering_options, 0, 48) \
    X(tsr_builder, 0, 80)          \
    X(tsr_cache_component, 0, 32)  \
    X(tsr_lowering, 0, 72)         \
    X(tsr_operator, 0, 56)         \
    X(tsr_device_info, 0, 192)     \
    X(tsr_kernel_plan, 0, 528)     \
    X(tsr_run, 0, 80)              \
    X(tsr_kernel, 0, 104)          \
    X(tsr_host, 0, 48)             \
    X(tsr_plugin, 0, 128)

/* Structs of the provisional part (TSR_DEVICE_ABI): they have the size of that number, whatever the minor version. */
#define TSR_DEVICE_STRUCT_SIZES(X) \
    X(tsr_device, 1, 280)          \
    X(tsr_device_provider, 1, 56)  \
    X(tsr_launch, 1, 64)

/* TSR_SIZE_tsr_kernel_0: bytes of tsr_kernel in version 1.0, and so on. */
enum {
#define TSR_ENUMERATE(name, minor, bytes) TSR_SIZE_##name##_##minor = bytes,
    TSR_STRUCT_SIZES(TSR_ENUMERATE) TSR_DEVICE_STRUCT_SIZES(TSR_ENUMERATE)
#undef TSR_ENUMERATE
};

/* Whether the struct that `pointer` points to reaches past `field`: 1 or 0. The field itself is not read. */
#define TSR_HAS_FIELD(pointer, field) \
    ((pointer)->struct_size >= (uint64_t)((const char*)(&(pointer)->field + 1) - (const char*)(pointer)))
