// The parameters of rotary position embeddings in a file.
#pragma once

#include "core/model/model_file.hpp"

#include <tessera/graph.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tessera {

struct RopeParameters {
    std::string mode;  // "norm" or "neox"
    double base = 10000.0;
    double freq_scale = 1.0;
    double ext_factor = 0.0;   // 1 with YaRN
    double attn_factor = 1.0;  // multiplies sine and cosine
    double beta_fast = 32.0;
    double beta_slow = 1.0;
    int64_t original_context = 0;
    double factor = 1.0;             // of the scaling, 1 without
    double given_attn_factor = 1.0;  // what the file says; attn_factor holds YaRN's own beside it
    double log_multiplier =
        0.0;  // of the temperature of DeepSeek's scores, where the file names another type than YaRN

    // As attributes of the op "rope", each name with the prefix.
    std::vector<tsr_attribute> attributes(const char* const (&names)[8]) const;
};

// Reads ARCH.rope.*. `context`: the key context_length. Throws Error(TSR_CORRUPT_DATA) naming a key whose value makes
// no sense, TSR_UNSUPPORTED for a kind of scaling that is not known.
RopeParameters read_rope(ModelFile& model, std::string mode, int64_t context);

// Attribute names of the op "rope", and with the prefix "rope_" for ops that hold a rope.
inline constexpr const char* kRopeNames[8] = {"mode",        "base",      "freq_scale", "ext_factor",
                                              "attn_factor", "beta_fast", "beta_slow",  "original_context"};
inline constexpr const char* kPrefixedRopeNames[8] = {
    "rope_mode",        "rope_base",      "rope_freq_scale", "rope_ext_factor",
    "rope_attn_factor", "rope_beta_fast", "rope_beta_slow",  "rope_original_context"};

}  // namespace tessera
