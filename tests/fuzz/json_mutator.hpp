// Changes of JSON texts that keep them JSON, for fuzzers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tessera::fuzz {

// Changes the JSON text in the first `size` bytes of `data` and returns its new size; 0 if it is not JSON or has no
// room for the change. Members that are added have one of these names, and some texts are one of these.
size_t mutate_json(std::span<char> data, size_t size, uint32_t seed, std::span<const std::string_view> names,
                   std::span<const std::string_view> texts);

}  // namespace tessera::fuzz
