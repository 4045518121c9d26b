// Structs of the ABI from code that was compiled with another version of the headers.
#pragma once

#include <tessera/sizes.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

namespace tessera::sdk {

// Bytes of T in the minor version `minor` of the ABI; in one later than this header's: in this header's.
template <typename T>
constexpr uint32_t size_in_version(uint32_t minor) noexcept {
    uint32_t size = 0;
    // Lines of one struct are in the order of versions: the last that applies counts.
#define TSR_APPLY_LINE(name, since, bytes) \
    if (std::is_same_v<T, name> && minor + int64_t{1} > since) size = bytes;
    TSR_STRUCT_SIZES(TSR_APPLY_LINE)
#undef TSR_APPLY_LINE
    return size;
}

// A field that a struct of an earlier minor version lacks: then 0 or NULL.
template <typename T, typename Field>
Field field_or_zero(const T& value, Field T::*field) noexcept {
    const auto end = reinterpret_cast<const char*>(&(value.*field) + 1) - reinterpret_cast<const char*>(&value);
    return value.struct_size >= static_cast<uint64_t>(end) ? value.*field : Field{};
}

// A copy of a struct of any size as this header knows it: fields that it lacks are 0, fields past this header are left
// out. No more than `limit` bytes are read: a copy of a longer struct may have a struct_size that is larger than
// the copy.
template <typename T>
T copy_struct(const T& from, uint32_t limit = sizeof(T)) noexcept {
    static_assert(std::is_trivially_copyable_v<T>);
    T copy{};
    std::memcpy(&copy, &from, std::min({from.struct_size, limit, static_cast<uint32_t>(sizeof(T))}));
    copy.struct_size = sizeof(T);
    return copy;
}

// The longest chain of extensions that is followed: a longer one is taken for a loop.
inline constexpr uint32_t kMaxChainLength = 64;

// What is wrong with a chain of extensions; nullptr if nothing is.
inline const char* chain_fault(const tsr_chain* first) noexcept {
    uint32_t length = 0;
    for (const tsr_chain* at = first; at; at = at->next) {
        if (++length > kMaxChainLength) return "its chain of extensions is a loop, or has more than 64 links";
        if (at->struct_size < TSR_SIZE_tsr_chain_0) return "an extension's struct_size is smaller than tsr_chain";
        if (!at->tag || !*at->tag) return "an extension has no tag";
    }
    return nullptr;
}

// The first extension with this tag, of at least `bytes`; nullptr if there is none. Others are skipped.
inline const tsr_chain* find_extension(const tsr_chain* first, std::string_view tag,
                                       uint32_t bytes = TSR_SIZE_tsr_chain_0) noexcept {
    uint32_t length = 0;
    for (const tsr_chain* at = first; at && length < kMaxChainLength; at = at->next, ++length) {
        if (at->struct_size < TSR_SIZE_tsr_chain_0) return nullptr;
        if (at->tag && tag == at->tag) return at->struct_size >= bytes ? at : nullptr;
    }
    return nullptr;
}

}  // namespace tessera::sdk
