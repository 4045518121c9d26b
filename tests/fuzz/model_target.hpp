// The target of the model fuzzer, shared with the replay test.
#pragma once

#include <string_view>

namespace tessera::fuzz {

// A model file as text, a line for each key ("KEY KIND VALUE...", kinds: i integer, f number, b boolean, s text, and I,
// F, B, S arrays of them) and tensor ("+NAME TYPE DIM..."); lines that are neither are skipped. Whether the model's
// graph was built. Throws std::logic_error if reading it breaks a promise.
bool run_model(std::string_view input);

}  // namespace tessera::fuzz
