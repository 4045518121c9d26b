// matmul_id with weights of any type: the ids are read on the device, so that a recording holds for all of them. Of few
// rows each reads its experts for itself, many are grouped by expert on the device.
#include "../estimate.hpp"
#include "../kernel_of.hpp"
#include "../launches.hpp"
#include "few_rows.hpp"
#include "tile_product.hpp"

#include <tessera/cpu/checks/matmul.hpp>

#include <algorithm>
#include <cstdio>
#include <optional>

namespace tessera::cuda_ops {
namespace {

class MatmulId {
  public:
    static constexpr const char *kName = "matmul_id.cuda", *kOp = TSR_OP_MATMUL_ID;
    static const cuda::Module& module(const Build& build) noexcept { return *build.quantise; }

    static void plan(const tsr_node& node, const tsr_device_info& device, const cuda::Module& module,
                     tsr_kernel_plan& plan) {
        cpu::Work work;
        cpu::check_matmul_id(node, plan, work);
        if (!plan.supported) return;
        plan.supported = 0;
        const tsr_tensor &x = *node.inputs[0], &weight = *node.inputs[1], &ids = *node.inputs[2];
        constexpr int64_t kMaximum = INT32_MAX / 64;
        if (weight.range != TSR_RANGE_FIXED || x.dims[0] > kMaximum || weight.dims[1] > kMaximum ||
            weight.dims[2] > INT32_MAX || ids.dims[0] > int64_t{kMaximumGrid}) {
            return sdk::refuse(plan,
                               "matmul_id: required %lld x %lld, %lld of %lld experts; supported: fixed, up to %lld, "
                               "%u; missing: larger",
                               static_cast<long long>(x.dims[0]), static_cast<long long>(weight.dims[1]),
                               static_cast<long long>(ids.dims[0]), static_cast<long long>(weight.dims[2]),
                               static_cast<long long>(kMaximum), kMaximumGrid);
        }
        const Card card = card_of(module, device);
        const uint32_t image = card.instructions;
        if (!MapExperts::takes(weight.dims[2])) {
            return sdk::refuse(plan, "matmul_id: required %lld experts; supported: up to %d; missing: more",
                               static_cast<long long>(weight.dims[2]), cuda_kernels::kMapExperts);
        }
        const int64_t rows = maximum_rows(x), stored = x.rank == 3 ? x.dims[1] : 1;
        plan.supported = 1;
        const uint64_t bytes = activation_bytes(weight.type, x.dims[0], image);
        const uint64_t few = bytes * static_cast<uint64_t>(std::min<int64_t>(rows, kFewRowsById) * stored);
        const uint64_t many =
            rows_at(ids, weight) + tile_row_bytes(weight.type, x.dims[0], card) * static_cast<uint64_t>(rows * stored);
        plan.workspace_bytes = rows > kFewRowsById ? std::max(few, many) : few;
        const bool int8 = bytes > 0 && image >= kDp4a;
        std::snprintf(plan.reason, sizeof plan.reason, "%s; up to %d rows a warp an output, more in tiles by expert%s",
                      int8 ? "activations in int8" : "sums in f32", int{kFewRowsById},
                      int8 ? image >= kTensorCores ? ", tensor cores" : ", dp4a" : "");
        // Tiles of an expert are not full: half a tile of 64 rows more, on average.
        const double places = static_cast<double>(rows * ids.dims[0]), experts = static_cast<double>(weight.dims[2]);
        write_product_estimate(work, weight.type, bytes > 0 ? 3 : 2, device, card, rows, kFewRowsById,
                               places / (places + 32 * std::min(experts, places)), plan, true);
    }

    MatmulId(const tsr_node& node, const tsr_device_info& info, tsr_device& device, const Build& build)
        : node_(node), few_rows_(device, info, build, *node.inputs[1], FewRows::Kind::kById) {
        if (maximum_rows(*node.inputs[0]) <= kFewRowsById) return;
        map_.emplace(device, build);
        tiles_.emplace(device, info, build, node.inputs[1]->type);
        if (tiles_->converts()) convert_.emplace(device, build, tiles_->layout());
    }

    void enqueue(const tsr_launch& launch) const {
        const tsr_tensor &x = *node_.inputs[0], &weight = *node_.inputs[1], &ids = *node_.inputs[2];
        const tsr_tensor& y = *node_.outputs[0];
        cuda_kernels::MatmulId m{};
        cuda_kernels::Matmul& a = m.matmul;
        a.x = operand_address(node_, launch, 0);
        a.weight = operand_address(node_, launch, 1);
        a.y = operand_address(node_, launch, 3);
        a.activations = launch.workspace;
        a.rows = rows_of(x, launch);
        a.x_row = x.strides[x.rank - 1];
        a.batch = x.rank == 3 ? static_cast<int32_t>(x.dims[1]) : 1;
        a.x_batch = x.rank == 3 ? x.strides[1] : 0;
        a.weight_row = weight.strides[1];
        a.weight_batch = weight.strides[2];
        a.y_batch = y.strides[1];
        a.y_row = y.strides[2];
        a.k = static_cast<int32_t>(x.dims[0]);
        a.n = static_cast<int32_t>(y.dims[0]);
        m.ids = operand_address(node_, launch, 2);
        m.ids_slot = ids.strides[0];
        m.ids_row = ids.strides[1];
        m.experts = static_cast<int32_t>(weight.dims[2]);
        const uint32_t rows = row_bound(x, launch), slots = static_cast<uint32_t>(ids.dims[0]);
        if (rows <= kFewRowsById) {
            few_rows_.multiply_by_id(launch.queue, m, rows, slots);
        } else {
            multiply_in_tiles(launch, m, rows, slots);
        }
    }

  private:
    static uint64_t rows_at(const tsr_tensor& ids, const tsr_tensor& weight) noexcept {
        return MapExperts::bytes(ids.dims[0] * ids.dims[1], weight.dims[2]);
    }

    void multiply_in_tiles(const tsr_launch& launch, cuda_kernels::MatmulId& m, uint32_t rows, uint32_t slots) const {
        cuda_kernels::Matmul& matmul = m.matmul;
        const int64_t places = int64_t{rows} * slots;
        const int tile = tiles_->tile_rows(static_cast<double>(places) / m.experts);
        cuda_kernels::ExpertMap map{};
        map.ids = m.ids;
        map.rows = matmul.rows;
        map.ids_slot = m.ids_slot;
        map.ids_row = m.ids_row;
        map.slots = static_cast<int32_t>(slots);
        map.experts = m.experts;
        map.tile_rows = tile;
        map_->launch(launch.queue, map, launch.workspace, places);

        cuda_kernels::Tiles a{};
        a.x = matmul.x;
        a.x_row = matmul.x_row;
        a.x_slot = matmul.x_batch;
        a.x_numbering = cuda_kernels::kAbsolute;
        if (convert_) {
            matmul.activations = static_cast<char*>(launch.workspace) + rows_at(*node_.inputs[2], *node_.inputs[1]);
            convert_->launch(launch.queue, rows_to_convert(matmul), rows * static_cast<uint32_t>(matmul.batch));
            const int64_t row = row_bytes(tiles_->layout(), matmul.k);
            a.x = matmul.activations;
            a.x_row = row * matmul.batch;
            a.x_slot = matmul.batch > 1 ? row : 0;
            a.x_numbering = cuda_kernels::kRelative;
        }
        a.weights[0] = matmul.weight;
        a.y = matmul.y;
        a.tiles = map.tiles;
        a.places = map.places;
        a.rows = matmul.rows;
        a.weight_row = matmul.weight_row;
        a.weight_matrix = matmul.weight_batch;
        a.y_row = matmul.y_row;
        a.y_slot = matmul.y_batch;
        a.k = matmul.k;
        a.n = matmul.n;
        a.slots = map.slots;
        a.experts = m.experts;
        a.y_numbering = cuda_kernels::kAbsolute;
        a.constants = 1;
        tiles_->multiply(launch.queue, a, tile,
                         static_cast<uint32_t>(MapExperts::maximum_tiles(places, m.experts, tile)));
    }

    const tsr_node& node_;
    FewRows few_rows_;
    std::optional<MapExperts> map_;
    std::optional<TileProduct> tiles_;
    std::optional<ConvertRows> convert_;
};

}  // namespace

void set_matmul_id(tsr_kernel& kernel) noexcept {
    set_kernel<MatmulId>(kernel);
}

}  // namespace tessera::cuda_ops
