// What plan asks of a node before it says yes. Every refusal says what was required, what is supported and what is
// missing. No allocation.
#pragma once

#include <tessera/cpp/node.hpp>
#include <tessera/cpp/op_shapes.hpp>
#include <tessera/cpu/formats.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string_view>

namespace tessera::cpu {

// What a node costs, for estimates.
struct Work {
    double macs_one_row = 0;   // multiply-adds with one row of one sequence, nothing cached
    double macs_all_rows = 0;  // the same with the maximum of rows
    double bytes_one_row = 0;  // of memory read and written
    double bytes_all_rows = 0;
    // The same with as many tokens cached as there is room for; 0: as with none.
    double macs_one_row_full = 0, macs_all_rows_full = 0, bytes_one_row_full = 0, bytes_all_rows_full = 0;
};

// Writes a plan's estimates; seconds(macs, bytes) is the time of a node.
template <typename Seconds>
void write_estimates(const Work& work, tsr_kernel_plan& plan, Seconds&& seconds) noexcept {
    plan.seconds_one_row = seconds(work.macs_one_row, work.bytes_one_row);
    plan.seconds_all_rows = seconds(work.macs_all_rows, work.bytes_all_rows);
    plan.seconds_one_row_full =
        std::max(plan.seconds_one_row, seconds(work.macs_one_row_full, work.bytes_one_row_full));
    plan.seconds_all_rows_full =
        std::max(plan.seconds_all_rows, seconds(work.macs_all_rows_full, work.bytes_all_rows_full));
    plan.bytes_one_row = work.bytes_one_row;
    plan.bytes_all_rows = work.bytes_all_rows;
}

inline constexpr const char* kWeightTypes =
    "f32 f16 bf16, q4_0 to q8_0, q2_K to q6_K, iq1 to iq4, mxfp4, iq2_k to iq6_k, iq2_ks to iq5_ks";
inline constexpr const char* kStoredTypes = "f32 f16 bf16 q8_0 q6_0 q5_0 q5_1 q4_0 q4_1 iq4_nl";
inline constexpr const char* kCacheTypes = "f32 f16 bf16 q8_0 q8_KV q6_0 q5_0 q5_1 q4_0 q4_1 iq4_nl";

// Collects the first thing that is wrong. After a failed check all later ones fail too, so a plan function can ask them
// one after another and look once at the end, as long as it reads only operands that it has checked.
class Check {
  public:
    Check(const tsr_node& node, tsr_kernel_plan& plan) noexcept : node_(node), plan_(plan) {}

    explicit operator bool() const noexcept { return good_; }

    bool counts(uint32_t min_inputs, uint32_t max_inputs, uint32_t outputs) noexcept {
        if (!good_) return false;
        if (node_.input_count < min_inputs || node_.input_count > max_inputs || node_.output_count != outputs) {
            return no("%s: required %u inputs, %u outputs; supported %u to %u inputs, %u outputs; missing: that count",
                      node_.op, node_.input_count, node_.output_count, min_inputs, max_inputs, outputs);
        }
        if (node_.input_count + node_.output_count > TSR_MAX_OPERANDS)
            return no("%s: more operands than allowed", node_.op);
        for (uint32_t i = 0; i < outputs; ++i) {
            if (!sdk::present(node_.outputs[i])) return no("%s: required output %u; missing: it", node_.op, i);
        }
        return true;
    }

    // Number, kinds and shapes of all operands, as the table of ops has them; of the inputs those first ones alone that
    // the kernel knows.
    bool operands(size_t known = SIZE_MAX) noexcept {
        if (!good_) return false;
        const sdk::OpShapes* const row = sdk::find_shapes(node_.op, node_);
        if (!row) return no("%s: required that op; supported: those of ops.h; missing: it", node_.op);
        uint32_t needed = 0;
        for (uint32_t i = 0; i < row->inputs.size(); ++i) {
            if (!row->inputs[i].optional) needed = i + 1;
        }
        if (row->repeats) {
            counts(needed, TSR_MAX_OPERANDS / 2, node_.input_count > 0 ? node_.input_count - 1 : 0);
        } else {
            counts(needed, static_cast<uint32_t>(std::min(known, row->inputs.size())),
                   static_cast<uint32_t>(row->outputs.size()));
        }
        for (uint32_t i = 0; good_ && i < node_.input_count; ++i) {
            if (sdk::has_input(node_, i) || !row->input(i).optional) operand(i, row->input(i));
        }
        for (uint32_t i = 0; good_ && i < node_.output_count; ++i) operand(out(i), row->output(i));
        if (!good_) return false;
        sdk::ShapeFault fault;
        return sdk::shapes_fit(*row, node_, fault) || no("%s: %s", node_.op, fault.text());
    }

    // f32, dense along the first dimension.
    bool activation(uint32_t index, const char* what, uint32_t rank) noexcept {
        return general(index, what, rank) && typed(index, what, TSR_TYPE_F32) && dense(index, what);
    }
    bool integers(uint32_t index, const char* what, uint32_t rank) noexcept {
        return general(index, what, rank) && typed(index, what, TSR_TYPE_I32);
    }
    // Any type that can be decoded; rows are whole blocks.
    bool weight(uint32_t index, const char* what, uint32_t rank) noexcept {
        if (!general(index, what, rank)) return false;
        if (!can_decode(at(index).type)) {
            return no("%s: required %s of type %s (%u); supported: %s; missing: that type", node_.op, what,
                      format_name(at(index).type), at(index).type, kWeightTypes);
        }
        return dense(index, what) && blocks(index, what);
    }
    bool cache(uint32_t index, const char* what) noexcept {
        if (!general(index, what, 3)) return false;
        const tsr_type type = at(index).type;
        if (!can_encode_rows(type)) {
            return no("%s: required %s of type %s (%u); supported: %s; missing: that type", node_.op, what,
                      format_name(type), type, kCacheTypes);
        }
        return dense(index, what) && blocks(index, what) && dim(index, what, 1, TSR_PAGE_TOKENS);
    }

    // Extent `axis` of the operand must be `wanted`.
    bool dim(uint32_t index, const char* what, uint32_t axis, int64_t wanted) noexcept {
        if (!good_) return false;
        const int64_t found = at(index).dims[axis];
        if (found == wanted) return true;
        return no(
            "%s: required %s with dims[%u] = %lld; supported: %lld, as the other operands say; missing: matching "
            "shapes",
            node_.op, what, axis, static_cast<long long>(found), static_cast<long long>(wanted));
    }
    // An attribute that nobody has heard of may change what the node means.
    bool attributes(std::span<const std::string_view> known) noexcept {
        for (uint32_t i = 0; good_ && i < node_.attribute_count; ++i) {
            const char* name = node_.attributes[i]->name;
            if (std::ranges::find(known, std::string_view(name)) == known.end())
                return no("%s: required attribute '%s'; supported: none of that name; missing: it", node_.op, name);
        }
        return good_;
    }
    bool rank(uint32_t index, const char* what, uint32_t wanted) noexcept {
        if (!good_) return false;
        if (at(index).rank == wanted) return true;
        return no("%s: required %s of rank %u; supported: rank %u; missing: that rank", node_.op, what, at(index).rank,
                  wanted);
    }
    template <typename... Args>
    bool no(const char* format, Args... args) noexcept {
        if (good_) sdk::refuse(plan_, format, args...);
        good_ = false;
        return false;
    }

    const tsr_tensor& at(uint32_t index) const noexcept { return sdk::operand(node_, index); }
    uint32_t out(uint32_t index = 0) const noexcept { return node_.input_count + index; }

    // Present, canonical, of sane dimensions. Rank 0: any.
    bool general(uint32_t index, const char* what, uint32_t wanted_rank) noexcept {
        if (!good_) return false;
        if (index < node_.input_count && !sdk::has_input(node_, index)) {
            return no("%s: required no %s; supported: with %s; missing: it", node_.op, what, what);
        }
        const tsr_tensor& tensor = at(index);
        if (tensor.rank < 1 || tensor.rank > TSR_MAX_RANK) return no("%s: %s has rank %u", node_.op, what, tensor.rank);
        if (wanted_rank != 0 && !rank(index, what, wanted_rank)) return false;
        for (uint32_t i = 0; i < TSR_MAX_RANK; ++i) {
            if (tensor.dims[i] < 1 || (i >= tensor.rank && tensor.dims[i] != 1)) {
                return no("%s: %s has dims[%u] = %lld; supported: 1 or more, and 1 past the rank; missing: that",
                          node_.op, what, i, static_cast<long long>(tensor.dims[i]));
            }
        }
        if (tensor.range < TSR_RANGE_FIXED || tensor.range >= TSR_RANGE_COUNT) {
            return no("%s: %s has range %d; supported: %d to %d; missing: that range", node_.op, what, tensor.range,
                      int{TSR_RANGE_FIXED}, int{TSR_RANGE_COUNT} - 1);
        }
        if (!sdk::canonical(tensor)) {
            return no("%s: required %s in layout %s; supported: the canonical layout; missing: that layout", node_.op,
                      what, tensor.layout);
        }
        return true;
    }

  private:
    bool operand(uint32_t index, const sdk::OperandShape& shape) noexcept {
        switch (shape.kind) {
            case sdk::OperandKind::kFloats:
                return activation(index, shape.name, shape.rank());
            case sdk::OperandKind::kIndices:
                return integers(index, shape.name, shape.rank());
            case sdk::OperandKind::kWeight:
                return weight(index, shape.name, shape.rank());
            case sdk::OperandKind::kCache:
                return cache(index, shape.name);
        }
        return no("%s: an operand of no kind", node_.op);
    }
    bool typed(uint32_t index, const char* what, tsr_type wanted) noexcept {
        if (at(index).type == wanted) return true;
        return no("%s: required %s of type %s (%u); supported: %s; missing: that type", node_.op, what,
                  format_name(at(index).type), at(index).type, format_name(wanted));
    }
    bool dense(uint32_t index, const char* what) noexcept {
        const tsr_tensor& tensor = at(index);
        const int64_t wanted = format_size(tensor.type).bytes;
        if (tensor.strides[0] == wanted) return true;
        return no("%s: required %s with %lld bytes between elements; supported: %lld; missing: strides along rows",
                  node_.op, what, static_cast<long long>(tensor.strides[0]), static_cast<long long>(wanted));
    }
    bool blocks(uint32_t index, const char* what) noexcept {
        const tsr_tensor& tensor = at(index);
        const uint32_t block = format_size(tensor.type).elements;
        if (tensor.dims[0] % block == 0) return true;
        return no("%s: required %s with rows of %lld %s; supported: whole blocks of %u; missing: parts of blocks",
                  node_.op, what, static_cast<long long>(tensor.dims[0]), format_name(tensor.type), block);
    }

    const tsr_node& node_;
    tsr_kernel_plan& plan_;
    bool good_ = true;
};

// Bytes of all elements of a tensor of a known type.
inline double tensor_bytes(const tsr_tensor& tensor) noexcept {
    const FormatSize size = format_size(tensor.type);
    const double elements = static_cast<double>(tensor.dims[0]) * static_cast<double>(tensor.dims[1]) *
                            static_cast<double>(tensor.dims[2]) * static_cast<double>(tensor.dims[3]);
    return size.elements == 0
               ? elements * 4
               : elements / size.elements * size.bytes + elements / static_cast<double>(tensor.dims[0]) * size.prefix;
}

// The maximum of rows of a tensor.
inline double row_count(const tsr_tensor& tensor) noexcept {
    return static_cast<double>(tensor.dims[tensor.rank - 1]);
}

// Work of an op whose cost follows the bytes of one row of a tensor.
inline Work row_work(const tsr_tensor& tensor, double macs_an_element) noexcept {
    Work work;
    work.bytes_all_rows = 2 * tensor_bytes(tensor);
    work.bytes_one_row = work.bytes_all_rows / row_count(tensor);
    work.macs_all_rows = tensor_bytes(tensor) / 4 * macs_an_element;
    work.macs_one_row = work.macs_all_rows / row_count(tensor);
    return work;
}

}  // namespace tessera::cpu
