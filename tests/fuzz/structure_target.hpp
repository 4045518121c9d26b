// What the fuzzer and the replay test do with one input.
#pragma once

#include <string_view>

namespace tessera::fuzz {

// The first byte chooses what the rest is: a JSON schema, a grammar of llama.cpp's, a pattern, or the schema of a
// tool's parameters in one of the formats of calls. An Error is a fine answer; std::logic_error says that a promise was
// broken.
void run_structure(std::string_view input);

}  // namespace tessera::fuzz
