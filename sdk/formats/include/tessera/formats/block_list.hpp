// The blocks of all formats, and visiting them by type.
#pragma once

#include <tessera/formats/every_type.hpp>
#include <tessera/types.h>

namespace tessera::formats {

// BlockFor<type>::Type: the block of a type.
template <tsr_type kType>
struct BlockFor;
#define TSR_BLOCK(id, Name)          \
    template <>                      \
    struct BlockFor<TSR_TYPE_##id> { \
        using Type = Block##Name;    \
    };
TSR_BLOCK_TYPES(TSR_BLOCK)
#undef TSR_BLOCK

// Calls `visit.template operator()<Block>()` for every block format that can be decoded, in the order of
// TSR_BLOCK_TYPES.
template <class Visitor>
constexpr void each_block_format(Visitor&& visit) {
#define TSR_VISIT(id, Name) visit.template operator()<Block##Name>();
    TSR_BLOCK_TYPES(TSR_VISIT)
#undef TSR_VISIT
}

// The same for the format of one type, and returns true; false for a type that has no blocks.
template <class Visitor>
constexpr bool visit_block_format(tsr_type type, Visitor&& visit) {
    switch (type) {
#define TSR_CASE(id, Name)                                  \
    case TSR_TYPE_##id:                                     \
        static_assert(Block##Name::kType == TSR_TYPE_##id); \
        visit.template operator()<Block##Name>();           \
        return true;
        TSR_BLOCK_TYPES(TSR_CASE)
#undef TSR_CASE
        default:
            return false;
    }
}

}  // namespace tessera::formats
