// Models whose weights are computed from a seed (README.md beside this file); testing/goldens/record_goldens/seeded.py
// computes the same.
#pragma once

#include "core/gguf/reader.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::test {

// The first `count` numbers of the stream that seed and name choose: integers of -131,070 to 131,070, about normal.
std::vector<int32_t> seeded_units(uint32_t seed, std::string_view name, size_t count);

// Writes the whole model that a file NAME.seeded.gguf describes. Throws Error(TSR_CORRUPT_DATA) if it is described
// wrongly, or if the weights are not those that were recorded; then nothing is written.
void write_seeded_model(const gguf::GgufFile& description, const std::filesystem::path& to);

}  // namespace tessera::test
