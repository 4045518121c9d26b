// Checks of convert, transpose and cache_write, which store rows in another type; see checks/elementwise.hpp.
#pragma once

#include <tessera/cpu/check.hpp>
#include <tessera/cpu/checks/named.hpp>
#include <tessera/ops.h>

namespace tessera::cpu {

inline bool check_target(Check& check, const tsr_node& node) noexcept {
    if (!check.operands()) return false;
    const tsr_tensor& to = check.at(check.out());
    if (!can_encode(to.type) || static_cast<int64_t>(to.type) != sdk::int_attribute(node, "type", -1)) {
        return check.no("%s: required type %lld into %s; supported: %s, as the output has; missing: that type", node.op,
                        static_cast<long long>(sdk::int_attribute(node, "type", -1)), format_name(to.type),
                        kStoredTypes);
    }
    return true;
}

// Of a weight that is stored in another type: nothing follows the rows of a batch. To decode an element and to encode
// it again takes plain code as long as three multiply-adds.
inline Work target_work(const tsr_tensor& from, const tsr_tensor& to) noexcept {
    Work work;
    double macs = 3;
    for (const int64_t extent : from.dims) macs *= static_cast<double>(extent);
    work.macs_one_row = work.macs_all_rows = macs;
    work.bytes_one_row = work.bytes_all_rows = tensor_bytes(from) + tensor_bytes(to);
    return work;
}

inline void check_convert(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    if (!check_target(check, node)) return;
    work = target_work(check.at(0), check.at(check.out()));
    plan.supported = 1;
}

inline void check_cache_write(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    if (!check.operands()) return;
    work = row_work(check.at(0), 1);
    plan.supported = 1;
}

inline constexpr NamedCheck kStorageChecks[] = {
    {TSR_OP_CONVERT, check_convert},
    {TSR_OP_TRANSPOSE, check_convert},
    {TSR_OP_CACHE_WRITE, check_cache_write},
};

}  // namespace tessera::cpu
