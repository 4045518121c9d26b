// What the fuzzer and the replay test do with one input.
#pragma once

#include <string_view>

namespace tessera::fuzz {

// The first byte chooses an endpoint, or a whole HTTP request; the second a chat template and a tokenizer. The rest is
// the body, or the request. It is read as the server does until the engine would get it. An ApiError, and an Error with
// a code that is the client's fault, are fine answers; std::logic_error says that a promise was broken.
void run_request(std::string_view input);

}  // namespace tessera::fuzz
