// gated_ffn and moe_ffn: of few rows in two kernels (kernels/ffn_few.hpp), of several without experts as products of
// few rows, of many in tiles, grouped by expert on the device.
#include "ffn.hpp"

#include "../estimate.hpp"
#include "../kernel_of.hpp"
#include "../launches.hpp"
#include "../matmul/few_rows.hpp"
#include "../matmul/tile_product.hpp"

#include <tessera/cpp/node.hpp>
#include <tessera/cpu/checks/ffn.hpp>
#include <tessera/ops.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <string>

namespace tessera::cuda_ops {
namespace {

using namespace cuda_kernels;

// The operands of either op.
struct Operands {
    const tsr_node& node;
    bool routed;
    uint32_t first;  // index of gate
    const tsr_tensor &x, &gate, &up, &down, &y;
    int64_t rows, slots, experts, k, f, n;

    explicit Operands(const tsr_node& of) noexcept
        : node(of),
          routed(cpu::is_routed(of)),
          first(cpu::first_matrix(of)),
          x(*of.inputs[0]),
          gate(*of.inputs[first]),
          up(*of.inputs[first + 1]),
          down(*of.inputs[first + 2]),
          y(*of.outputs[0]),
          rows(maximum_rows(x)),
          slots(routed ? of.inputs[1]->dims[0] : 1),
          experts(routed ? gate.dims[2] : 1),
          k(x.dims[0]),
          f(gate.dims[1]),
          n(down.dims[1]) {}
};

void check_ffn(const tsr_node& node, tsr_kernel_plan& plan) noexcept {
    cpu::Check check(node, plan);
    if (!cpu::check_ffn(check, node)) return;
    const uint32_t first = cpu::first_matrix(node);
    for (uint32_t i = first; i < first + 3 && check; ++i) {
        if (node.inputs[i]->range != TSR_RANGE_FIXED)
            check.no("%s: required bounded weights; supported: fixed ones", node.op);
    }
    if (!check) return;
    const Operands o(node);
    constexpr int64_t kMaximum = int64_t{kMaximumGrid} * 32;
    if (o.k > kMaximum || o.f > kMaximum || o.n > kMaximum || o.slots > int64_t{kMaximumGrid} ||
        o.rows * o.slots > INT32_MAX || !MapExperts::takes(o.experts)) {
        check.no(
            "%s: required %lld x %lld x %lld, %lld of %lld experts; supported: up to %lld, %u of %d; missing: larger",
            node.op, static_cast<long long>(o.k), static_cast<long long>(o.f), static_cast<long long>(o.n),
            static_cast<long long>(o.slots), static_cast<long long>(o.experts), static_cast<long long>(kMaximum),
            kMaximumGrid, kMapExperts);
    }
    // Tiles take gate and up in turns.
    if (o.gate.type != o.up.type || o.gate.strides[1] != o.up.strides[1] || o.gate.strides[2] != o.up.strides[2]) {
        check.no(
            "%s: required gate of %s and up of %s; supported: one type, with the same strides; missing: that (its "
            "parts are)",
            node.op, cpu::format_name(o.gate.type), cpu::format_name(o.up.type));
    }
    if (check) plan.supported = 1;
}

uint64_t aligned(int64_t bytes) noexcept {
    return static_cast<uint64_t>((bytes + 255) / 256 * 256);
}

// What lies where in the workspace.
struct Layout {
    uint64_t few_hidden = 0, few_bytes = 0;  // activations of x, then those of hidden
    // Of products of few rows: activations of x, then gate, then up, then activations of hidden.
    int64_t several_rows = 0;  // up to which they are taken; 0: for none
    uint64_t gate = 0, up = 0, several_hidden = 0, several_bytes = 0;
    uint64_t x = 0, hidden = 0, converted_hidden = 0,
             bytes = 0;  // after the map; hidden is where outputs of experts go, too

    static bool few_kernels(const Operands& o) noexcept {
        return family_of(o.gate.type) != Family::kFloat && family_of(o.down.type) != Family::kFloat;
    }
    // Up to so many rows take the kernels of few rows: experts of several rows repeat, and others are read once for
    // all rows by other kernels.
    static int64_t few_rows(const Operands& o) noexcept { return few_kernels(o) ? o.routed ? kFewRowsById : 1 : 0; }

    Layout(const Operands& o, const Card& card, const tsr_device_info& device) noexcept {
        const uint32_t image = card.instructions;
        if (few_kernels(o) && !o.routed && image >= kTensorCores) {
            // Where down has too few outputs for tiles, they take longest for all of it.
            several_rows = few_rows_limit(o.down.type, o.n, device.processors, image);
            const int64_t rows = std::min(o.rows, several_rows);
            gate = aligned(few_rows_bytes(o.gate.type, o.k, rows, image));
            up = gate + aligned(4 * rows * o.f);
            several_hidden = up + aligned(4 * rows * o.f);
            several_bytes = several_hidden + aligned(few_rows_bytes(o.down.type, o.f, rows, image));
        }
        if (few_kernels(o)) {
            const int64_t rows = std::min(o.rows, few_rows(o));
            few_hidden = aligned(rows * static_cast<int64_t>(activation_bytes(o.gate.type, o.k, image)));
            few_bytes =
                few_hidden + aligned(rows * o.slots * static_cast<int64_t>(activation_bytes(o.down.type, o.f, image)));
        }
        if (o.rows > std::max(few_rows(o), several_rows)) {
            const int64_t places = o.rows * o.slots;
            x = o.routed ? MapExperts::bytes(places, o.experts) : 0;
            hidden = x + aligned(o.rows * static_cast<int64_t>(tile_row_bytes(o.gate.type, o.k, card)));
            // Outputs of experts are written when hidden has been converted; where there are none, they are apart.
            const auto converted = static_cast<int64_t>(tile_row_bytes(o.down.type, o.f, card));
            const int64_t outputs = o.routed ? o.n : 0;
            converted_hidden = hidden + aligned(places * 4 * (converted > 0 ? std::max(o.f, outputs) : o.f));
            bytes = converted_hidden + aligned(places * (converted > 0 ? converted : 4 * outputs));
        }
        bytes = std::max({bytes, few_bytes, several_bytes});
    }
};

template <bool kRouted>
class Ffn {
  public:
    static constexpr const char* kName = kRouted ? "moe_ffn.cuda" : "gated_ffn.cuda";
    static constexpr const char* kOp = kRouted ? TSR_OP_MOE_FFN : TSR_OP_GATED_FFN;
    static const cuda::Module& module(const Build& build) noexcept { return *build.product_parts; }

    static void plan(const tsr_node& node, const tsr_device_info& device, const cuda::Module& module,
                     tsr_kernel_plan& plan) {
        check_ffn(node, plan);
        if (!plan.supported) return;
        const Operands o(node);
        const Card card = card_of(module, device);
        const uint32_t image = card.instructions;
        const Layout layout(o, card, device);
        plan.workspace_bytes = layout.bytes;
        std::snprintf(plan.reason, sizeof plan.reason, "%s and %s, fused; %s", cpu::format_name(o.gate.type),
                      cpu::format_name(o.down.type),
                      activation_bytes(o.gate.type, o.k, image) > 0 && image >= kDp4a
                          ? image >= kTensorCores ? "int8, tensor cores for many rows" : "int8 by dp4a"
                          : "f32");

        const auto rows = static_cast<double>(o.rows), slots = static_cast<double>(o.slots);
        const auto all_experts = static_cast<double>(o.experts);
        const double expert_bytes =
            (cpu::tensor_bytes(o.gate) + cpu::tensor_bytes(o.up) + cpu::tensor_bytes(o.down)) / all_experts;
        const double moved = 4 * static_cast<double>(o.k + o.n + 2 * o.slots * o.f);
        cpu::Work work;
        work.macs_one_row = slots * static_cast<double>(o.k * o.f * 2 + o.f * o.n);
        work.macs_all_rows = work.macs_one_row * rows;
        work.bytes_one_row = expert_bytes * std::min(slots, all_experts) + moved;
        work.bytes_all_rows = expert_bytes * std::min(all_experts, rows * slots) + moved * rows;
        // Tiles of an expert are not full: half a tile of 64 rows more, on average.
        const double places = rows * slots;
        const double filled = places / (places + 32 * std::min(all_experts, places));
        const int64_t limit = std::max(Layout::few_rows(o), layout.several_rows);
        write_product_estimate(work, o.gate.type,
                               Layout::few_kernels(o) ? 3
                               : o.routed             ? 4
                                                      : 2,
                               device, card, o.rows, limit, o.rows > limit ? filled : 1, plan, true);
    }

    Ffn(const tsr_node& node, const tsr_device_info& info, tsr_device& device, const Build& build)
        : o_(node), card_(card_with_code(build, info)), layout_(o_, card_, info) {
        if (Layout::few_kernels(o_)) {
            quantise_.emplace(device, *build.quantise, "quantise_activations");
            fetch(gate_up_, device, build, "gate_up_", o_.gate.type);
            fetch(down_, device, build, "down_", o_.down.type);
        }
        if (layout_.several_rows > 0 && o_.rows > Layout::few_rows(o_)) {
            several_gate_up_.emplace(device, info, build, o_.gate, FewRows::Kind::kRows);
            several_down_.emplace(device, info, build, o_.down, FewRows::Kind::kRows);
        }
        if (o_.rows <= std::max(Layout::few_rows(o_), layout_.several_rows)) return;
        gate_up_tiles_.emplace(device, info, build, o_.gate.type);
        down_tiles_.emplace(device, info, build, o_.down.type);
        if (gate_up_tiles_->converts()) convert_x_.emplace(device, build, gate_up_tiles_->layout());
        if (down_tiles_->converts()) convert_hidden_.emplace(device, build, down_tiles_->layout());
        if (!kRouted) return;
        map_.emplace(device, build);
        sum_.emplace(device, *build.product_parts, "sum_experts");
    }

    void enqueue(const tsr_launch& launch) const {
        const uint32_t rows = row_bound(o_.x, launch);
        if (rows == 0) return;
        if (int64_t{rows} <= Layout::few_rows(o_)) {
            multiply_few(launch, rows);
        } else if (int64_t{rows} <= layout_.several_rows) {
            multiply_several(launch, rows);
        } else {
            multiply_tiles(launch, rows);
        }
    }

  private:
    static Card card_with_code(const Build& build, const tsr_device_info& info) {
        const cuda::Module& module = *build.product_parts;
        const cuda::Image* image = cuda::find_image(module, info.compute_capability);
        if (!image) throw sdk::Failure(TSR_UNSUPPORTED, cuda::missing_image(module, info.compute_capability));
        return card_of(module, info);
    }
    static const cuda::Module& ffn_module(const Build& build, tsr_type type) noexcept {
        switch (family_of(type)) {
            case Family::kSmall:
                return *build.ffn_small;
            case Family::kK:
                return *build.ffn_k;
            case Family::kLevels:
                return *build.ffn_levels;
            default:
                return *build.ffn_codebook;
        }
    }

    void fetch(RowKernels& kernels, tsr_device& device, const Build& build, const char* what, tsr_type type) const {
        for (size_t r = 0; r < kRowReads; ++r) {
            const auto reads = static_cast<RowReads>(r);
            if (!reads_by(type, reads, card_.instructions)) continue;
            const std::string name = std::string(what) + cpu::format_name(type) + suffix_of(reads);
            kernels[r].emplace(device, ffn_module(build, type), name.c_str());
        }
    }

    char* input(const tsr_launch& launch, uint32_t index) const noexcept {
        return operand_address(o_.node, launch, index);
    }
    char* output(const tsr_launch& launch) const noexcept {
        return operand_address(o_.node, launch, o_.node.input_count);
    }

    Chosen chosen(const tsr_launch& launch) const noexcept {
        Chosen c{};
        c.slots = static_cast<int32_t>(o_.slots);
        c.experts = static_cast<int32_t>(o_.experts);
        if (kRouted) {
            c.ids = input(launch, 1);
            c.ids_slot = o_.node.inputs[1]->strides[0];
            c.ids_row = o_.node.inputs[1]->strides[1];
        }
        return c;
    }

    void multiply_few(const tsr_launch& launch, uint32_t rows) const {
        char* memory = static_cast<char*>(launch.workspace);
        Matmul convert{};
        convert.x = input(launch, 0);
        convert.x_row = o_.x.strides[1];
        convert.activations = memory;
        convert.activation_bytes = static_cast<int64_t>(activation_bytes(o_.gate.type, o_.k, card_.instructions));
        convert.rows = rows_of(o_.x, launch);
        convert.k = static_cast<int32_t>(o_.k);
        convert.batch = 1;
        convert.sums = has_sums(o_.gate.type) ? 1 : 0;
        convert.interleaved = interleaved(o_.gate.type) ? 1 : 0;
        quantise_->launch(launch.queue, {groups(o_.k / 32, kQuantiseWarps), rows, 1}, 32 * kQuantiseWarps, convert);

        GateUp g{};
        g.x = memory;
        g.gate = input(launch, o_.first);
        g.up = input(launch, o_.first + 1);
        g.hidden = memory + layout_.few_hidden;
        g.rows = convert.rows;
        g.chosen = chosen(launch);
        g.x_row = convert.activation_bytes;
        g.gate_row = o_.gate.strides[1];
        g.gate_expert = kRouted ? o_.gate.strides[2] : 0;
        g.up_row = o_.up.strides[1];
        g.up_expert = kRouted ? o_.up.strides[2] : 0;
        g.hidden_row = static_cast<int64_t>(activation_bytes(o_.down.type, o_.f, card_.instructions));
        g.k = convert.k;
        g.hidden_elements = static_cast<int32_t>(o_.f);
        g.sums = has_sums(o_.down.type) ? 1 : 0;
        g.interleaved = interleaved(o_.down.type) ? 1 : 0;
        const RowReads gate_reads =
            row_reads(o_.gate.type, o_.k,
                      address_of(g.gate) | address_of(g.up) |
                          static_cast<uint64_t>(g.gate_row | g.up_row | g.gate_expert | g.up_expert),
                      card_.instructions);
        kernel_reading(gate_up_, o_.gate.type, gate_reads)
            .launch(launch.queue, {static_cast<uint32_t>(o_.f / 32), rows, static_cast<uint32_t>(o_.slots)},
                    32 * kGateUpWarps, g);

        Down d{};
        d.hidden = g.hidden;
        d.weight = input(launch, o_.first + 2);
        d.y = output(launch);
        d.rows = g.rows;
        d.chosen = g.chosen;
        if (kRouted) {
            d.factors = input(launch, 2);
            d.factors_slot = o_.node.inputs[2]->strides[0];
            d.factors_row = o_.node.inputs[2]->strides[1];
        }
        d.hidden_row = g.hidden_row;
        d.weight_row = o_.down.strides[1];
        d.weight_expert = kRouted ? o_.down.strides[2] : 0;
        d.y_row = o_.y.strides[1];
        d.k = g.hidden_elements;
        d.n = static_cast<int32_t>(o_.n);
        const RowReads down_reads =
            row_reads(o_.down.type, o_.f, address_of(d.weight) | static_cast<uint64_t>(d.weight_row | d.weight_expert),
                      card_.instructions);
        kernel_reading(down_, o_.down.type, down_reads)
            .launch(launch.queue, {groups(o_.n, kDownWarps * ffn_outputs_of(o_.down.type, down_reads)), rows, 1},
                    32 * kDownWarps, d);
    }

    // Without experts.
    void multiply_several(const tsr_launch& launch, uint32_t rows) const {
        char* memory = static_cast<char*>(launch.workspace);
        Matmul m{};
        m.x = input(launch, 0);
        m.activations = memory;
        m.rows = rows_of(o_.x, launch);
        m.x_row = o_.x.strides[1];
        m.weight_row = o_.gate.strides[1];
        m.y_row = 4 * o_.f;
        m.k = static_cast<int32_t>(o_.k);
        m.n = static_cast<int32_t>(o_.f);
        m.batch = 1;
        m.relative = 1;
        several_gate_up_->convert(launch.queue, m, rows, several_gate_up_->order(rows));
        m.weight = input(launch, o_.first);
        m.y = memory + layout_.gate;
        several_gate_up_->multiply_converted(launch.queue, m, rows);
        m.weight = input(launch, o_.first + 1);
        m.y = memory + layout_.up;
        several_gate_up_->multiply_converted(launch.queue, m, rows);

        m.x = memory + layout_.gate;
        m.x_row = m.y_row;
        m.activations = memory + layout_.several_hidden;
        m.k = m.n;
        several_down_->convert_gated(launch.queue, m, memory + layout_.up, rows);
        m.weight = input(launch, o_.first + 2);
        m.weight_row = o_.down.strides[1];
        m.y = output(launch);
        m.y_row = o_.y.strides[1];
        m.n = static_cast<int32_t>(o_.n);
        m.relative = 0;
        several_down_->multiply_converted(launch.queue, m, rows);
    }

    void multiply_tiles(const tsr_launch& launch, uint32_t rows) const {
        char* memory = static_cast<char*>(launch.workspace);
        const int64_t places = int64_t{rows} * o_.slots;
        const int tile =
            std::min(gate_up_tiles_->tile_rows(static_cast<double>(places) / static_cast<double>(o_.experts)),
                     down_tiles_->tile_rows(static_cast<double>(places) / static_cast<double>(o_.experts)));
        Tiles a{};
        a.rows = rows_of(o_.x, launch);
        a.slots = static_cast<int32_t>(o_.slots);
        a.experts = static_cast<int32_t>(o_.experts);
        uint32_t tiles = (rows + static_cast<uint32_t>(tile) - 1) / static_cast<uint32_t>(tile);
        if (kRouted) {
            ExpertMap map{};
            const Chosen c = chosen(launch);
            map.ids = c.ids;
            map.rows = a.rows;
            map.ids_slot = c.ids_slot;
            map.ids_row = c.ids_row;
            map.slots = c.slots;
            map.experts = c.experts;
            map.tile_rows = tile;
            map_->launch(launch.queue, map, memory, places);
            a.tiles = map.tiles;
            a.places = map.places;
            tiles = static_cast<uint32_t>(MapExperts::maximum_tiles(places, o_.experts, tile));
        }

        a.x = input(launch, 0);
        a.x_row = o_.x.strides[1];
        a.x_numbering = kAbsolute;
        if (convert_x_) {
            Segments s{};
            s.x = a.x;
            s.segments = memory + layout_.x;
            s.rows = a.rows;
            s.x_row = a.x_row;
            s.k = static_cast<int32_t>(o_.k);
            s.slots = 1;
            convert_x_->launch(launch.queue, s, rows);
            a.x = s.segments;
            a.x_row = row_bytes(gate_up_tiles_->layout(), o_.k);
            a.x_numbering = kRelative;
        }
        a.weights[0] = input(launch, o_.first);
        a.weights[1] = input(launch, o_.first + 1);
        a.weight_row = o_.gate.strides[1];
        a.weight_matrix = kRouted ? o_.gate.strides[2] : 0;
        a.y = memory + layout_.hidden;
        a.y_row = 4 * o_.f;
        a.y_numbering = kRouted ? kByPosition : kRelative;
        a.k = static_cast<int32_t>(o_.k);
        a.n = static_cast<int32_t>(o_.f);
        a.paired = 1;
        gate_up_tiles_->multiply(launch.queue, a, tile, tiles);

        a.x = a.y;
        a.x_row = a.y_row;
        a.x_numbering = a.y_numbering;
        char* outputs = memory + layout_.converted_hidden;
        if (convert_hidden_) {
            Segments s{};
            s.x = a.x;
            s.segments = memory + layout_.converted_hidden;
            s.tiles = a.tiles;
            s.rows = a.rows;
            s.x_row = a.x_row;
            s.k = static_cast<int32_t>(o_.f);
            s.slots = 1;
            s.relative = 1;
            convert_hidden_->launch(launch.queue, s, static_cast<uint32_t>(places));
            a.x = s.segments;
            a.x_row = row_bytes(down_tiles_->layout(), o_.f);
            outputs = memory + layout_.hidden;
        }
        a.weights[0] = input(launch, o_.first + 2);
        a.weight_row = o_.down.strides[1];
        a.weight_matrix = kRouted ? o_.down.strides[2] : 0;
        a.y = kRouted ? outputs : output(launch);
        a.y_row = kRouted ? 4 * o_.n * o_.slots : o_.y.strides[1];
        a.y_slot = kRouted ? 4 * o_.n : 0;
        a.y_numbering = kRouted ? kRelative : kAbsolute;
        a.k = static_cast<int32_t>(o_.f);
        a.n = static_cast<int32_t>(o_.n);
        a.paired = 0;
        down_tiles_->multiply(launch.queue, a, tile, tiles);
        if (!kRouted) return;

        const Chosen c = chosen(launch);
        ExpertSum s{};
        s.x = outputs;
        s.weights = input(launch, 2);
        s.ids = c.ids;
        s.y = output(launch);
        s.rows = a.rows;
        s.x_row = a.y_row;
        s.x_slot = a.y_slot;
        s.weights_slot = o_.node.inputs[2]->strides[0];
        s.weights_row = o_.node.inputs[2]->strides[1];
        s.ids_slot = c.ids_slot;
        s.ids_row = c.ids_row;
        s.y_row = o_.y.strides[1];
        s.n = a.n;
        s.slots = c.slots;
        s.experts = c.experts;
        sum_->launch(launch.queue, {groups(o_.n, kSumElements), std::min(rows, kMaximumGrid), 1}, kSumThreads, s);
    }

    static uint64_t address_of(const void* pointer) noexcept { return reinterpret_cast<uint64_t>(pointer); }
    static uint32_t groups(int64_t count, int64_t of) noexcept { return static_cast<uint32_t>((count + of - 1) / of); }

    Operands o_;
    Card card_;
    Layout layout_;
    std::optional<cuda::Kernel> quantise_, sum_;
    RowKernels gate_up_, down_;  // by RowReads
    std::optional<FewRows> several_gate_up_, several_down_;
    std::optional<TileProduct> gate_up_tiles_, down_tiles_;
    std::optional<ConvertRows> convert_x_, convert_hidden_;
    std::optional<MapExperts> map_;
};

}  // namespace

void set_gated_ffn(tsr_kernel& kernel) noexcept {
    set_kernel<Ffn<false>>(kernel);
}
void set_moe_ffn(tsr_kernel& kernel) noexcept {
    set_kernel<Ffn<true>>(kernel);
}

}  // namespace tessera::cuda_ops
