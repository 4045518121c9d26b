// Checks of convert, transpose and cache_write, which store rows in another type; see checks/elementwise.hpp.
#pragma once

#include <tessera/cpu/check.hpp>
#include <tessera/cpu/checks/named.hpp>
#include <tessera/ops.h>

namespace tessera::cpu {

inline bool check_target(Check& check, const tsr_node& node, bool transposed) noexcept {
    check.counts(1, 1, 1);
    check.weight(0, "the weight", 0);
    check.weight(check.out(), "the output", 0);
    if (!check) return false;
    const tsr_tensor& from = check.at(0);
    const tsr_tensor& to = check.at(check.out());
    check.rank(check.out(), "the output", from.rank);
    if (transposed) {
        if (from.rank < 2) check.rank(0, "the weight", 2);
        check.dims(check.out(), "the output", {from.dims[1], from.dims[0], from.dims[2], from.dims[3]});
    } else {
        check.dims(check.out(), "the output", {from.dims[0], from.dims[1], from.dims[2], from.dims[3]});
    }
    if (!check) return false;
    if (!can_encode(to.type) || static_cast<int64_t>(to.type) != sdk::int_attribute(node, "type", -1)) {
        return check.no("%s: required type %lld into %s; supported: %s, as the output has; missing: that type", node.op,
                        static_cast<long long>(sdk::int_attribute(node, "type", -1)), format_name(to.type),
                        kCacheTypes);
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

// convert, transpose: 0 weight; output.
inline void check_convert(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    if (!check_target(check, node, false)) return;
    work = target_work(check.at(0), check.at(check.out()));
    plan.supported = 1;
}

inline void check_transpose(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    if (!check_target(check, node, true)) return;
    work = target_work(check.at(0), check.at(check.out()));
    plan.supported = 1;
}

// cache_write: 0 x, 1 positions, 2 sequences, 3 page_table; output the cache.
inline void check_cache_write(const tsr_node& node, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    check.counts(4, 4, 1);
    check.activation(0, "x", 2);
    check.integers(1, "positions", 1);
    check.integers(2, "sequences", 1);
    check.integers(3, "page_table", 2);
    check.cache(check.out(), "the cache");
    if (!check) return;
    check.dim(1, "positions", 0, check.at(0).dims[1]);
    check.dim(2, "sequences", 0, check.at(0).dims[1]);
    check.dim(check.out(), "the cache", 0, check.at(0).dims[0]);
    check.same_range(0, 1);
    check.same_range(0, 2);
    if (!check) return;
    work = row_work(check.at(0), 1);
    plan.supported = 1;
}

inline constexpr NamedCheck kStorageChecks[] = {
    {TSR_OP_CONVERT, check_convert},
    {TSR_OP_TRANSPOSE, check_transpose},
    {TSR_OP_CACHE_WRITE, check_cache_write},
};

}  // namespace tessera::cpu
