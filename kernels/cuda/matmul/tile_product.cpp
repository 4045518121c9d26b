#include "tile_product.hpp"

#include "../card_constants.hpp"
#include "../estimate.hpp"
#include "../formats/block_formats.hpp"
#include "../launches.hpp"
#include "few_rows.hpp"

#include <tessera/cpu/check.hpp>

#include <algorithm>
#include <string>

namespace tessera::cuda_ops {
namespace {

using namespace cuda_kernels;

const cuda::Module& products_module(const Build& build, tsr_type type) noexcept {
    switch (family_of(type)) {
        case Family::kSmall:
            return *build.products_small;
        case Family::kK:
            return *build.products_k;
        case Family::kLevels:
            return *build.products_levels;
        case Family::kCodebook:
            return *build.products_codebook;
        default:
            return *build.products_float;
    }
}

// Rows from which on tiles of 128 rows are fuller than two of 64.
constexpr double kLargeFrom = 96;

// Cards of Ampere to Blackwell with less of tensor cores and more lanes of f32.
bool is_geforce(uint32_t capability) noexcept {
    return (capability >= 860 && capability < 900) || capability >= 1200;
}

// Tiles by tensor cores through more shared memory than GeForce cards have.
bool has_staged_tiles(const Card& card) noexcept {
    return card.instructions >= kTensorCores && !is_geforce(card.capability);
}

// Those that take eight blocks of 32 elements for one of 256.
bool joins(tsr_type type, const Card& card) noexcept {
    return has_staged_tiles(card) && has_joined_products(type);
}

// The module of such tiles, or nullptr.
const cuda::Module* staged_module(const Build& build, tsr_type type, const Card& card) noexcept {
    if (!has_staged_tiles(card)) return nullptr;
    if (type == TSR_TYPE_F16 || type == TSR_TYPE_BF16) return build.staged_float;
    if (family_of(type) == Family::kFloat || !has_staged_products(type)) return nullptr;
    switch (family_of(type)) {
        case Family::kSmall:
            return build.staged_small;
        case Family::kK:
            return build.staged_k;
        case Family::kLevels:
            return build.staged_levels;
        default:
            return build.staged_codebook;
    }
}

}  // namespace

Card card_of(const cuda::Module& module, const tsr_device_info& info) noexcept {
    return {cuda::instructions_for(module, info.compute_capability), info.compute_capability};
}

RowLayout row_layout(tsr_type weight, const Card& card) noexcept {
    if (family_of(weight) != Family::kFloat) {
        if (card.instructions < kDp4a) return RowLayout::kFloats;
        const bool blocks = card.instructions >= kTensorCores && block_elements(weight) == kBlockElements;
        return blocks || joins(weight, card) ? RowLayout::kBlocks : RowLayout::kSegments;
    }
    if (card.instructions < kTensorCores || weight == TSR_TYPE_F32) return RowLayout::kFloats;
    return weight == TSR_TYPE_BF16 ? RowLayout::kBrainHalves : RowLayout::kHalves;
}

int64_t row_bytes(RowLayout layout, int64_t k) noexcept {
    switch (layout) {
        case RowLayout::kSegments:
            return segments_of(k) * kSegmentBytes;
        case RowLayout::kBlocks:
            return blocks_bytes(k);
        case RowLayout::kHalves:
            return halves_bytes(k, false);
        case RowLayout::kBrainHalves:
            return halves_bytes(k, true);
        default:
            return 0;
    }
}

uint64_t tile_row_bytes(tsr_type weight, int64_t k, const Card& card) noexcept {
    return static_cast<uint64_t>(row_bytes(row_layout(weight, card), k));
}

namespace {

// The share of the rate of int8 on tensor cores that the instructions beside it allow in tiles of 128 rows
// (testing/cuda_code/cuda_sass --products); of the vendor's rate, of which mma.sync reaches 0.62 on Hopper.
struct Shares {
    double a100, geforce, hopper;
};

// Of formats with blocks of 256 elements, and of those with blocks of 32 of which eight are taken for one.
Shares shares_of_blocks(tsr_type weight) noexcept {
    switch (weight) {
        case TSR_TYPE_Q4_0:
        case TSR_TYPE_Q8_0:
            return {0.84, 1, 0.45};
        case TSR_TYPE_Q4_1:
            return {0.84, 0.67, 0.43};
        case TSR_TYPE_Q5_0:
            return {0.80, 1, 0.43};
        case TSR_TYPE_Q5_1:
            return {0.80, 0.67, 0.43};
        case TSR_TYPE_Q6_0:
            return {0.83, 1, 0.43};
        case TSR_TYPE_IQ4_NL:
            return {0.83, 1, 0.42};
        case TSR_TYPE_MXFP4:
            return {0.83, 1, 0.41};
        case TSR_TYPE_Q8_ROW:
            return {0.87, 1, 0.51};
        case TSR_TYPE_IQ1_S_ROW:
            return {0.82, 1, 0.42};
        case TSR_TYPE_IQ1_M_ROW:
            return {0.78, 0.63, 0.38};
        case TSR_TYPE_Q4_K:
        case TSR_TYPE_Q5_K:
            return {0.85, 0.89, 0.43};
        case TSR_TYPE_Q2_K:
            return {0.81, 0.80, 0.47};
        case TSR_TYPE_Q3_K:
            return {0.81, 1, 0.45};
        case TSR_TYPE_Q6_K:
            return {0.50, 1, 0.27};
        case TSR_TYPE_Q8_K_F16:
            return {0.85, 1, 0.45};
        case TSR_TYPE_IQ4_XS:
        case TSR_TYPE_IQ2_KS:
            return {0.84, 1, 0.43};
        case TSR_TYPE_IQ3_KS:
            return {0.85, 1, 0.44};
        case TSR_TYPE_IQ4_KS:
            return {0.82, 1, 0.40};
        case TSR_TYPE_IQ2_XXS:
            return {0.77, 1, 0.40};
        case TSR_TYPE_IQ5_KS:
            return {0.68, 1, 0.34};
        case TSR_TYPE_IQ3_XXS:
            return {0.72, 1, 0.35};
        case TSR_TYPE_IQ3_S:
            return {0.64, 1, 0.32};
        case TSR_TYPE_IQ1_S:
            return {0.82, 1, 0.42};
        case TSR_TYPE_IQ1_M:
            return {0.81, 0.89, 0.41};
        case TSR_TYPE_IQ2_XS:
            return {0.50, 0.86, 0.26};
        case TSR_TYPE_IQ2_S:
            return {0.50, 0.88, 0.26};
        case TSR_TYPE_IQ2_K:
            return {0.50, 1, 0.27};
        case TSR_TYPE_IQ3_K:
            return {0.50, 0.82, 0.27};
        case TSR_TYPE_IQ4_K:
            return {0.50, 0.93, 0.27};
        case TSR_TYPE_IQ5_K:
            return {0.50, 0.82, 0.26};
        case TSR_TYPE_IQ6_K:
            return {0.50, 0.71, 0.27};
        default:
            return {0.43, 0.63, 0.21};
    }
}

// Of the others, segment by segment.
constexpr Shares kSharesOfSegments = {0.24, 0.63, 0.15};

// The same of the rate of dp4a, before 8.0.
struct Dp4aShares {
    double pascal, volta;  // 6.1; 7.0 and 7.5
};

Dp4aShares dp4a_shares(tsr_type weight) noexcept {
    switch (weight) {
        case TSR_TYPE_Q4_1:
        case TSR_TYPE_Q5_1:
        case TSR_TYPE_Q4_K:
        case TSR_TYPE_Q5_K:
            return {0.48, 0.68};
        case TSR_TYPE_IQ3_KS:
        case TSR_TYPE_IQ5_KS:
        case TSR_TYPE_IQ2_XXS:
            return {0.47, 0.74};
        case TSR_TYPE_IQ3_XXS:
        case TSR_TYPE_IQ3_S:
            return {0.44, 0.73};
        case TSR_TYPE_Q6_K:
        case TSR_TYPE_IQ2_S:
        case TSR_TYPE_IQ2_K:
        case TSR_TYPE_IQ4_K:
        case TSR_TYPE_IQ1_M:
        case TSR_TYPE_IQ1_M_ROW:
            return {0.46, 0.64};
        case TSR_TYPE_Q3_K:
        case TSR_TYPE_IQ2_XS:
        case TSR_TYPE_IQ3_K:
        case TSR_TYPE_IQ5_K:
        case TSR_TYPE_IQ6_K:
            return {0.41, 0.64};
        case TSR_TYPE_Q2_K:
            return {0.42, 0.53};
        default:
            return {0.53, 0.76};
    }
}

// Multiply-adds a clock and multiprocessor of tiles that are full: the rate of the unit that multiplies, times the
// share that the instructions beside it allow, times one for what no instruction count shows.
double tile_macs_a_clock(tsr_type weight, const Card& card) noexcept {
    const double waiting = constants_of(card.capability).product_share.value;
    const RowLayout layout = row_layout(weight, card);
    const uint32_t capability = card.capability;
    const bool geforce = is_geforce(capability);
    const bool hopper = !geforce && capability >= 900;
    // f32: 64 or 128 lanes; per 16 multiply-adds of a thread four loads from shared memory go by.
    if (layout == RowLayout::kFloats)
        return waiting * 0.7 * (geforce || (capability >= 610 && capability < 700) ? 128 : 64);
    // dp4a: four in each of 128 lanes on 6.1, of 64 later.
    if (card.instructions < kTensorCores) {
        const Dp4aShares shares = dp4a_shares(weight);
        return waiting * (capability < 700 ? 512 * shares.pascal : 256 * shares.volta);
    }
    if (layout == RowLayout::kHalves || layout == RowLayout::kBrainHalves) {
        // With sums in f32.
        const double rate = geforce ? 256 : hopper ? 2048 * constants_of(capability).mma_share.value : 1024;
        return waiting * 0.9 * rate / half_parts(layout == RowLayout::kBrainHalves);
    }
    // GeForce cards take joined formats segment by segment, at the rate that is theirs in the table.
    const bool listed = layout == RowLayout::kBlocks || has_joined_products(weight);
    const Shares shares = listed ? shares_of_blocks(weight) : kSharesOfSegments;
    if (geforce) return waiting * 1024 * shares.geforce;
    return waiting * (hopper ? 4096 * shares.hopper : 2048 * shares.a100);
}

}  // namespace

TileProduct::TileProduct(tsr_device& device, const tsr_device_info& info, const Build& build, tsr_type weight)
    : TileProduct(device, card_of(products_module(build, weight), info), build, weight) {}

TileProduct::Size::Size(tsr_device& device, const cuda::Module& module, const std::string& name, int rows_of_tile,
                        int outputs_of_tile, int threads_of_block, int shared)
    : kernel(device, module, (name + std::to_string(rows_of_tile)).c_str(), static_cast<uint32_t>(shared)),
      outputs(outputs_of_tile),
      threads(static_cast<uint32_t>(threads_of_block)),
      shared_bytes(static_cast<uint32_t>(shared)) {}

TileProduct::TileProduct(tsr_device& device, const Card& card, const Build& build, tsr_type weight)
    : layout_(row_layout(weight, card)) {
    const std::string name = std::string("product_") + cpu::format_name(weight) + "_";
    if (const cuda::Module* staged = staged_module(build, weight, card)) {
        const auto add = [&](std::optional<Size>& size, int rows) {
            const bool brain = layout_ == RowLayout::kBrainHalves;
            size.emplace(
                device, *staged, name + "staged_", rows, kStagedOutputs, 2 * rows,
                brain || layout_ == RowLayout::kHalves ? staged_half_bytes(brain, rows) : staged_bytes(weight, rows));
        };
        add(small_, kSmallTile);
        add(large_, kLargeTile);
        return;
    }
    const cuda::Module& module = products_module(build, weight);
    const bool tensors = layout_ != RowLayout::kFloats && card.instructions >= kTensorCores;
    small_.emplace(device, module, name, kSmallTile, tensors ? tile_outputs(weight, kSmallTile) : kPlainTileOutputs,
                   kTilesThreads, 0);
    if (!tensors || (layout_ != RowLayout::kSegments && layout_ != RowLayout::kBlocks)) return;
    large_.emplace(device, module, name, kLargeTile, tile_outputs(weight, kLargeTile), kTilesThreads, 0);
}

void write_product_estimate(const cpu::Work& work, tsr_type weight, int launches, const tsr_device_info& device,
                            const Card& card, int64_t rows, int64_t limit, double filled, tsr_kernel_plan& plan,
                            bool by_id) noexcept {
    Cost cost;
    cost.launches = launches;
    cost.macs_a_clock =
        by_id ? lanes_macs_a_clock(weight, card.instructions) : few_rows_macs_a_clock(weight, 1, card.instructions);
    if (rows <= limit && !by_id) cost.macs_a_clock_all_rows = few_rows_macs_a_clock(weight, rows, card.instructions);
    if (rows > limit) cost.macs_a_clock_all_rows = filled * tile_macs_a_clock(weight, card);
    write_estimate(work, cost, device, plan);
}

int TileProduct::tile_rows(double rows) const noexcept {
    return large_ && rows >= kLargeFrom ? kLargeTile : kSmallTile;
}

void TileProduct::multiply(tsr_queue queue, const Tiles& a, int tile_rows, uint32_t tiles, uint32_t batch) const {
    const Size& size = tile_rows == kLargeTile ? *large_ : *small_;
    const int columns = a.paired ? 2 * a.n : a.n;
    size.kernel.launch(queue, {tiles, static_cast<uint32_t>((columns + size.outputs - 1) / size.outputs), batch},
                       size.threads, a, size.shared_bytes);
}

void TileProduct::multiply_rows(tsr_queue queue, const Matmul& m, uint32_t rows) const {
    Tiles a{};
    a.x = m.x;
    a.x_row = m.x_row;
    a.x_slot = m.x_batch;
    a.x_numbering = kAbsolute;
    if (converts()) {
        a.x = m.activations;
        a.x_slot = row_bytes(layout_, m.k);
        a.x_row = a.x_slot * m.batch;
        a.x_numbering = kRelative;
    }
    a.weights[0] = m.weight;
    a.y = m.y;
    a.rows = m.rows;
    a.weight_row = m.weight_row;
    a.weight_matrix = m.weight_batch;
    a.y_row = m.y_row;
    a.y_slot = m.y_batch;
    a.k = m.k;
    a.n = m.n;
    a.y_numbering = kAbsolute;
    const auto tile = static_cast<uint32_t>(tile_rows(rows));
    multiply(queue, a, static_cast<int>(tile), (rows + tile - 1) / tile, static_cast<uint32_t>(m.batch));
}

Segments rows_to_convert(const Matmul& m) noexcept {
    Segments s{};
    s.x = m.x;
    s.segments = m.activations;
    s.rows = m.rows;
    s.x_row = m.x_row;
    s.x_slot = m.x_batch;
    s.k = m.k;
    s.slots = m.batch;
    return s;
}

ConvertRows::ConvertRows(tsr_device& device, const Build& build, RowLayout layout)
    : layout_(layout),
      kernel_(device, *build.product_parts,
              layout == RowLayout::kSegments ? "make_segments"
              : layout == RowLayout::kBlocks ? "make_blocks"
              : layout == RowLayout::kHalves ? "make_halves_f16"
                                             : "make_halves_bf16") {}

void ConvertRows::launch(tsr_queue queue, Segments a, uint32_t rows) const {
    a.segments_row = row_bytes(layout_, a.k);
    if (layout_ != RowLayout::kSegments) {
        kernel_.launch(queue, {std::min(rows, kMaximumGrid), 1, 1},
                       layout_ == RowLayout::kBlocks ? kBlockThreads : kHalvesThreads, a);
        return;
    }
    const auto groups = static_cast<uint32_t>((segments_of(a.k) + kSegmentWarps - 1) / kSegmentWarps);
    kernel_.launch(queue, {groups, std::min(rows, kMaximumGrid), 1}, 32 * kSegmentWarps, a);
}

int64_t MapExperts::maximum_tiles(int64_t places, int64_t experts, int tile_rows) noexcept {
    // Every expert has at most one tile that is not full; so have rows without one.
    return places / tile_rows + std::min(experts + 2, places);
}

uint64_t MapExperts::bytes(int64_t places, int64_t experts) noexcept {
    const int64_t words = kMapHead + kMapTile * maximum_tiles(places, experts, kSmallTile) + places;
    return static_cast<uint64_t>((4 * words + 255) / 256 * 256);
}

MapExperts::MapExperts(tsr_device& device, const Build& build) : kernel_(device, *build.product_parts, "map_experts") {}

void MapExperts::launch(tsr_queue queue, ExpertMap& m, void* memory, int64_t places) const {
    m.tiles = static_cast<int32_t*>(memory);
    m.places = m.tiles + kMapHead + kMapTile * maximum_tiles(places, m.experts, m.tile_rows);
    kernel_.launch(queue, {1, 1, 1}, kMapThreads, m);
}

}  // namespace tessera::cuda_ops
