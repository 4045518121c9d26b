// Shared by kernels for CPUs: dividing work among workers, accessing elements of strided tensors, decoding parts of
// rows.
//
// Work is divided by outputs. With each output computed in one fixed order, results do not depend on the number of
// workers.
#pragma once

#include <tessera/cpp/node.hpp>
#include <tessera/cpu/formats.hpp>

#include <algorithm>
#include <cstdint>

namespace tessera::cpu {

struct Share {
    int64_t begin;
    int64_t end;
};

// The part of `items` that one of `workers` takes. Workers past the last get an empty one.
inline Share share(int64_t items, uint32_t worker, uint32_t workers) noexcept {
    if (worker >= workers) return {0, 0};
    return {items * worker / workers, items * (worker + 1) / workers};
}

inline Share share(int64_t items, const tsr_run& run) noexcept {
    return share(items, run.worker, run.workers);
}

// An operand with its data. `data` is element 0.
struct View {
    const tsr_tensor* tensor = nullptr;
    char* data = nullptr;

    int64_t dim(int i) const noexcept { return tensor->dims[i]; }
    // The row of elements at these indices of the dimensions past the first.
    char* row(int64_t i1, int64_t i2 = 0, int64_t i3 = 0) const noexcept {
        return data + i1 * tensor->strides[1] + i2 * tensor->strides[2] + i3 * tensor->strides[3];
    }
    float* floats(int64_t i1, int64_t i2 = 0, int64_t i3 = 0) const noexcept {
        return reinterpret_cast<float*>(row(i1, i2, i3));
    }
    // Element of a tensor of 32-bit integers.
    int32_t integer(int64_t i0, int64_t i1 = 0) const noexcept {
        return *reinterpret_cast<const int32_t*>(data + i0 * tensor->strides[0] + i1 * tensor->strides[1]);
    }
};

// Operand `index` counts inputs, then outputs.
inline View view(const tsr_node& node, const tsr_run& run, uint32_t index) noexcept {
    return {&sdk::operand(node, index), sdk::operand_data<char>(node, run, index)};
}

inline View input(const tsr_node& node, const tsr_run& run, uint32_t index) noexcept {
    return view(node, run, index);
}

inline View output(const tsr_node& node, const tsr_run& run, uint32_t index = 0) noexcept {
    return view(node, run, node.input_count + index);
}

// The rows of all dimensions past the first, in order, of which the slowest is limited to the actual range: what
// element-wise algorithms loop over.
class RowList {
  public:
    RowList(const tsr_tensor& tensor, const tsr_run& run) noexcept {
        for (uint32_t i = 1; i < tensor.rank; ++i) extent_[i - 1] = tensor.dims[i];
        if (tensor.rank > 1) {
            const tsr_range actual = sdk::actual_rows(tensor, run);
            first_[tensor.rank - 2] = actual.begin;
            extent_[tensor.rank - 2] = actual.end > actual.begin ? actual.end - actual.begin : 0;
        }
    }
    int64_t count() const noexcept { return extent_[0] * extent_[1] * extent_[2]; }
    // The floats of row `index` of a tensor with these dimensions.
    float* floats(const View& view, int64_t index) const noexcept {
        const int64_t i1 = index % extent_[0];
        const int64_t i2 = index / extent_[0] % extent_[1];
        const int64_t i3 = index / extent_[0] / extent_[1];
        return view.floats(first_[0] + i1, first_[1] + i2, first_[2] + i3);
    }

  private:
    int64_t first_[3] = {0, 0, 0};
    int64_t extent_[3] = {1, 1, 1};
};

// Elements first .. first + count of a row of `type` to f32; they need not be whole blocks. The type is one that plan
// has accepted.
inline void decode_elements(tsr_type type, const char* row, int64_t first, int64_t count, float* out) noexcept {
    const int64_t block = format_size(type).elements;
    while (count > 0) {
        const int64_t inside = first % block;
        const int64_t whole = inside == 0 ? count / block * block : 0;
        if (whole > 0) {
            decode_part(type, row, static_cast<size_t>(first), static_cast<size_t>(whole), out);
            first += whole, count -= whole, out += whole;
            continue;
        }
        float buffer[kSuperBlock];
        decode_part(type, row, static_cast<size_t>(first - inside), static_cast<size_t>(block), buffer);
        const int64_t part = std::min(count, block - inside);
        std::copy_n(buffer + inside, part, out);
        first += part, count -= part, out += part;
    }
}

}  // namespace tessera::cpu
