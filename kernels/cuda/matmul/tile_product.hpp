// Products of many rows in tiles, with weights of any type; see kernels/tiles.hpp.
#pragma once

#include "../ops.hpp"
#include "tiles.hpp"

#include <tessera/cpu/check.hpp>
#include <tessera/cuda/launch.hpp>
#include <tessera/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace tessera::cuda_ops {

// What runs the kernels of products of many rows.
struct Card {
    uint32_t instructions;  // that they are made of: cuda::instructions_for() their module
    uint32_t capability;
};
Card card_of(const cuda::Module& module, const tsr_device_info& info) noexcept;

// As what products with a type read rows of k elements of x (kernels/tiles.hpp); kFloats: x itself.
enum class RowLayout { kFloats, kSegments, kBlocks, kHalves, kBrainHalves };
inline constexpr size_t kRowLayouts = 5;
RowLayout row_layout(tsr_type weight, const Card& card) noexcept;

// Bytes of one row of k elements in that layout; 0: floats.
int64_t row_bytes(RowLayout layout, int64_t k) noexcept;
uint64_t tile_row_bytes(tsr_type weight, int64_t k, const Card& card) noexcept;

// Up to so many rows each reads its experts for itself; more are grouped, since experts repeat.
inline constexpr int64_t kFewRowsById = 4;

// The functions for weights of one type. Prepared once; launches from any thread.
class TileProduct {
  public:
    // Throws sdk::Failure.
    TileProduct(tsr_device& device, const tsr_device_info& info, const Build& build, tsr_type weight);

    // Rows of a tile where each matrix has about so many rows.
    int tile_rows(double rows) const noexcept;

    RowLayout layout() const noexcept { return layout_; }
    // Whether x has to be converted.
    bool converts() const noexcept { return layout_ != RowLayout::kFloats; }

    // `tiles`: of `tile_rows` rows, at most; `batch`: matrices, if there is no map.
    void multiply(tsr_queue queue, const cuda_kernels::Tiles& a, int tile_rows, uint32_t tiles,
                  uint32_t batch = 1) const;
    // Up to `rows` rows of `m`, which, if they are converted, lie in its activations.
    void multiply_rows(tsr_queue queue, const cuda_kernels::Matmul& m, uint32_t rows) const;

  private:
    TileProduct(tsr_device& device, const Card& card, const Build& build, tsr_type weight);

    // The kernel of tiles of so many rows.
    struct Size {
        Size(tsr_device& device, const cuda::Module& module, const std::string& name, int rows_of_tile,
             int outputs_of_tile, int threads_of_block, int shared);

        cuda::Kernel kernel;
        int outputs;
        uint32_t threads, shared_bytes;
    };

    RowLayout layout_;
    std::optional<Size> small_, large_;
};

// What converts all rows of a product to its activations.
cuda_kernels::Segments rows_to_convert(const cuda_kernels::Matmul& m) noexcept;

// Seconds of products of up to `rows` rows; more than `limit` are in tiles; `filled`: the share of rows that tiles
// really have; `by_id`: one row is multiplied by lanes, as with experts.
void write_product_estimate(const cpu::Work& work, tsr_type weight, int launches, const tsr_device_info& device,
                            const Card& card, int64_t rows, int64_t limit, double filled, tsr_kernel_plan& plan,
                            bool by_id = false) noexcept;

// Converts rows of f32.
class ConvertRows {
  public:
    // `layout`: not kFloats.
    ConvertRows(tsr_device& device, const Build& build, RowLayout layout);
    // Sets segments_row. `rows`: the maximum, slots included.
    void launch(tsr_queue queue, cuda_kernels::Segments a, uint32_t rows) const;

  private:
    RowLayout layout_;
    cuda::Kernel kernel_;
};

// The map of experts lies in the workspace: how many tiles there can be, its bytes, and the kernel that makes it.
class MapExperts {
  public:
    static bool takes(int64_t experts) noexcept { return experts <= cuda_kernels::kMapExperts; }
    // Of `places` places with ids of `experts` experts.
    static int64_t maximum_tiles(int64_t places, int64_t experts, int tile_rows) noexcept;
    static uint64_t bytes(int64_t places, int64_t experts) noexcept;

    MapExperts(tsr_device& device, const Build& build);
    // Sets tiles and places in `m`, which lie at `memory`, and makes the map; `places`: the maximum of this launch.
    void launch(tsr_queue queue, cuda_kernels::ExpertMap& m, void* memory, int64_t places) const;

  private:
    cuda::Kernel kernel_;
};

}  // namespace tessera::cuda_ops
