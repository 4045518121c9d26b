// What the fuzzer and the replay test do with one input.
#pragma once

#include <string_view>

namespace tessera::fuzz {

// `input` is records parted by the byte 0x1E: settings, a byte each (model, pre-tokenizer, flags, ids, most tokens);
// tokens, parted by 0x1F; types, a byte each; scores, a byte each; merges, parted by 0x1F; a text. A vocabulary is made
// of them as of a file and the text is tokenized; the pre-tokenizer cuts it, and is parsed from it. An Error is a fine
// answer; std::logic_error says that a promise was broken.
void run_tokenizer(std::string_view input);

}  // namespace tessera::fuzz
