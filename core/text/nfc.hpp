// Unicode's Normalization Form C, as the tokenizers of some models have it before anything else (UAX #15).
#pragma once

#include <string>
#include <string_view>

namespace tessera::text {

// `text`, which must be valid UTF-8, in that form: itself if it is so already, else in `buffer`. Time is n log n,
// however many combining marks follow one another; memory is at most about 20 times that of the longest part without a
// character that never changes, such as those of ASCII.
std::string_view to_nfc(std::string_view text, std::string& buffer);

}  // namespace tessera::text
