// What the core knows of an element type: its name and the size of its rows. Only kernels can compute with it.
#pragma once

#include <tessera/types.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace tessera {

// A row is a prefix (a scale, for instance), then whole blocks.
struct TypeInfo {
    tsr_type id;
    std::string_view name;    // as people write it: "q4_0", "q4_K", "f16"
    uint32_t block_elements;  // consecutive elements of a row that share a block; 1 for plain types
    uint32_t block_bytes;
    uint32_t prefix_bytes;
    // Of tensors in files whose rows are interleaved: the type of the rows, and how many are interleaved. Else the type
    // itself, and 1. An interleaved tensor takes as many bytes as its rows.
    tsr_type rows_type;
    uint32_t interleaved_rows;
};

// All types that the core can place and that files can hold. Ordered by id.
std::span<const TypeInfo> known_types() noexcept;

// nullptr for an id that is not known.
const TypeInfo* find_type(tsr_type id) noexcept;

// Letter case does not matter. nullptr for a name that is not known.
const TypeInfo* find_type(std::string_view name) noexcept;

// Throws Error(TSR_UNSUPPORTED) for an id that is not known.
const TypeInfo& type_info(tsr_type id);

// Bytes of one row of `elements`. Throws Error(TSR_CORRUPT_DATA) if the row is not whole blocks or overflows.
uint64_t row_bytes(tsr_type id, uint64_t elements);

}  // namespace tessera
