// What the fuzzer and the replay test do with one input.
#pragma once

#include <string_view>

namespace tessera::fuzz {

// The first byte chooses how an answer is parsed and a template, the second how the text is cut; the rest is an answer,
// a JSON value, a template's program, and a conversation (see reply_target.cpp). An Error of the writer is a fine
// answer; std::logic_error says that a promise of the parser or writer was broken.
void run_reply(std::string_view input);

}  // namespace tessera::fuzz
