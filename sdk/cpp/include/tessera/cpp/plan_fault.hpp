// What can be told of a kernel's plan of a node without running it.
#pragma once

#include <tessera/cpp/node.hpp>
#include <tessera/kernel.h>
#include <tessera/types.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace tessera::sdk {

// No workspace, and no minimum of scratch memory, is larger (kernel.h).
inline constexpr uint64_t kMaxWorkspaceBytes = uint64_t{1} << 46;
// Nor are the packed rows of one weight.
inline constexpr uint64_t kMaxPackedBytes = uint64_t{1} << 46;
// Nor has a list of layouts more names.
inline constexpr uint32_t kMaxLayouts = 64;

// "q4_0"; "type 99" for one that is unknown.
inline std::string type_name(tsr_type type) {
    switch (type) {
#define TSR_NAME(id, number, text, ...) \
    case number:                        \
        return text;
        TSR_TYPES(TSR_NAME)
#undef TSR_NAME
        default:
            return "type " + std::to_string(type);
    }
}

// Whether the layout packs canonical rows on devices of an interop; "": none.
inline bool packs_on_device(const tsr_layout& layout, std::string_view interop) noexcept {
    return !interop.empty() && layout.enqueue_pack && layout.device_abi == TSR_DEVICE_ABI && layout.interop &&
           interop == layout.interop;
}

// Why `rows` rows of `elements` cannot be packed as `layout`; empty if they can. group_bytes(): calls the layout's
// function for such rows, once; not called for rows of which the layout holds none.
template <class GroupBytes>
std::string packing_fault(const tsr_layout& layout, uint64_t rows, uint64_t elements, GroupBytes&& group_bytes) {
    const std::string what = std::to_string(rows) + " rows of " + std::to_string(elements) + " elements";
    if (rows % layout.group_rows || elements % layout.elements_multiple) {
        return what + ", expected multiples of " + std::to_string(layout.group_rows) + " rows and of " +
               std::to_string(layout.elements_multiple) + " elements";
    }
    const uint64_t groups = rows / layout.group_rows, bytes = group_bytes();
    if (bytes > 0 && (groups == 0 || bytes <= kMaxPackedBytes / groups)) return {};
    return what + ", for which group_bytes gives " + std::to_string(bytes) + ", expected 1 to " +
           std::to_string(kMaxPackedBytes / (groups ? groups : 1));
}

// What in the list of layouts that a kernel's plan gives for operand `index` breaks the rules. Layouts that cannot hold
// the operand are a fault only if none of the list can: otherwise the host takes another. find(name, interop): the
// tsr_layout that the host knows by the name, or nullptr; with an interop that is not empty only one that packs on
// devices of it. interop: of the device that the plan is for, "" for the CPU. group_bytes(layout, elements): calls
// the layout's function.
template <class FindLayout, class GroupBytes>
std::string layouts_fault(const tsr_kernel_plan& plan, const tsr_node& node, uint32_t index, std::string_view interop,
                          FindLayout&& find, GroupBytes&& group_bytes) {
    const char* const* list = plan.layouts[index];
    const tsr_tensor& tensor = operand(node, index);
    const std::string which = "layouts[" + std::to_string(index) + "]";
    std::string unusable;  // why the first such name is
    bool any = !list || !list[0];
    for (uint32_t i = 0; list && list[i]; ++i) {
        if (i == kMaxLayouts)
            return which + " has no end: expected at most " + std::to_string(kMaxLayouts) + " names and then NULL";
        const std::string name(list[i], ::strnlen(list[i], 100));
        any = any || name.empty();
        if (name.empty()) continue;
        if (tensor.role != TSR_ROLE_WEIGHT && tensor.role != TSR_ROLE_CACHE) {
            return which + " asks for the layout " + name + " of " +
                   (tensor.role == TSR_ROLE_INPUT ? "an input" : "an activation") +
                   "; only weights and caches can have one";
        }
        const tsr_layout* layout = find(list[i], std::string_view());
        if (!layout) return which + " names the layout " + name + ", which no loaded plugin brings";
        if (layout->type != tensor.type) {
            return which + " names " + name + ", a layout of " + type_name(layout->type) + ", for an operand of " +
                   type_name(tensor.type);
        }
        // Pages of a cache are written by kernels alone.
        const bool is_weight = tensor.role == TSR_ROLE_WEIGHT;
        const tsr_layout* there = interop.empty() ? nullptr : find(list[i], interop);
        std::string why;
        if (is_weight && !there && !layout->pack) {
            why = ", into which no loaded plugin can pack rows" +
                  (interop.empty() ? std::string(" (pack is NULL)")
                                   : ": pack is NULL, and so is enqueue_pack for the interop " + std::string(interop));
        } else if (is_weight) {
            uint64_t rows = 1;
            for (uint32_t d = 1; d < tensor.rank; ++d) rows *= static_cast<uint64_t>(tensor.dims[d]);
            const tsr_layout& packs = there ? *there : *layout;
            why = packing_fault(packs, rows, static_cast<uint64_t>(tensor.dims[0]),
                                [&] { return group_bytes(packs, tensor.dims[0]); });
            if (!why.empty()) why = ", which cannot hold " + why;
        }
        any = any || why.empty();
        if (unusable.empty() && !why.empty()) unusable = which + " names " + name + why;
    }
    return any ? std::string() : unusable;
}

// What in a kernel's plan breaks the rules of kernel.h, what was found and what expected; empty if nothing does. The
// node has at most TSR_MAX_OPERANDS operands. interop, find, group_bytes: as for layouts_fault.
template <class FindLayout, class GroupBytes>
std::string plan_fault(const tsr_kernel_plan& plan, const tsr_node& node, std::string_view interop, FindLayout&& find,
                       GroupBytes&& group_bytes) {
    if (plan.supported > 1) return "supported is " + std::to_string(plan.supported) + ", expected 0 or 1";
    if (!std::memchr(plan.reason, '\0', sizeof plan.reason))
        return "reason has no end within its " + std::to_string(sizeof plan.reason) + " bytes";
    if (!plan.supported) return {};

    const std::pair<const char*, double> estimates[] = {{"seconds_one_row", plan.seconds_one_row},
                                                        {"seconds_all_rows", plan.seconds_all_rows},
                                                        {"seconds_one_row_full", plan.seconds_one_row_full},
                                                        {"seconds_all_rows_full", plan.seconds_all_rows_full},
                                                        {"bytes_one_row", plan.bytes_one_row},
                                                        {"bytes_all_rows", plan.bytes_all_rows}};
    for (const auto& [name, value] : estimates) {
        if (std::isfinite(value) && value >= 0) continue;
        char text[40];
        std::snprintf(text, sizeof text, "%g", std::isnan(value) ? std::fabs(value) : value);
        return std::string(name) + " is " + text + ", expected a finite number that is not negative";
    }
    const std::pair<const char*, uint64_t> sizes[] = {{"workspace_bytes", plan.workspace_bytes},
                                                      {"minimum_scratch_bytes", plan.minimum_scratch_bytes}};
    for (const auto& [name, value] : sizes) {
        if (value > kMaxWorkspaceBytes) {
            return std::string(name) + " is " + std::to_string(value) + ", expected at most " +
                   std::to_string(kMaxWorkspaceBytes);
        }
    }
    for (uint32_t i = 0; i < node.input_count + node.output_count; ++i) {
        if (std::string why = layouts_fault(plan, node, i, interop, find, group_bytes); !why.empty()) return why;
    }
    return {};
}

}  // namespace tessera::sdk
