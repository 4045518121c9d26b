// The parameters of rotary position embeddings in a file.
#pragma once

#include "core/model/description.hpp"
#include "core/model/model_file.hpp"

#include <cstdint>

namespace tessera {

struct ScaledRope {
    Rope rope;
    double factor = 1.0;             // of the scaling, 1 without
    double given_attn_factor = 1.0;  // what the file says; rope.attn_factor holds YaRN's own beside it
    double log_multiplier =
        0.0;  // of the temperature of DeepSeek's scores, where the file names another type than YaRN
};

// Reads ARCH.rope.*. `context`: the key context_length. Throws Error(TSR_CORRUPT_DATA) naming a key whose value makes
// no sense, TSR_UNSUPPORTED for a kind of scaling that is not known.
ScaledRope read_rope(ModelFile& model, RopeMode mode, int64_t dimensions, int64_t context);

}  // namespace tessera
