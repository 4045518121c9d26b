// Rows and their values from a file of recorded ones.
#pragma once

#include "core/gguf/reader.hpp"

#include <tessera/cpu/formats.hpp>

#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace tessera::tests {

template <typename T>
std::vector<T> recorded(const gguf::GgufFile& file, const std::string& name) {
    const gguf::TensorEntry& tensor = file.tensor(name);
    std::vector<T> values(tensor.bytes / sizeof(T));
    file.read(tensor, 0, std::as_writable_bytes(std::span(values)));
    return values;
}

// The place of the first value whose bits differ; -1: none.
inline ptrdiff_t first_difference(const std::vector<float>& a, const std::vector<float>& b) {
    if (a.size() != b.size()) return 0;
    for (size_t i = 0; i < a.size(); ++i) {
        if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0) return static_cast<ptrdiff_t>(i);
    }
    return -1;
}

// Every row of `rows`, each of `row_bytes`.
inline std::vector<float> decoded(tsr_type type, const std::vector<unsigned char>& rows, size_t row_bytes,
                                  size_t elements) {
    std::vector<float> values(rows.size() / row_bytes * elements);
    for (size_t r = 0; r < rows.size() / row_bytes; ++r) {
        cpu::decode_row(type, rows.data() + r * row_bytes, elements, &values[r * elements]);
    }
    return values;
}

}  // namespace tessera::tests
