// The header of one GGUF file: metadata and the list of tensors, all of it checked. Format: the public GGUF
// specification, versions 2 and 3, little-endian.
#pragma once

#include "core/gguf/metadata.hpp"
#include "core/gguf/source.hpp"

#include <tessera/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tessera::gguf {

inline constexpr uint32_t kMaxRank = 4;
inline constexpr uint64_t kDefaultAlignment = 32;
inline constexpr uint64_t kMaxAlignment = 1 << 20;
inline constexpr std::string_view kAlignmentKey = "general.alignment";

// Far above what real files hold, and low enough that a hostile file cannot make the reader ask for much memory.
inline constexpr uint64_t kMaxHeaderBytes = uint64_t{256} << 20;
inline constexpr uint64_t kMaxKeys = 1 << 16;
inline constexpr uint64_t kMaxTensors = 1 << 20;
inline constexpr uint64_t kMaxKeyBytes = 65535;  // the specification's own limit
inline constexpr uint64_t kMaxNameBytes = 255;   // the specification says 64; some tools write longer names

struct TensorEntry {
    std::string name;
    tsr_type type = TSR_TYPE_F32;                     // known to find_type()
    std::array<uint64_t, kMaxRank> dims{1, 1, 1, 1};  // elements, fastest first; 1 from `rank` on; never 0
    uint32_t rank = 1;                                // 1 .. 4
    uint32_t file = 0;                                // which shard of a split model
    uint64_t offset = 0;                              // bytes from the start of that file
    uint64_t bytes = 0;                               // rows are whole blocks and lie without gaps

    uint64_t elements() const noexcept { return dims[0] * dims[1] * dims[2] * dims[3]; }  // below 2^63
    uint64_t rows() const noexcept { return dims[1] * dims[2] * dims[3]; }
    uint64_t bytes_per_row() const noexcept { return bytes / rows(); }

    bool operator==(const TensorEntry&) const = default;
};

// "[576, 2048, 64]", fastest first.
std::string shape_text(const TensorEntry& tensor);

// The key general.alignment, or the default. Throws Error(TSR_CORRUPT_DATA) if it is not a u32 power of two.
uint64_t data_alignment(const Metadata& metadata);

struct Header {
    uint32_t version = 3;
    uint64_t alignment = kDefaultAlignment;
    uint64_t data_begin = 0;  // where the tensors' bytes start; a multiple of alignment
    uint64_t file_bytes = 0;
    Metadata metadata;
    std::vector<TensorEntry>
        tensors;  // in the order of the file; names are unique, ranges lie in the file apart from each other
};

// Reads nothing but the header. Throws Error naming the source and the key or tensor: TSR_CORRUPT_DATA for what
// contradicts the format, TSR_UNSUPPORTED for versions, byte orders and element types that are not known.
Header parse_header(const ByteSource& source);

}  // namespace tessera::gguf
