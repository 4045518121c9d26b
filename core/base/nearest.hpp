// The name that was probably meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tessera {

// The one of `names` with the smallest edit distance to `word` (letters inserted, omitted, replaced or swapped); empty
// if none is near.
std::string_view nearest_name(std::string_view word, std::span<const std::string_view> names);

// " (did you mean 'threads'?)", or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> names);

}  // namespace tessera
