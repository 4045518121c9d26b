// How to sample, as a file recommends it.
#pragma once

#include "core/gguf/metadata.hpp"
#include "core/setup/settings.hpp"

#include <string>
#include <vector>

namespace tessera {

// Takes what the file says (general.sampling.*) of what the user has not set, and forbids the tokens that it names in
// tokenizer.ggml.suppress_tokens, of `vocabulary` in all. Returns lines for people: what was taken, and what was not,
// with the reason.
std::vector<std::string> take_file_sampling(const gguf::Metadata& metadata, size_t vocabulary,
                                            const ModelSettings& settings, session::SamplingParameters& sampling);

}  // namespace tessera
