// Rows of ik_llama.cpp's formats against what its own code makes of them (tests/formats/README.md).
#include "core/graph/types.hpp"
#include "recorded.hpp"

#include <tessera/cpu/formats.hpp>
#include <tessera/formats/interleaved.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace tessera::tests {
namespace {

const gguf::GgufFile& goldens() {
    static const gguf::GgufFile kFile = gguf::GgufFile::open(TSR_SOURCE_DIR "/tests/formats/ik_rows.gguf");
    return kFile;
}

std::vector<unsigned char> separated(const TypeInfo& type, const std::vector<unsigned char>& bytes, size_t elements) {
    std::vector<unsigned char> rows(bytes.size(), 0xCC);
    const size_t group = type.interleaved_rows * row_bytes(type.id, elements);
    EXPECT_TRUE(cpu::separate_rows(type.id, elements, bytes.size() / group, bytes.data(), rows.data()));
    return rows;
}

size_t elements_of(const TypeInfo& type, uint64_t bytes) {
    return (bytes - type.prefix_bytes) / type.block_bytes * type.block_elements;
}

class IkRows : public testing::TestWithParam<std::string> {};

TEST_P(IkRows, OfRandomBitsHaveTheRecordedValues) {
    const TypeInfo* type = find_type(GetParam());
    ASSERT_NE(type, nullptr);
    if (!goldens().find_tensor(GetParam() + ".random")) {
        EXPECT_NE(goldens().find_tensor(GetParam() + ".interleaved"), nullptr);
        return;
    }
    auto rows = recorded<unsigned char>(goldens(), GetParam() + ".random");
    const auto values = recorded<float>(goldens(), GetParam() + ".values");
    const uint64_t bytes = goldens().tensor(GetParam() + ".random").dims[0];
    const size_t elements = elements_of(*type, bytes);
    if (type->interleaved_rows > 1) rows = separated(*type, rows, elements);
    const std::vector<float> got = decoded(type->rows_type, rows, bytes, elements);
    if (type->id != TSR_TYPE_IQ6_K) {
        // As numbers: where its code takes a centre away as a minimum, a nought may have the other sign.
        EXPECT_EQ(got, values);
        return;
    }
    // Its code has two sets of levels: products take a table of integers, dequantisation the polynomial that the table
    // was rounded from. Products are what counts, so the difference is up to half a level.
    ASSERT_EQ(got.size(), values.size());
    for (size_t r = 0; r < rows.size() / bytes; ++r) {
        for (size_t h = 0; h < elements / 16; ++h) {
            cpu::BlockIq6K block;
            std::memcpy(&block, &rows[r * bytes + h / 16 * sizeof block], sizeof block);
            const float scale = std::fabs(cpu::f16_to_f32(block.d) * static_cast<float>(block.scales[h % 16]));
            for (size_t i = 16 * h; i < 16 * h + 16; ++i) {
                EXPECT_NEAR(got[r * elements + i], values[r * elements + i], 0.55f * scale) << i;
            }
        }
    }
}

TEST_P(IkRows, SeparateIntoTheBytesOfThePlainType) {
    const TypeInfo* type = find_type(GetParam());
    ASSERT_NE(type, nullptr);
    EXPECT_EQ(cpu::visit_interleaved(type->id,
                                     [&]<class Kind>(tsr_type rows_type) {
                                         EXPECT_EQ(rows_type, type->rows_type);
                                         EXPECT_EQ(Kind::kRows, static_cast<int>(type->interleaved_rows));
                                     }),
              type->interleaved_rows > 1);
    if (!goldens().find_tensor(GetParam() + ".interleaved")) return;
    const auto interleaved = recorded<unsigned char>(goldens(), GetParam() + ".interleaved");
    const auto rows = recorded<unsigned char>(goldens(), GetParam() + ".rows");
    const size_t elements = elements_of(*type, goldens().tensor(GetParam() + ".rows").dims[0]);
    EXPECT_EQ(separated(*type, interleaved, elements), rows);
}

std::vector<std::string> recorded_types() {
    std::vector<std::string> names;
    for (const TypeInfo& type : known_types()) {
        const bool of_ik = type.id >= TSR_TYPE_Q6_0 && type.id < TSR_TYPE_FIRST_PACKED;
        if (of_ik || goldens().find_tensor(std::string(type.name) + ".random")) names.emplace_back(type.name);
    }
    return names;
}
INSTANTIATE_TEST_SUITE_P(Types, IkRows, testing::ValuesIn(recorded_types()),
                         [](const auto& type) { return type.param; });

}  // namespace
}  // namespace tessera::tests
