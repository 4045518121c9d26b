// Which keys about text a file may have.
#pragma once

#include "core/gguf/metadata.hpp"

#include <string>
#include <vector>

namespace tessera::text {

// Throws Error(TSR_UNSUPPORTED) for a key under "tokenizer." that changes tokens in a way that is not computed.
// Returns notes about those that are not used: further chat templates, and keys that are not known.
std::vector<std::string> check_vocabulary_keys(const gguf::Metadata& metadata);

}  // namespace tessera::text
