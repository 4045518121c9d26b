// The plan: everything that is decided before a byte is allocated. The executor allocates exactly this; `tessera plan`
// prints it.
#pragma once

#include "core/graph/graph.hpp"
#include "core/hardware/hardware.hpp"
#include "core/plan/options.hpp"
#include "core/plan/step.hpp"
#include "core/registry/registry.hpp"

#include <tessera/kernel.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tessera {

// Bytes of rows that one thread loads at a time, unless a group of rows is larger.
inline constexpr uint64_t kLoadingPiece = 2ull << 20;

// Why something that could have been used is not.
struct Rejection {
    std::string candidate;
    std::string reason;
    bool is_possible = false;  // another one is better, by estimate
};

// The lowering chosen for a node of the model's graph, and why the others were rejected.
struct LoweringChoice {
    std::string node;
    std::string op;
    int layer = -1;
    DeviceIndex device = 0;
    std::string lowering;    // "3", "parts"; "kernel" if one kernel computes the whole node
    std::string plugin;      // that brings the lowering: its name; "core" for the core's own, "" for a kernel
    std::string summary;     // one line that says what the lowering does
    std::string family;      // of what it caches; "" for nothing
    bool asked = false;      // the user named it
    bool preferred = false;  // by plugins.prefer, although another one is faster by estimate, or was not tried
    std::vector<Rejection> rejected;
};

// Where rows are converted to a layout while they are loaded.
enum class PackedOn : uint8_t {
    kNowhere,  // the instance has the layout of its source
    kHost,     // tsr_layout.pack
    kDevice    // tsr_layout.enqueue_pack
};

// What memory an instance is in.
enum class Place : uint8_t {
    kArena,     // the device's arena for the storage's role
    kDeferred,  // the same, packed between steps; until then kernels read it in the mapped file, canonical
    kMapped,    // the mapped file
    kLoading,   // canonical, for init nodes: memory for loading, while one of them runs
    kStaging,   // of the host, through which a copy between two other devices goes
};

// A storage on a device. One storage has several where several devices or layouts need it.
struct Instance {
    StorageId storage = 0;
    DeviceIndex device = 0;
    std::string layout;   // "" canonical
    uint64_t bytes = 0;   // in that layout
    uint64_t offset = 0;  // in the arena
    Place place = Place::kArena;
    PackedOn packed_on = PackedOn::kNowhere;
    std::string why_copy;  // for a second instance of a weight on one device: what needed it
};

// What the kernel said of a node: see tsr_kernel_plan.
struct NodeEstimate {
    double seconds_one_row = 0, seconds_all_rows = 0;            // nothing cached
    double seconds_one_row_full = 0, seconds_all_rows_full = 0;  // max_tokens cached
    double bytes_one_row = 0, bytes_all_rows = 0;
};

struct PlannedNode {
    uint32_t node = 0;  // index in Plan::graph.nodes()
    DeviceIndex device = 0;
    const tsr_kernel* kernel = nullptr;
    std::string variant;  // of the kernel, for people: formats, vector unit
    NodeEstimate estimate;
    uint64_t workspace_bytes = 0;
    uint64_t minimum_scratch_bytes = 0;
    std::vector<InstanceId> operands;  // inputs, then outputs; 0: absent (Plan::instances[0] is none)
    std::vector<Rejection> rejected;   // kernels of the op that were not chosen
};

// Where the ranges of a step and each input of the graph lie in the block that is copied to a device before each step.
struct InputBlock {
    uint64_t bytes = 0;
    uint64_t ranges = 0;  // offset of tsr_range[TSR_RANGE_COUNT]
    // The largest input of as many rows as a step has, which comes last: what is behind those is not copied. 0: none.
    StorageId last = 0;
    uint64_t last_begin = 0;  // its offset
};

// Caches whose rows nodes find by one page table.
struct CacheGroup {
    StorageId page_table = 0;  // input of the graph, i32 [pages of one sequence, sequences]
    CacheRule rule;            // what they keep of a sequence
    uint32_t pages = 0;        // of each cache
    std::vector<StorageId> caches;
};

// A node of the host that steps of many rows compute on a card (core/plan/streaming.hpp).
struct StreamedNode {
    uint32_t node = 0;  // in Plan::nodes
    DeviceIndex device = 0;
    uint32_t rows_from = 0;  // steps with at least so many of its rows
    uint32_t experts_at_once = 0;
    uint64_t wave_bytes = 0;                 // of so many experts, canonical
    bool fused = false;                      // by one kernel of moe_ffn
    std::vector<const tsr_kernel*> kernels;  // of the nodes of the StreamedGraph
    uint64_t workspace_bytes = 0;            // of any of them
    NodeEstimate estimate;                   // of all experts on that device, without the copies
};

// Bytes asked of a device's allocator.
struct DeviceMemory {
    uint64_t weights = 0;
    uint64_t cache = 0;
    uint64_t activations = 0;  // with inputs, once for each step under way, and outputs
    uint64_t workspace = 0;
    uint64_t staging = 0;    // host: through which copies between two other devices go
    uint64_t streaming = 0;  // experts that are copied to a card for steps of many rows, on both sides
    // Through which weights are packed and derived; given back after loading.
    uint64_t loading = 0;
    uint64_t mapped = 0;  // file bytes used in place; not allocated
    // Devices: canonical rows that are packed there at once. They lie in activations or workspace, which steps use
    // later, where one of these is as large, else in `loading`.
    uint64_t packing = 0;
    // Devices: what init nodes have there beside weights; in activations or workspace, too.
    uint64_t deriving = 0;

    uint64_t allocated() const { return weights + cache + activations + workspace + staging + streaming + loading; }
};

// Bytes of the parts of the host's DeviceMemory::loading for one thread's rows, of which there is one for each thread,
// and, at its end, for rows that the host packs for devices.
struct LoadingBuffers {
    uint64_t piece = kLoadingPiece;
    uint64_t packed = 0;
};

struct Plan {
    explicit Plan(Graph lowered) : graph(std::move(lowered)) {}

    std::vector<const tsr_device_info*> devices;  // [0] is the CPU
    Graph graph;                                  // of primitives
    ScheduleOptions options;
    // Deques, so that even a large model's lists ask for no large block of memory that the plan would not count.
    // Run once at load: those of the CPU before weights are packed, those of devices when theirs are there. One node of
    // the graph may run on several devices.
    std::deque<PlannedNode> init_nodes;
    std::deque<PlannedNode> nodes;  // in order of execution
    std::vector<StreamedNode> streamed;
    Step step;
    LoadingBuffers loading;
    InputBlock input_block;  // instances of inputs have their offset in it
    std::deque<Instance> instances;
    std::vector<CacheGroup> cache_groups;
    std::vector<InstanceId> deferred;  // in the order in which they are packed
    std::vector<DeviceMemory> memory;  // a device each
    std::vector<LoweringChoice> lowerings;
    // A sequence that brings at least this many new rows is faster as a prompt, by estimate: see rows_of_a_prompt.
    uint32_t prompt_rows_from = 1;
    std::vector<std::string> rules;  // that place every weight as this plan does; empty if all is on the CPU
    std::vector<std::string> notes;  // for people: what was asked and could not be honoured, and what is done instead

    // Whether the host reads an output of the graph there.
    bool is_output(InstanceId id) const;
    // Of DeviceMemory::cache, what the caches of a group take on a device.
    uint64_t cache_bytes(const CacheGroup& group, DeviceIndex device) const;
};

using Devices = std::span<const tsr_device_info* const>;

}  // namespace tessera
