// GGUF bytes made by hand, valid or not: without the writer and without checks.
#pragma once

#include "core/gguf/header.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace tessera::gguf::test {

class Bytes {
  public:
    template <typename T>
    Bytes& put(T number) {
        char raw[sizeof(T)];
        std::memcpy(raw, &number, sizeof(T));
        text.append(raw, sizeof(T));
        return *this;
    }
    Bytes& raw(std::string_view bytes) {
        text += bytes;
        return *this;
    }
    Bytes& string(std::string_view value) { return put<uint64_t>(value.size()).raw(value); }

    // Key and type number; the value follows.
    Bytes& key(std::string_view name, uint32_t type) { return string(name).put(type); }
    Bytes& u32(std::string_view name, uint32_t value) { return key(name, 4).put(value); }
    Bytes& str(std::string_view name, std::string_view value) { return key(name, 8).string(value); }
    Bytes& array(std::string_view name, uint32_t type, uint64_t count) { return key(name, 9).put(type).put(count); }

    Bytes& tensor(std::string_view name, std::initializer_list<uint64_t> dims, uint32_t type, uint64_t offset) {
        string(name).put(static_cast<uint32_t>(dims.size()));
        for (const uint64_t dim : dims) put(dim);
        return put(type).put(offset);
    }

    Bytes& pad(size_t alignment) {
        text.resize((text.size() + alignment - 1) / alignment * alignment);
        return *this;
    }
    Bytes& zeros(size_t count) {
        text.append(count, '\0');
        return *this;
    }

    std::span<const std::byte> span() const { return std::as_bytes(std::span(text)); }

    std::string text;
};

inline Bytes preamble(uint64_t tensors, uint64_t keys, uint32_t version = 3) {
    Bytes bytes;
    bytes.raw("GGUF").put(version).put(tensors).put(keys);
    return bytes;
}

inline Header parse(const Bytes& bytes) {
    return parse_header(MemorySource(bytes.span(), "file.gguf"));
}

// `bytes` followed by zeros up to `size`, as of a sparse file.
inline Header parse(const Bytes& bytes, uint64_t size) {
    return parse_header(MemorySource(bytes.span(), "file.gguf", size));
}

}  // namespace tessera::gguf::test
