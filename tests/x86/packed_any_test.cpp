// What matmul/packed_any.hpp makes of what a format says of its codes, for formats that have no PackedWeight by hand:
// of blocks that are as those of listed formats, which all have one.
#include "kernels/x86/matmul/packed_any.hpp"

#include "tests/random_rows.hpp"

#include <tessera/cpu/isa/avx2.hpp>
#include <tessera/formats/block_list.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

namespace tessera::x86 {
namespace {

using Isa = cpu::isa::Avx2;

template <class Block>
struct Unlisted : Block {};

// A weight as the products read it, for each row and element of a unit.
template <class Format>
void expect_values(const typename Format::Unit& unit, const float* row_scales, const std::vector<float> (&wanted)[8]) {
    const auto compare = [&](int b, const Isa::Bytes(&codes)[8], const Isa::Floats* scale, const Isa::Floats* minimum) {
        for (int i = 0; i < 32; ++i) {
            const int g = i / (32 / Format::kGroups);
            alignas(32) uint8_t bytes[32];
            alignas(32) float scales[8], minima[8];
            Isa::store(bytes, codes[i / 4]);
            Isa::store_floats(scales, scale[g]);
            Isa::store_floats(minima, minimum[g]);
            for (int row = 0; row < 8; ++row) {
                const uint8_t byte = bytes[4 * row + i % 4];
                const int code = Format::kSigned ? static_cast<int8_t>(byte) : byte - Format::kCentre;
                const float value = scales[row] * static_cast<float>(code) + (Format::kHasMinimum ? minima[row] : 0);
                ASSERT_FLOAT_EQ(value, wanted[row][static_cast<size_t>(32 * b + i)]) << "row " << row;
            }
        }
    };
    Format::visit(unit, Isa::load_floats(row_scales), compare);
}

template <class Block>
void check(tsr_type type) {
    using Format = PackedWeight<Isa, Unlisted<Block>>;
    static_assert(std::is_base_of_v<Block, std::remove_reference_t<decltype(Format::Unit::rows[0])>>);
    const size_t row_bytes = cpu::format_bytes(type, Block::kElements);
    std::vector<unsigned char> rows(8 * row_bytes);
    std::mt19937 random(3);
    tests::fill_rows(type, rows.data(), Block::kElements, 8, 1.0f, random);
    Unlisted<Block> blocks[8];
    IntoLanes<Isa, Unlisted<Block>> from;
    float row_scales[8] = {};
    std::vector<float> wanted[8];
    for (int row = 0; row < 8; ++row) {
        const unsigned char* at = rows.data() + static_cast<size_t>(row) * row_bytes;
        wanted[row].resize(Block::kElements);
        cpu::decode_row(type, at, Block::kElements, wanted[row].data());
        constexpr size_t kPrefix = cpu::kPrefixBytes<Block>;
        if constexpr (kPrefix != 0) {
            typename Block::RowScale scale;
            std::memcpy(&scale, at, sizeof scale);
            row_scales[row] = std::is_same_v<decltype(scale), float> ? scale : formats::f16_to_f32(scale);
        }
        std::memcpy(&blocks[row], at + kPrefix, sizeof(Block));
        from.rows[row] = &blocks[row];
    }
    typename Format::Unit unit;
    Format::pack(unit, from);
    expect_values<Format>(unit, row_scales, wanted);
    for (int row = 0; row < 8; ++row) {
        Unlisted<Block> back;
        Format::unpack(unit, row, back);
        EXPECT_EQ(std::memcmp(&back, &blocks[row], sizeof back), 0);
    }
}

class PackedAny : public testing::TestWithParam<tsr_type> {};

TEST_P(PackedAny, VisitsTheValuesOfTheFormat) {
    if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this processor has no AVX2";
    formats::visit_block_format(GetParam(), [&]<class Block>() {
        if constexpr (formats::kHasCodes<Block>) check<Block>(GetParam());
    });
}

// One scale for 32 elements, one of a row, offsets, and a scale for 16.
INSTANTIATE_TEST_SUITE_P(Formats, PackedAny,
                         testing::Values(TSR_TYPE_TQ1_0, TSR_TYPE_IQ1_BN, TSR_TYPE_NVFP4, TSR_TYPE_IQ1_KT),
                         [](const auto& type) { return std::string(cpu::format_name(type.param)); });

}  // namespace
}  // namespace tessera::x86
