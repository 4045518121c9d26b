#include "few_rows.hpp"

#include "../formats/block_formats.hpp"
#include "../formats/wide_formats.hpp"
#include "../launches.hpp"
#include "column_places.hpp"
#include "row_places.hpp"

#include <tessera/cpp/status.hpp>
#include <tessera/cpu/check.hpp>
#include <tessera/formats/formats.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace tessera::cuda_ops {
namespace {

using cuda_kernels::kMatmulWarps;

constexpr std::array kTiles = {2, 4, 8};
constexpr std::array kColumnTiles = {8, 16};
// Rows of f16 and bf16 where tiles have tensor cores. There are no kernels for more.
constexpr int64_t kMaximumOfHalves = kTiles[1];
static_assert(kTiles.back() == cuda_kernels::kMaximumTile);

bool is_float(tsr_type type) noexcept {
    return family_of(type) == Family::kFloat;
}

// Rows of x and of the weight can be read 16 bytes at a time.
bool reads_vectors(const cuda_kernels::Matmul& a, tsr_type type) noexcept {
    uint64_t all = reinterpret_cast<uint64_t>(a.weight) | reinterpret_cast<uint64_t>(a.x) |
                   static_cast<uint64_t>(a.weight_row | a.x_row);
    all |= static_cast<uint64_t>(a.weight_batch | a.x_batch);  // 0 without a batch
    return multiple(all, 16) && a.k % (type == TSR_TYPE_F32 ? 4 : 8) == 0;
}

// Products of rows, but not by id, that few_rows_mma.hpp computes.
bool by_tensor_cores(tsr_type type, uint32_t image_capability) noexcept {
    return image_capability >= kTensorCores && !is_float(type);
}
Order order_of_lanes(tsr_type type) noexcept {
    return interleaved(type) ? Order::kInterleaved : Order::kPlain;
}
bool has_columns(Order order) noexcept {
    return order == Order::kColumns || order == Order::kInterleavedColumns;
}

uint32_t groups_of(int32_t n, int32_t of) noexcept {
    return static_cast<uint32_t>((n + of - 1) / of);
}

}  // namespace

Family family_of(tsr_type type) noexcept {
    switch (type) {
#define TESSERA_CASE(X, id, code_name, number, packed, name, family, ...) \
    case TSR_TYPE_##id:                                                   \
        return Family::k##family;
        TSR_BLOCK_TYPE_ROWS(TESSERA_CASE, )
#undef TESSERA_CASE
        default:
            return Family::kFloat;
    }
}

const cuda::Module& weights_module(const Build& build, tsr_type type) noexcept {
    switch (family_of(type)) {
        case Family::kSmall:
            return *build.few_rows_small;
        case Family::kK:
            return *build.few_rows_k;
        case Family::kLevels:
            return *build.few_rows_levels;
        case Family::kCodebook:
            return *build.few_rows_codebook;
        default:
            return *build.matmul_float;
    }
}

bool has_sums(tsr_type weight) noexcept {
    return cuda_kernels::reads_sums(weight);
}

bool interleaved(tsr_type weight) noexcept {
    return cuda_kernels::reads_interleaved(weight);
}

Order order_of(tsr_type weight, uint32_t rows, uint32_t image_capability) noexcept {
    if (by_tensor_cores(weight, image_capability) && (rows > 1 || cuda_kernels::mma_multiplies_one_row(weight)))
        return cuda_kernels::mma_reads_interleaved(weight) ? Order::kInterleavedColumns : Order::kColumns;
    return order_of_lanes(weight);
}

int64_t few_rows_bytes(tsr_type weight, int64_t k, int64_t rows, uint32_t image_capability) noexcept {
    if (has_columns(order_of(weight, static_cast<uint32_t>(rows), image_capability)))
        return (rows + cuda_kernels::kColumnRows - 1) / cuda_kernels::kColumnRows *
               cuda_kernels::column_bytes(k, has_sums(weight));
    return rows * static_cast<int64_t>(activation_bytes(weight, k, image_capability));
}

int64_t few_rows_limit(tsr_type weight, int64_t n, uint32_t processors, uint32_t image_capability) noexcept {
    if (!by_tensor_cores(weight, image_capability)) {
        const bool half = weight == TSR_TYPE_F16 || weight == TSR_TYPE_BF16;
        return half && image_capability >= kTensorCores ? kMaximumOfHalves : kTiles.back();
    }
    // A tile takes as long for 64 rows as for one. Where weights are small, there is none for each multiprocessor.
    constexpr int64_t kOutputs = 128;  // of a tile
    return ((n + kOutputs - 1) / kOutputs < int64_t{processors} ? 4 : 2) * kColumnTiles.back();
}

uint64_t activation_bytes(tsr_type weight, int64_t k, uint32_t image_capability) noexcept {
    if (is_float(weight)) return 0;
    const bool sums = has_sums(weight);
    return static_cast<uint64_t>(image_capability >= kDp4a ? cuda_kernels::int8_activation_bytes(k, sums)
                                                           : cuda_kernels::float_activation_bytes(k, sums));
}

RowReads row_reads(tsr_type weight, int64_t k, uint64_t places, uint32_t image_capability) noexcept {
    if (image_capability < kDp4a || !cuda_kernels::has_wide_unit(weight) || k % 64 != 0) return RowReads::kAny;
    const uint64_t all = places | formats::format_bytes(weight, static_cast<size_t>(k));
    return all % 16 == 0 ? RowReads::kBy16 : all % 8 == 0 ? RowReads::kBy8 : RowReads::kAny;
}

const char* suffix_of(RowReads reads) noexcept {
    return reads == RowReads::kBy16 ? "_by16" : reads == RowReads::kBy8 ? "_by8" : "";
}

int32_t outputs_of(tsr_type weight, RowReads reads) noexcept {
    return reads == RowReads::kAny ? 1 : cuda_kernels::outputs_of_warp(weight);
}

int32_t ffn_outputs_of(tsr_type weight, RowReads reads) noexcept {
    return reads == RowReads::kAny ? 1 : cuda_kernels::ffn_outputs_of_warp(weight);
}

bool reads_by(tsr_type weight, RowReads reads, uint32_t image_capability) noexcept {
    if (image_capability < kDp4a || !cuda_kernels::has_wide_unit(weight)) return reads == RowReads::kAny;
    return reads == RowReads::kBy16 ||
           (reads == RowReads::kBy8 ? cuda_kernels::reads_by_8(weight) : cuda_kernels::reads_by_any(weight));
}

const cuda::Kernel& kernel_reading(const RowKernels& kernels, tsr_type weight, RowReads reads) {
    const std::optional<cuda::Kernel>& kernel = kernels[static_cast<size_t>(reads)];
    if (!kernel)
        throw sdk::Failure(TSR_INVALID_ARGUMENT, std::string("weights of ") + cpu::format_name(weight) +
                                                     " lie at an address that is no multiple of " +
                                                     std::to_string(row_alignment(weight)) + " bytes");
    return *kernel;
}

double lanes_macs_a_clock(tsr_type weight, uint32_t image_capability) noexcept {
    if (is_float(weight)) return 32;
    if (image_capability < kDp4a) return 16;
    // By instructions of a row of 4096 elements, four a clock, or what the integer units of an H200 take
    // (testing/cuda_code/cuda_sass --one-row).
    switch (weight) {
        case TSR_TYPE_Q4_0:
        case TSR_TYPE_Q4_K:
            return 70;
        case TSR_TYPE_Q8_0:
            return 50;
        case TSR_TYPE_IQ4_XS:
            return image_capability >= kTensorCores ? 60 : 50;  // kernels/one_row_mma.hpp
        case TSR_TYPE_Q6_K:
            return 40;
        default:
            return family_of(weight) == Family::kCodebook ? 10 : 22;  // the former on an H200 (2026-11-27)
    }
}

namespace {

// A warp's instructions for 64 elements of 16 rows of the weight with up to eight of activations (few_rows_mma.hpp,
// testing/cuda_code/cuda_sass), those around the loop included where k is 2048; of formats without a unit by hand, what
// an H200 took (2026-11-27).
double column_instructions(tsr_type weight) noexcept {
    switch (weight) {
        case TSR_TYPE_Q8_0:
            return 100;
        case TSR_TYPE_Q4_0:
            return 105;
        case TSR_TYPE_Q4_K:
        case TSR_TYPE_IQ4_NL:
            return 120;
        case TSR_TYPE_IQ4_XS:
            return 130;
        case TSR_TYPE_Q5_K:
        case TSR_TYPE_Q2_K:
        case TSR_TYPE_Q3_K:
        case TSR_TYPE_Q6_K:
        case TSR_TYPE_MXFP4:
            return 150;
        default:
            return 250;
    }
}

}  // namespace

double few_rows_macs_a_clock(tsr_type weight, int64_t rows, uint32_t image_capability) noexcept {
    if (!has_columns(
            order_of(weight, static_cast<uint32_t>(std::min<int64_t>(rows, kColumnTiles.back())), image_capability)))
        return lanes_macs_a_clock(weight, image_capability);
    // Four instructions a clock, of which waiting leaves the share that an H200 reached. Eight rows more multiply and
    // scale once more.
    const double instructions = column_instructions(weight) + (rows > kColumnTiles.front() ? 40 : 0);
    const double times = std::ceil(static_cast<double>(rows) / kColumnTiles.back());
    return static_cast<double>(rows) * 16 * 64 * 4 * 0.6 / (instructions * times);
}

FewRows::FewRows(tsr_device& device, const tsr_device_info& info, const Build& build, const tsr_tensor& weight,
                 Kind kind)
    : type_(weight.type), k_(weight.dims[0]) {
    const cuda::Module& module = weights_module(build, type_);
    const cuda::Image* image = cuda::find_image(module, info.compute_capability);
    if (!image) throw sdk::Failure(TSR_UNSUPPORTED, cuda::missing_image(module, info.compute_capability));
    image_ = cuda::instructions_for(module, info.compute_capability);
    limit_ = static_cast<uint32_t>(few_rows_limit(type_, weight.dims[1], info.processors, image_));
    activation_bytes_ = static_cast<int64_t>(activation_bytes(type_, k_, image_));
    if (activation_bytes_ > 0) quantise_.emplace(device, *build.quantise, "quantise_activations");
    const std::string name = cpu::format_name(type_);
    const bool lanes_take_one_row = kind == Kind::kById || !has_columns(order(1));
    for (size_t r = 0; lanes_take_one_row && r < kRowReads; ++r) {
        const auto reads = static_cast<RowReads>(r);
        if (!reads_by(type_, reads, image_)) continue;
        const std::string of_one = kind == Kind::kById ? "matmul_id_" + name : "matmul_" + name + "_tile1";
        one_row_[r].emplace(device, module, (of_one + suffix_of(reads)).c_str());
    }
    if (kind == Kind::kById) return;
    if (by_tensor_cores(type_, image_)) {
        quantise_columns_.emplace(device, *build.quantise, "quantise_columns");
        quantise_gated_.emplace(device, *build.quantise, "quantise_gated_columns");
        for (size_t t = 0; t < kColumnTiles.size(); ++t)
            products_[t].emplace(device, module,
                                 ("matmul_" + name + "_rows" + std::to_string(kColumnTiles[t])).c_str());
        return;
    }
    for (size_t t = 0; t < kTiles.size() && static_cast<uint32_t>(kTiles[t]) <= limit_; ++t)
        products_[t].emplace(device, module, ("matmul_" + name + "_tile" + std::to_string(kTiles[t])).c_str());
}

cuda::Grid FewRows::describe(cuda_kernels::Matmul& a, uint32_t rows, Order order) const noexcept {
    const bool columns = has_columns(order);
    a.activation_bytes = columns ? cuda_kernels::column_bytes(k_, has_sums(type_)) : activation_bytes_;
    a.sums = has_sums(type_) ? 1 : 0;
    a.interleaved = order == Order::kInterleaved || order == Order::kInterleavedColumns ? 1 : 0;
    return {groups_of(a.k / 32 + (columns ? a.k / 32 % 2 : 0), cuda_kernels::kQuantiseWarps),
            std::min(rows + (columns ? rows % 2 : 0), kMaximumGrid), static_cast<uint32_t>(a.batch)};
}

void FewRows::convert(tsr_queue queue, cuda_kernels::Matmul& a, uint32_t rows, Order order) const {
    if (!quantise_) return;
    const cuda::Grid grid = describe(a, rows, order);
    (has_columns(order) ? quantise_columns_ : quantise_)->launch(queue, grid, 32 * cuda_kernels::kQuantiseWarps, a);
}

void FewRows::convert_gated(tsr_queue queue, cuda_kernels::Matmul& a, const void* up, uint32_t rows) const {
    const cuda::Grid grid = describe(a, rows, order(rows));
    quantise_gated_->launch(queue, grid, 32 * cuda_kernels::kQuantiseWarps, cuda_kernels::GatedActivations{a, up});
}

void FewRows::multiply(tsr_queue queue, cuda_kernels::Matmul a, uint32_t rows) const {
    convert(queue, a, rows, order(rows));
    multiply_converted(queue, a, rows);
}

void FewRows::multiply_converted(tsr_queue queue, const cuda_kernels::Matmul& converted, uint32_t rows) const {
    cuda_kernels::Matmul a = converted;
    if (!quantise_) a.vectors = reads_vectors(a, type_) ? 1 : 0;
    if (has_columns(order(rows))) {
        const uint64_t places = reinterpret_cast<uint64_t>(a.weight) | static_cast<uint64_t>(a.weight_row) |
                                static_cast<uint64_t>(a.weight_batch) |
                                formats::format_bytes(type_, static_cast<size_t>(a.k)) | 16;
        a.vectors = static_cast<int32_t>(places & -places);
        const size_t tile = rows <= static_cast<uint32_t>(kColumnTiles[0]) ? 0 : 1;
        const auto tile_rows = static_cast<uint32_t>(kColumnTiles[tile]);
        const uint32_t row_tiles = (rows + tile_rows - 1) / tile_rows;
        a.row_tiles = static_cast<int32_t>(row_tiles);
        products_[tile]->launch(queue, {groups_of(a.n, 16) * row_tiles, 1, static_cast<uint32_t>(a.batch)},
                                32 * kMatmulWarps, a);
        return;
    }
    if (rows <= 1) {
        int32_t outputs;
        const cuda::Kernel& kernel = one_row(a, outputs);
        kernel.launch(queue, {groups_of(a.n, kMatmulWarps * outputs), 1, static_cast<uint32_t>(a.batch)},
                      32 * kMatmulWarps, a);
        return;
    }
    size_t tile = 0;
    while (tile + 1 < kTiles.size() && static_cast<uint32_t>(kTiles[tile]) < rows) ++tile;
    const auto tile_rows = static_cast<uint32_t>(kTiles[tile]);
    products_[tile]->launch(queue,
                            {groups_of(a.n, kMatmulWarps), std::min((rows + tile_rows - 1) / tile_rows, kMaximumGrid),
                             static_cast<uint32_t>(a.batch)},
                            32 * kMatmulWarps, a);
}

void FewRows::multiply_by_id(tsr_queue queue, cuda_kernels::MatmulId m, uint32_t rows, uint32_t slots) const {
    convert(queue, m.matmul, rows, order_of_lanes(type_));
    if (!quantise_) m.matmul.vectors = reads_vectors(m.matmul, type_) ? 1 : 0;
    int32_t outputs;
    const cuda::Kernel& kernel = one_row(m.matmul, outputs);
    kernel.launch(queue, {groups_of(m.matmul.n, kMatmulWarps * outputs), rows, slots}, 32 * kMatmulWarps, m);
}

const cuda::Kernel& FewRows::one_row(const cuda_kernels::Matmul& a, int32_t& outputs) const {
    const uint64_t strides = static_cast<uint64_t>(a.weight_row | a.weight_batch);
    const RowReads reads = row_reads(type_, a.k, reinterpret_cast<uint64_t>(a.weight) | strides, image_);
    outputs = outputs_of(type_, reads);
    return kernel_reading(one_row_, type_, reads);
}

}  // namespace tessera::cuda_ops
