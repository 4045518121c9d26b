// What a caller asks of the schedule.
#pragma once

#include <tessera/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tessera {

struct TensorRule {
    std::string pattern;  // ECMAScript regular expression, searched for in the names of weights
    std::string device;   // id: "CPU", "CUDA0"
};

struct PlacementOptions {
    std::vector<TensorRule> rules;     // the first that matches a weight places it
    int gpu_layers = -1;               // this many of the last layers go to GPUs (-ngl); -1: as many as fit
    std::vector<double> tensor_split;  // shares of the layers of each device but the CPU (-ts); empty: by free memory
    int cpu_expert_layers = 0;   // routed experts of this many first layers stay on the CPU (--n-cpu-moe); -1: all
    bool caches_on_cpu = false;  // all, and attention with them (-nkvo)
    bool first_fit = false;      // any placement that fits will do: to ask whether one does
};

// When weights get the layouts that their kernels read fastest.
enum class PackWeights : uint8_t {
    kAtLoad,
    kBetweenSteps,  // the first steps read them as the file has them; the same bits come of it
    kNever,
};

// What a user asks of a plan, whatever the sizes of steps and caches are.
struct PlanOptions {
    tsr_type cache_type_k = TSR_TYPE_F16;
    tsr_type cache_type_v = TSR_TYPE_F16;
    bool hadamard_keys = false;    // cached keys, or the latent, in the basis of a Hadamard matrix (-khad)
    bool hadamard_values = false;  // cached values (-vhad)
    bool flash_attention = true;
    uint64_t scratch_bytes = 512ull << 20;  // what one attention node may use as scratch (-amb)
    PackWeights pack_weights = PackWeights::kAtLoad;
    bool map_weights = true;                   // weights that need no packing stay in the mapped file
    bool stream_experts = true;                // those of the host are copied to a card for steps of many rows
    uint32_t stream_rows_from = 0;             // steps with so many rows, whatever the estimates say; 0: as they say
    uint64_t stream_wave_bytes = 64ull << 20;  // of weights at once, but at least one expert's
    std::map<std::string, std::string> lowerings;  // abstract op -> the lowering to use if it is feasible
    PlacementOptions placement;
};

struct ScheduleOptions : PlanOptions {
    uint32_t max_rows = 512;     // rows of one step (-ub)
    uint32_t max_sequences = 1;  // in one step
    uint32_t max_tokens = 4096;  // cached tokens of one sequence
    uint32_t cache_pages = 64;   // pages of TSR_PAGE_TOKENS of caches that keep all tokens
};

}  // namespace tessera
