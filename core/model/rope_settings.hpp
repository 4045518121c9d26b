// What a user sets of rotary position embeddings in place of what the file says.
#pragma once

#include "core/gguf/metadata.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

struct RopeSettings {
    std::optional<std::string> scaling;  // "none", "linear" or "yarn"
    std::optional<float> base;
    std::optional<float> factor;              // by which positions are divided
    std::optional<int64_t> original_context;  // of YaRN, as all below
    std::optional<float> ext_factor;
    std::optional<float> attn_factor;  // times what the file says
    std::optional<float> beta_fast, beta_slow;
};

// The same as keys of the file's architecture. Throws Error(TSR_INVALID_ARGUMENT) that names the setting for a value
// that would have no effect, or another than in llama.cpp, with the scaling that the file or the user chose.
std::vector<gguf::Override> rope_overrides(const RopeSettings& settings, const gguf::Metadata& metadata);

}  // namespace tessera
