// Reading a node: its attributes and operands.
#pragma once

#include <tessera/cpp/status.hpp>
#include <tessera/graph.h>
#include <tessera/kernel.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::sdk {

// nullptr if the node has no such attribute.
inline const tsr_attribute* find_attribute(const tsr_node& node, std::string_view name) noexcept {
    for (uint32_t i = 0; i < node.attribute_count; ++i) {
        if (name == node.attributes[i]->name) return node.attributes[i];
    }
    return nullptr;
}

inline int64_t int_attribute(const tsr_node& node, std::string_view name, int64_t otherwise) noexcept {
    const tsr_attribute* at = find_attribute(node, name);
    return at && at->kind == TSR_ATTRIBUTE_INT ? at->i : otherwise;
}

inline double float_attribute(const tsr_node& node, std::string_view name, double otherwise) noexcept {
    const tsr_attribute* at = find_attribute(node, name);
    if (!at) return otherwise;
    if (at->kind == TSR_ATTRIBUTE_FLOAT) return at->f;
    return at->kind == TSR_ATTRIBUTE_INT ? static_cast<double>(at->i) : otherwise;
}

inline std::string_view string_attribute(const tsr_node& node, std::string_view name,
                                         std::string_view otherwise) noexcept {
    const tsr_attribute* at = find_attribute(node, name);
    return at && at->kind == TSR_ATTRIBUTE_STRING && at->s ? std::string_view(at->s) : otherwise;
}

inline bool present(const tsr_tensor* tensor) noexcept {
    return tensor && tensor->type != TSR_TYPE_NONE;
}

// Operand `index` counts inputs, then outputs, as tsr_run.data does.
inline const tsr_tensor& operand(const tsr_node& node, uint32_t index) noexcept {
    return index < node.input_count ? *node.inputs[index] : *node.outputs[index - node.input_count];
}

inline bool has_input(const tsr_node& node, uint32_t index) noexcept {
    return index < node.input_count && present(node.inputs[index]);
}

inline bool canonical(const tsr_tensor& tensor) noexcept {
    return !tensor.layout || !*tensor.layout;
}

// Element 0 of operand `index`. CPU only.
template <typename T>
T* operand_data(const tsr_node& node, const tsr_run& run, uint32_t index) noexcept {
    return reinterpret_cast<T*>(static_cast<char*>(run.data[index]) + operand(node, index).offset);
}

// Calls body(i) for pieces 0 .. count - 1 of work, divided among the workers, once between barriers. The first ones of
// a worker are consecutive and ascending. The caller is `worker` of `workers`; without tsr_run.piece the division is by
// these alone.
template <class Body>
void for_pieces(const tsr_run& run, uint32_t worker, uint32_t workers, int64_t count, Body&& body) {
    constexpr int64_t kMaxPieces = 65535;
    if (!run.piece || workers == 1) {
        for (int64_t i = count * worker / workers; i < count * (worker + 1) / workers; ++i) body(i);
        return;
    }
    const int64_t at_once = (count + kMaxPieces - 1) / kMaxPieces;  // usually 1
    const auto numbers = static_cast<uint32_t>(at_once > 0 ? (count + at_once - 1) / at_once : 0);
    for (uint32_t n; (n = run.piece(run.team, worker, numbers)) != UINT32_MAX;) {
        const int64_t begin = n * at_once, end = begin + at_once < count ? begin + at_once : count;
        for (int64_t i = begin; i < end; ++i) body(i);
    }
}

// The rows of the slowest dimension that this run works on.
inline tsr_range actual_rows(const tsr_tensor& tensor, const tsr_run& run) noexcept {
    if (tensor.range != TSR_RANGE_FIXED) return run.ranges[tensor.range];
    return {0, static_cast<int32_t>(tensor.dims[tensor.rank - 1])};
}

// Fills in a refusal.
template <typename... Args>
void refuse(tsr_kernel_plan& plan, const char* format, Args... args) noexcept {
    plan.supported = 0;
    if constexpr (sizeof...(args) == 0) {
        std::snprintf(plan.reason, sizeof plan.reason, "%s", format);
    } else {
        std::snprintf(plan.reason, sizeof plan.reason, format, args...);
    }
}

// Of a struct that the host has prepared. `value`: stored in the type for values, not in that for keys.
inline void set_component(tsr_cache_component& component, const char* name, int64_t elements, uint32_t value) noexcept {
    component.name = name;
    component.elements = elements;
    component.value = value;
}

// Addresses of neighbouring structs: the arrays of the ABI are of pointers.
template <typename T>
std::vector<const T*> pointers_to(const T* first, size_t count) {
    std::vector<const T*> pointers;
    pointers.reserve(count);
    for (size_t i = 0; i < count; ++i) pointers.push_back(first + i);
    return pointers;
}

inline tsr_attribute attribute(const char* name, int64_t value) noexcept {
    return {sizeof(tsr_attribute), TSR_ATTRIBUTE_INT, nullptr, name, value, 0, nullptr};
}
inline tsr_attribute attribute(const char* name, double value) noexcept {
    return {sizeof(tsr_attribute), TSR_ATTRIBUTE_FLOAT, nullptr, name, 0, value, nullptr};
}
inline tsr_attribute attribute(const char* name, const char* value) noexcept {
    return {sizeof(tsr_attribute), TSR_ATTRIBUTE_STRING, nullptr, name, 0, 0, value};
}

}  // namespace tessera::sdk
