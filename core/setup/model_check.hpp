// What is wrong with a model's file beyond its header: what would not be used of it, and values that are no numbers.
#pragma once

#include "core/gguf/reader.hpp"
#include "core/registry/registry.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tessera {

// What is said at load about what of the file is not used or was taken where it says nothing. Throws what build_model
// throws.
std::vector<std::string> file_notes(const gguf::GgufFile& file, const Registry& registry, bool allow_unused);

// NaN and infinity in one tensor.
struct BadValues {
    std::string tensor;
    uint64_t row = 0;     // the first bad one, counted over all matrices of the tensor
    uint64_t column = 0;  // in it
    float value = 0;
    uint64_t rows = 0;  // with such values
};
std::string bad_values_text(const BadValues& bad, const gguf::GgufFile& file);

std::string unreadable_text(const std::string& tensor);

// Says that the tensors at a file's end are zeros, as they are where a download reserved its size and was not
// completed: "FILE: the last 1.2 GiB of its tensors are zeros ...". Empty if they are not. Zeros that models have count
// for nothing: vectors, rows that pad a vocabulary, less than 4 KiB. Reads only the ends of files, of zeros at most
// about `most` bytes of each. Throws Error(TSR_IO_ERROR).
std::string zero_tail_text(const gguf::GgufFile& file, uint64_t most);

struct ValuesReport {
    std::vector<BadValues> bad;           // in the order of the file
    std::string zero_tail;                // as zero_tail_text() says
    std::vector<std::string> unreadable;  // tensors of types that neither the program nor a plugin can read
};

// Reads every weight, on `threads` threads. `progress(done, total)` is called with bytes by the calling thread; what it
// throws ends the check. Throws Error(TSR_IO_ERROR).
ValuesReport check_values(const gguf::GgufFile& file, const Registry& registry, uint32_t threads,
                          const std::function<void(uint64_t done, uint64_t total)>& progress = {});

// Throws Error(TSR_CORRUPT_DATA) naming the first tensor and row with such values, or a tail of zeros; as check_values
// otherwise. Returns a line for each tensor that could not be checked.
std::vector<std::string> require_values(const gguf::GgufFile& file, const Registry& registry, uint32_t threads);

}  // namespace tessera
