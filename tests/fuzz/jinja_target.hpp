// What the fuzzer and the replay test do with one input.
#pragma once

#include <string_view>

namespace tessera::fuzz {

// The first byte chooses the options of a conversation, the rest is a template's program, which is run on fixed
// conversations. An Error is a fine answer; std::logic_error says that a promise of the interpreter was broken.
void run_jinja(std::string_view input);

}  // namespace tessera::fuzz
