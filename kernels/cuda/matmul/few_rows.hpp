// Products of few rows with weights of any type: a warp an output, or of one row several.
#pragma once

#include "../ops.hpp"

#include <tessera/cuda/launch.hpp>
#include <tessera/types.h>

#include <array>
#include <cstdint>
#include <optional>

namespace tessera::cuda_kernels {
struct Matmul;
struct MatmulId;
}  // namespace tessera::cuda_kernels

namespace tessera::cuda_ops {

// The compute capability that brought dp4a: below it products are in f32.
inline constexpr uint32_t kDp4a = 610;
inline constexpr uint32_t kTensorCores = 800;  // of int8 and f16, as kernels use them

// The modules of kernels: formats that are decoded alike.
enum class Family { kFloat, kSmall, kK, kLevels, kCodebook };
Family family_of(tsr_type type) noexcept;

// The module that has the functions of a weight's type, and their names' part; any type that weights can have.
const cuda::Module& weights_module(const Build& build, tsr_type type) noexcept;

// How activations for this type lie: with sums; interleaved, where a lane multiplies one row of them.
bool has_sums(tsr_type weight) noexcept;
bool interleaved(tsr_type weight) noexcept;

// The order of codes that products of `rows` rows read: neighbours, interleaved, or either as mma has them
// (few_rows_mma.hpp).
enum class Order { kPlain, kInterleaved, kColumns, kInterleavedColumns };
inline constexpr size_t kOrders = 4;
Order order_of(tsr_type weight, uint32_t rows, uint32_t image_capability) noexcept;

// Bytes of activations of `rows` rows in that order, which one launch reads; 0: products with this type read x itself.
int64_t few_rows_bytes(tsr_type weight, int64_t k, int64_t rows, uint32_t image_capability) noexcept;

// Rows up to which they are faster than tiles, with a weight of `n` rows on a card of so many multiprocessors.
int64_t few_rows_limit(tsr_type weight, int64_t n, uint32_t processors, uint32_t image_capability) noexcept;

// Bytes of one row of k activations in the workspace, as lanes read them; 0: products with this type read x itself. The
// image that a card runs decides about their encoding.
uint64_t activation_bytes(tsr_type weight, int64_t k, uint32_t image_capability) noexcept;

// Which kernels of one row a weight takes: those that read its rows by vectors of 16 or 8 bytes, several rows a warp
// (kernels/one_row.hpp, one_row_mma.hpp), or those for any type and alignment.
enum class RowReads { kAny, kBy8, kBy16 };
inline constexpr size_t kRowReads = 3;
// `places`: the first row's address and all strides, or'ed; `k`: elements of a row.
RowReads row_reads(tsr_type weight, int64_t k, uint64_t places, uint32_t image_capability) noexcept;
const char* suffix_of(RowReads reads) noexcept;
// Rows of the weight that a warp takes, in products and in feed-forward networks.
int32_t outputs_of(tsr_type weight, RowReads reads) noexcept;
int32_t ffn_outputs_of(tsr_type weight, RowReads reads) noexcept;
// Whether there are kernels of the type that read so.
bool reads_by(tsr_type weight, RowReads reads, uint32_t image_capability) noexcept;
// The one that does. Throws sdk::Failure if there is none: the weight's address is not as its type's blocks need it.
using RowKernels = std::array<std::optional<cuda::Kernel>, kRowReads>;
const cuda::Kernel& kernel_reading(const RowKernels& kernels, tsr_type weight, RowReads reads);

// Multiply-adds a clock and multiprocessor: by lanes, as one row by id takes it; of `rows` rows that are not by id.
double lanes_macs_a_clock(tsr_type weight, uint32_t image_capability) noexcept;
double few_rows_macs_a_clock(tsr_type weight, int64_t rows, uint32_t image_capability) noexcept;

// The functions for one weight. Prepared once; launches from any thread.
class FewRows {
  public:
    enum class Kind { kRows, kById };

    // Fetches functions from the device. `weight`: of k times n elements. Throws sdk::Failure.
    FewRows(tsr_device& device, const tsr_device_info& info, const Build& build, const tsr_tensor& weight, Kind kind);

    // Sets what concerns activations, launches their conversion, if the type needs it, and the product with at most
    // `rows` rows. All else of the arguments is set.
    void multiply(tsr_queue queue, cuda_kernels::Matmul a, uint32_t rows) const;
    // The two steps of multiply: the first sets activation_bytes, which other products of the same rows and order() can
    // share.
    void convert(tsr_queue queue, cuda_kernels::Matmul& a, uint32_t rows, Order order) const;
    // The same of silu(a.x) * up (cuda_kernels::GatedActivations), in order(rows), which has columns.
    void convert_gated(tsr_queue queue, cuda_kernels::Matmul& a, const void* up, uint32_t rows) const;
    void multiply_converted(tsr_queue queue, const cuda_kernels::Matmul& a, uint32_t rows) const;
    // Bytes of the activations of `rows` rows; 0: there are none.
    int64_t bytes(int64_t rows) const noexcept { return few_rows_bytes(type_, k_, rows, image_); }
    uint32_t limit() const noexcept { return limit_; }
    Order order(uint32_t rows) const noexcept { return order_of(type_, rows, image_); }
    // With the experts that rows have, of a row several.
    void multiply_by_id(tsr_queue queue, cuda_kernels::MatmulId m, uint32_t rows, uint32_t slots) const;

  private:
    // Sets what concerns activations in `a`; the grid of their conversion.
    cuda::Grid describe(cuda_kernels::Matmul& a, uint32_t rows, Order order) const noexcept;
    const cuda::Kernel& one_row(const cuda_kernels::Matmul& a, int32_t& outputs) const;

    tsr_type type_;
    int64_t k_;
    uint32_t image_ = 0, limit_ = 0;
    int64_t activation_bytes_ = 0;
    std::optional<cuda::Kernel> quantise_, quantise_columns_, quantise_gated_;
    RowKernels one_row_;  // by RowReads, of rows or by id
    // Of more rows, by tile: of 2, 4 and 8 rows, or by tensor cores of 8 and 16.
    std::array<std::optional<cuda::Kernel>, 3> products_;
};

}  // namespace tessera::cuda_ops
