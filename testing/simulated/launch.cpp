#include "launch.hpp"

#include <tessera/cpp/abi.hpp>
#include <tessera/cpu/checks/attention.hpp>
#include <tessera/cpu/formats.hpp>
#include <tessera/extensions/launch_pages.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

namespace tessera::simulated {
namespace {

using sdk::Failure;

constexpr const char* kRangeNames[] = {"rows", "prompt rows", "generation rows", "output rows"};
static_assert(std::size(kRangeNames) == TSR_RANGE_COUNT);

// Bytes from the start of the storage to past the last element that the node can reach.
uint64_t reach_of(const tsr_tensor& tensor) noexcept {
    const cpu::FormatSize size = cpu::format_size(tensor.type);
    const int64_t row = size.elements == 0
                            ? tensor.dims[0] * tensor.strides[0]
                            : static_cast<int64_t>(cpu::format_bytes(tensor.type, static_cast<size_t>(tensor.dims[0])));
    int64_t reach = tensor.offset + row;
    for (uint32_t i = 1; i < tensor.rank; ++i) reach += (tensor.dims[i] - 1) * tensor.strides[i];
    return reach > 0 ? static_cast<uint64_t>(reach) : 0;
}

std::string node_name(const tsr_node& node) {
    return std::string(node.op) + " " + (node.name ? node.name : "");
}

std::string operand_name(const tsr_node& node, uint32_t index) {
    const tsr_tensor& tensor = sdk::operand(node, index);
    std::string name = node_name(node) + ", ";
    name += index < node.input_count ? "input " + std::to_string(index)
                                     : "output " + std::to_string(index - node.input_count);
    return tensor.name && *tensor.name ? name + " (" + tensor.name + ")" : name;
}

class Launch : public Work {
  public:
    Launch(const State& state, const tsr_launch& launch);

    void run() const override;
    const char* op() const noexcept override { return state_.op.name; }
    const char* node() const noexcept override { return state_.node.name ? state_.node.name : ""; }

    std::vector<Held*> held() const;

  private:
    void check_ranges(const tsr_range* ranges) const;
    void check_tokens(const tsr_range* ranges) const;

    const State& state_;
    std::array<Place, TSR_MAX_OPERANDS> operands_{};
    Place ranges_, workspace_;
    std::array<int32_t, TSR_RANGE_COUNT> row_bounds_;
    int64_t token_bound_;
    std::optional<std::array<int64_t, TSR_RANGE_COUNT>> page_bounds_;
};

Launch::Launch(const State& state, const tsr_launch& launch) : state_(state), token_bound_(launch.token_bound) {
    const tsr_node& node = state.node;
    const auto part = [&](const char* what) { return [&node, what] { return node_name(node) + ", " + what; }; };
    if (!launch.data || !launch.row_bounds)
        throw Failure(TSR_INVALID_ARGUMENT, state.device.id() + ": " + node_name(node) + ": no data or no row bounds");
    for (uint32_t i = 0; i < node.input_count + node.output_count; ++i) {
        const tsr_tensor& tensor = sdk::operand(node, i);
        if (!sdk::present(&tensor)) continue;
        const PackedWeight& packed = state.canonical.packed(i);
        const char* data = static_cast<const char*>(launch.data[i]) + packed.offset;
        const uint64_t bytes = packed.layout ? packed.bytes : reach_of(tensor);
        operands_[i] = state.device.resolve(data, bytes, [&] { return operand_name(node, i); });
    }
    ranges_ = state.device.resolve(launch.ranges, sizeof(tsr_range) * TSR_RANGE_COUNT, part("ranges"));
    if (state.workspace_bytes > 0) {
        workspace_ = state.device.resolve(launch.workspace, state.workspace_bytes, part("workspace"));
        if (reinterpret_cast<uintptr_t>(launch.workspace) % 64 != 0) {
            throw Failure(TSR_INVALID_ARGUMENT, state.device.id() + ": " + node_name(node) +
                                                    ", workspace: expected an address aligned to 64 bytes");
        }
    }
    std::copy_n(launch.row_bounds, TSR_RANGE_COUNT, row_bounds_.begin());
    const tsr_chain* const pages = sdk::find_extension(launch.next, TSR_LAUNCH_PAGES, sizeof(tsr_launch_pages));
    if (!pages) return;
    page_bounds_.emplace();
    std::copy_n(reinterpret_cast<const tsr_launch_pages*>(pages)->bounds, TSR_RANGE_COUNT, page_bounds_->begin());
}

std::vector<Held*> Launch::held() const {
    std::vector<Held*> all{const_cast<State*>(&state_), ranges_.allocation, workspace_.allocation};
    for (const Place& place : operands_) all.push_back(place.allocation);
    return all;
}

// A GPU's kernel is launched for the rows that the bounds allow: the others it would leave as they are, without a word.
void Launch::check_ranges(const tsr_range* ranges) const {
    const auto wrong = [&](const std::string& expected, uint32_t i) {
        throw Failure(TSR_INVALID_ARGUMENT, node_name(state_.node) + ": " + kRangeNames[i] + ": expected " + expected +
                                                "; found [" + std::to_string(ranges[i].begin) + ", " +
                                                std::to_string(ranges[i].end) + ")");
    };
    for (uint32_t i = 0; i < TSR_RANGE_COUNT; ++i) {
        const int64_t rows = int64_t{ranges[i].end} - ranges[i].begin;
        if (ranges[i].begin < 0 || rows < 0) wrong("0 <= begin <= end", i);
        if (rows > row_bounds_[i])
            wrong("no more rows than the launch's row bound, which is " + std::to_string(row_bounds_[i]), i);
    }
    for (uint32_t i = 0; i < state_.node.input_count + state_.node.output_count; ++i) {
        const tsr_tensor& tensor = sdk::operand(state_.node, i);
        if (!sdk::present(&tensor) || tensor.range == TSR_RANGE_FIXED) continue;
        const int64_t maximum = tensor.dims[tensor.rank - 1];
        if (ranges[tensor.range].end > maximum)
            wrong("rows of " + operand_name(state_.node, i) + ", of which there are " + std::to_string(maximum),
                  static_cast<uint32_t>(tensor.range));
    }
}

// The same of cached tokens.
void Launch::check_tokens(const tsr_range* ranges) const {
    const std::string_view op = state_.op.name;
    if (op != TSR_OP_FLASH_ATTENTION && op != TSR_OP_TILED_ATTENTION) return;
    const tsr_tensor& positions = *state_.node.inputs[cpu::kPositions];
    const tsr_range rows = positions.range == TSR_RANGE_FIXED ? tsr_range{0, static_cast<int32_t>(positions.dims[0])}
                                                              : ranges[positions.range];
    const char* first = operands_[cpu::kPositions].memory + positions.offset;
    const tsr_tensor& sequences = *state_.node.inputs[cpu::kSequences];
    const char* first_sequence = operands_[cpu::kSequences].memory + sequences.offset;
    std::map<int32_t, int64_t> held;  // pages by sequence
    for (int64_t row = rows.begin; row < rows.end; ++row) {
        const int32_t position = *reinterpret_cast<const int32_t*>(first + row * positions.strides[0]);
        const int32_t sequence = *reinterpret_cast<const int32_t*>(first_sequence + row * sequences.strides[0]);
        int64_t& pages = held[sequence];
        pages = std::max<int64_t>(pages, position / TSR_PAGE_TOKENS + 1);
        if (position < token_bound_) continue;
        throw Failure(TSR_INVALID_ARGUMENT, node_name(state_.node) + ": row " + std::to_string(row) +
                                                ": expected a position below the launch's token bound, which is " +
                                                std::to_string(token_bound_) + "; found " + std::to_string(position));
    }
    if (!page_bounds_ || positions.range == TSR_RANGE_FIXED) return;
    int64_t pages = 0;
    for (const auto& [sequence, count] : held) pages += count;
    const int64_t bound = (*page_bounds_)[positions.range];
    if (pages <= bound) return;
    throw Failure(TSR_INVALID_ARGUMENT, node_name(state_.node) + ": " + kRangeNames[positions.range] +
                                            ": expected no more pages than the launch's bound, which is " +
                                            std::to_string(bound) + "; found " + std::to_string(pages));
}

void Launch::run() const {
    std::array<tsr_range, TSR_RANGE_COUNT> ranges;
    std::copy_n(reinterpret_cast<const tsr_range*>(ranges_.memory), TSR_RANGE_COUNT, ranges.begin());
    check_ranges(ranges.data());
    check_tokens(ranges.data());
    std::array<void*, TSR_MAX_OPERANDS> data{};
    std::ranges::transform(operands_, data.begin(), [](const Place& place) { return place.memory; });
    std::vector<std::vector<char>> rows;
    for (uint32_t i = 0; i < state_.node.input_count; ++i) {
        const PackedWeight& packed = state_.canonical.packed(i);
        if (!packed.layout) continue;
        try {
            rows.push_back(unpacked_rows(packed, state_.node.inputs[i]->dims[0], operands_[i].memory));
        } catch (const Failure& failure) {
            throw Failure(failure.code(), operand_name(state_.node, i) + ": " + failure.what());
        }
        data[i] = rows.back().data();
    }
    tsr_run run{};
    run.struct_size = sizeof run;
    run.data = data.data();
    run.ranges = ranges.data();
    run.workspace = workspace_.memory;
    run.workers = 1;
    state_.op.run(state_.node, 1, run);
}

}  // namespace

CanonicalNode::CanonicalNode(const tsr_node& node) : node_(node) {
    if (node.input_count + node.output_count > TSR_MAX_OPERANDS)
        throw Failure(TSR_UNSUPPORTED, node_name(node) + ": more operands than the ABI has room for");
    for (uint32_t i = 0; i < node.input_count; ++i) {
        pointers_[i] = node.inputs[i];
        if (!sdk::present(node.inputs[i]) || sdk::canonical(*node.inputs[i])) continue;
        packed_[i] = PackedWeight::of(*node.inputs[i]);
        tensors_[i] = *node.inputs[i];
        tensors_[i].layout = "";
        tensors_[i].offset = 0;
        pointers_[i] = &tensors_[i];
    }
    node_.inputs = pointers_.data();
}

void enqueue_launch(State& state, const tsr_launch& launch) {
    Queue& queue = state.device.queue(launch.queue);
    auto work = std::make_unique<Launch>(state, launch);
    std::vector<Held*> held = work->held();
    state.device.launch(queue, std::move(work), std::move(held));
}

}  // namespace tessera::simulated
