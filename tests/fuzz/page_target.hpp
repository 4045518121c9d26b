// What the fuzzer and the replay test do with one input.
#pragma once

#include <cstddef>
#include <span>

namespace tessera::fuzz {

// Reads `input` as the record of a kept page, as what pages are of, as a path and as a saved slot, as it is and with
// its checksums put right, and uses all that comes out. An Error is a fine answer; std::logic_error says that a promise
// of a reader was broken.
void run_page(std::span<const std::byte> input);

}  // namespace tessera::fuzz
