#include "core/tensor/types.hpp"

#include "core/base/checked.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace tessera {
namespace {

constexpr std::array kTypes = {
    TypeInfo{TSR_TYPE_F32, "f32", 1, 4},
    TypeInfo{TSR_TYPE_F16, "f16", 1, 2},
    TypeInfo{TSR_TYPE_Q4_0, "q4_0", 32, 18},
    TypeInfo{TSR_TYPE_Q4_1, "q4_1", 32, 20},
    TypeInfo{TSR_TYPE_Q5_0, "q5_0", 32, 22},
    TypeInfo{TSR_TYPE_Q5_1, "q5_1", 32, 24},
    TypeInfo{TSR_TYPE_Q8_0, "q8_0", 32, 34},
    TypeInfo{TSR_TYPE_Q2_K, "q2_K", 256, 84},
    TypeInfo{TSR_TYPE_Q3_K, "q3_K", 256, 110},
    TypeInfo{TSR_TYPE_Q4_K, "q4_K", 256, 144},
    TypeInfo{TSR_TYPE_Q5_K, "q5_K", 256, 176},
    TypeInfo{TSR_TYPE_Q6_K, "q6_K", 256, 210},
    TypeInfo{TSR_TYPE_IQ2_XXS, "iq2_xxs", 256, 66},
    TypeInfo{TSR_TYPE_IQ2_XS, "iq2_xs", 256, 74},
    TypeInfo{TSR_TYPE_IQ3_XXS, "iq3_xxs", 256, 98},
    TypeInfo{TSR_TYPE_IQ1_S, "iq1_s", 256, 50},
    TypeInfo{TSR_TYPE_IQ4_NL, "iq4_nl", 32, 18},
    TypeInfo{TSR_TYPE_IQ3_S, "iq3_s", 256, 110},
    TypeInfo{TSR_TYPE_IQ2_S, "iq2_s", 256, 82},
    TypeInfo{TSR_TYPE_IQ4_XS, "iq4_xs", 256, 136},
    TypeInfo{TSR_TYPE_I8, "i8", 1, 1},
    TypeInfo{TSR_TYPE_I16, "i16", 1, 2},
    TypeInfo{TSR_TYPE_I32, "i32", 1, 4},
    TypeInfo{TSR_TYPE_I64, "i64", 1, 8},
    TypeInfo{TSR_TYPE_F64, "f64", 1, 8},
    TypeInfo{TSR_TYPE_IQ1_M, "iq1_m", 256, 56},
    TypeInfo{TSR_TYPE_BF16, "bf16", 1, 2},
    TypeInfo{TSR_TYPE_MXFP4, "mxfp4", 32, 17},
};

bool same_letters(std::string_view a, std::string_view b) {
    return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace

std::span<const TypeInfo> known_types() noexcept { return kTypes; }

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
    fail(TSR_UNSUPPORTED, "element type {} is not known to this version", id);
}

uint64_t row_bytes(tsr_type id, uint64_t elements) {
    const TypeInfo& type = type_info(id);
    if (elements % type.block_elements != 0) {
        fail(TSR_CORRUPT_DATA, "a row of {} elements is not whole blocks of {} ({} elements each)", elements, type.name,
             type.block_elements);
    }
    return checked_mul<uint64_t>(elements / type.block_elements, type.block_bytes, "bytes of a row");
}

}  // namespace tessera
