// What the fuzzer and the replay test do with one input.
#pragma once

#include <cstddef>
#include <span>

namespace tessera::fuzz {

// Reads `input` as a GGUF file, as the start of a sparse one, as two parts of a split one, as an override and as the
// name of a part, and uses all that comes out. An Error is a fine answer; std::logic_error says that a promise of the
// reader or writer was broken.
void run_gguf(std::span<const std::byte> input);

}  // namespace tessera::fuzz
