#include "core/graph/types.hpp"

#include "core/base/checked.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>

namespace tessera {
namespace {

constexpr auto kTypes = [] {
    std::array types = {
#define TSR_ROW(id, number, name, elements, bytes, prefix) \
    TypeInfo{TSR_TYPE_##id, name, elements, bytes, prefix, TSR_TYPE_##id, 1},
        TSR_TYPES(TSR_ROW)
#undef TSR_ROW
#define TSR_ROW(id, number, name, rows_type, rows) TypeInfo{TSR_TYPE_##id, name, 0, 0, 0, TSR_TYPE_##rows_type, rows},
            TSR_INTERLEAVED_TYPES(TSR_ROW) TSR_PACKED_TYPES(TSR_ROW)
#undef TSR_ROW
    };
    for (TypeInfo& type : types) {
        const TypeInfo& rows = *std::ranges::find(types, type.rows_type, &TypeInfo::id);
        type.block_elements = rows.block_elements;
        type.block_bytes = rows.block_bytes;
        type.prefix_bytes = rows.prefix_bytes;
    }
    std::ranges::sort(types, {}, &TypeInfo::id);
    return types;
}();

// Types of ggml and ik_llama.cpp that nothing here can read, for messages. A row of a type that has come to be known is
// not looked at.
struct OtherType {
    tsr_type id;
    std::string_view name;
};
constexpr OtherType kOtherTypes[] = {
    {4, "Q4_2"},      {5, "Q4_3"},      {9, "Q8_1"},        {15, "Q8_K"},       {31, "Q4_0_4_4"}, {32, "Q4_0_4_8"},
    {33, "Q4_0_8_8"}, {36, "I2_S"},     {37, "IQ4_NL_4_8"}, {38, "IQ4_NL_8_8"}, {97, "Q8_0_X4"},  {98, "Q8_1_X4"},
    {99, "Q8_2_X4"},  {136, "Q8_K64"},  {142, "IQ2_TN"},    {143, "IQ1_TN"},    {147, "Q8_K16"},  {148, "Q8_K32"},
    {149, "Q8_KR8"},  {150, "Q8_K128"}, {335, "IQ2_BN_R4"},
};

bool same_letters(std::string_view a, std::string_view b) {
    return std::ranges::equal(a, b,
                              [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace

std::span<const TypeInfo> known_types() noexcept {
    return kTypes;
}

const TypeInfo* find_type(tsr_type id) noexcept {
    const auto at = std::ranges::lower_bound(kTypes, id, {}, &TypeInfo::id);
    return at != kTypes.end() && at->id == id ? &*at : nullptr;
}

const TypeInfo* find_type(std::string_view name) noexcept {
    const auto at = std::ranges::find_if(kTypes, [&](const TypeInfo& type) { return same_letters(type.name, name); });
    return at != kTypes.end() ? &*at : nullptr;
}

const TypeInfo& type_info(tsr_type id) {
    if (const TypeInfo* type = find_type(id)) return *type;
    if (const auto other = std::ranges::find(kOtherTypes, id, &OtherType::id); other != std::end(kOtherTypes)) {
        fail(TSR_UNSUPPORTED,
             "element type {} ({}) is not among those that this version reads: take a file of another quantisation", id,
             other->name);
    }
    fail(TSR_UNSUPPORTED, "element type {} is not known to this version", id);
}

uint64_t row_bytes(tsr_type id, uint64_t elements) {
    const TypeInfo& type = type_info(id);
    if (elements % type.block_elements != 0) {
        fail(TSR_CORRUPT_DATA, "a row of {} elements is not whole blocks of {} ({} elements each)", elements, type.name,
             type.block_elements);
    }
    const uint64_t blocks = checked_mul<uint64_t>(elements / type.block_elements, type.block_bytes, "bytes of a row");
    return checked_add<uint64_t>(blocks, type.prefix_bytes, "bytes of a row");
}

}  // namespace tessera
