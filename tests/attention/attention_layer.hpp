// Runs one "mla_attention" node through the core: planned, loaded, and taken in steps over prompts and generation of
// several sequences whose pages are interleaved.
#pragma once

#include "attention_data.hpp"
#include "core/hardware/hardware.hpp"
#include "core/registry/registry.hpp"
#include "core/run/team.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::test {

struct AttentionCase {
    std::string variant = "0";  // of -mla
    bool flash = true;          // -fa
    tsr_type cache = TSR_TYPE_F32;
    uint64_t scratch_bytes = 512ull << 20;  // -amb
    bool hadamard = false;                  // -khad -vhad
};

// An attention node of the plan.
struct AttentionNode {
    std::string name;    // "attn.attend_absorbed"
    std::string op;      // "flash_attention", "tiled_attention"
    std::string plugin;  // whose kernel it has
    uint64_t workspace_bytes = 0;
};

struct AttentionResult {
    double error = 0;    // relative L2 over all rows; not-a-number if one was
    double seconds = 0;  // of the steps
    std::string lowering;
    std::vector<AttentionNode> nodes;
    std::vector<std::string> notes;
};

// Kernels of one backend: what a machine has whose best plugin it is.
struct AttentionBackend {
    std::string name;  // the plugin
    const Registry* registry;
    const Hardware* hardware;
    Team* team;
};

// The first `sequences` of `data`. Every page is poisoned beforehand.
AttentionResult run_attention(AttentionData& data, size_t sequences, const AttentionCase& asked,
                              const AttentionBackend& backend);

// What the error may be with a cache of this type.
double attention_limit(tsr_type cache);

// Tokens of the sequences of a test: one of `tokens`, and two shorter ones.
std::vector<int32_t> attention_lengths(int32_t tokens);

// The lowering that is to be chosen, and the op of each attention node: "3" is about flash attention, and without it 2
// is its equal.
std::string lowering_of(const AttentionCase& asked);
std::string op_of(const AttentionCase& asked, const AttentionNode& node);

}  // namespace tessera::test
