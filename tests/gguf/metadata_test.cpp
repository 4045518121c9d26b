#include "core/gguf/metadata.hpp"

#include "tests/gguf/expect.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace tessera::gguf {
namespace {

using test::expect_error;
using testing::ElementsAre;

StringArray strings(std::initializer_list<std::string_view> texts) {
    StringArray out;
    for (const auto text : texts) out.push_back(text);
    return out;
}

TEST(Value, NamesAndTexts) {
    EXPECT_EQ(describe_type(Value(uint32_t{3})), "u32");
    EXPECT_EQ(describe_type(Value(std::string("x"))), "string");
    EXPECT_EQ(describe_type(Value(Array(strings({"a", "b"})))), "array of 2 string");
    EXPECT_EQ(describe_type(Value(Array(std::vector<float>{1}))), "array of 1 f32");
    EXPECT_EQ(type_name(static_cast<ValueType>(13)), "unknown");
    EXPECT_EQ(to_text(Value(int8_t{-5})), "-5");
    EXPECT_EQ(to_text(Value(true)), "true");
    EXPECT_EQ(to_text(Value(2.5f)), "2.5");
    EXPECT_EQ(to_text(Value(std::string("a\n\xFF"))), "\"a\\x0a\\xff\"");
    EXPECT_EQ(to_text(Value(Array(strings({"a", "", "c"}))), 2), "[\"a\", \"\", ... 3 in all]");
    EXPECT_EQ(to_text(Value(Array(std::vector<bool>{true, false}))), "[true, false]");
    EXPECT_EQ(to_text(Value(Array(std::vector<uint8_t>{}))), "[]");
    EXPECT_EQ(to_text(Value(Array(std::vector<uint8_t>{1, 2})), 0), "[... 2 in all]");
}

TEST(StringArray, HoldsAnyBytes) {
    const auto array = strings({"", std::string_view("\0\xFF", 2), "abc", ""});
    ASSERT_EQ(array.size(), 4u);
    EXPECT_EQ(array[0], "");
    EXPECT_EQ(array[1], std::string_view("\0\xFF", 2));
    EXPECT_THAT(std::vector<std::string>(array.begin(), array.end()),
                ElementsAre("", std::string("\0\xFF", 2), "abc", ""));
}

class MetadataTest : public testing::Test {
  protected:
    MetadataTest() : metadata_("dir/model.gguf") {
        metadata_.add("u8", uint8_t{200});
        metadata_.add("i32", int32_t{-7});
        metadata_.add("u64", uint64_t{1} << 40);
        metadata_.add("f32", 0.5f);
        metadata_.add("f64", 1e300);
        metadata_.add("bool", true);
        metadata_.add("text", std::string("gr\xC3\xBC\xC3\x9F"));
        metadata_.add("bad text", std::string("\xFF"));
        metadata_.add("tokens", Array(strings({"a", "\xFF"})));
        metadata_.add("ints", Array(std::vector<int32_t>{1, 2, 3}));
        metadata_.add("signed", Array(std::vector<int8_t>{1, -1}));
        metadata_.add("floats", Array(std::vector<float>{1.5f, -2}));
        metadata_.add("bools", Array(std::vector<bool>{true, false, true}));
    }

    Metadata metadata_;
};

TEST_F(MetadataTest, ConvertsIntegersThatFit) {
    EXPECT_EQ(metadata_.get_u32("u8"), 200u);
    EXPECT_EQ(metadata_.get_i32("u8"), 200);
    EXPECT_EQ(metadata_.get_i32("i32"), -7);
    EXPECT_EQ(metadata_.get_u64("u64"), uint64_t{1} << 40);
    EXPECT_EQ(metadata_.find_u32("u8"), 200u);
    EXPECT_EQ(metadata_.find_u32("none"), std::nullopt);
    EXPECT_EQ(metadata_.get<int64_t>("i32"), -7);
    expect_error(TSR_CORRUPT_DATA, {"dir/model.gguf", "'i32'", "an integer that fits u32", "found i32 -7"},
                 [&] { metadata_.get_u32("i32"); });
    expect_error(TSR_CORRUPT_DATA, {"'u64'", "fits u32", "found u64 1099511627776"},
                 [&] { metadata_.find_u32("u64"); });
    expect_error(TSR_CORRUPT_DATA, {"'bool'", "found bool true"}, [&] { metadata_.get_u32("bool"); });
    expect_error(TSR_CORRUPT_DATA, {"'f32'", "found f32 0.5"}, [&] { metadata_.get_u32("f32"); });
    expect_error(TSR_CORRUPT_DATA, {"'ints'", "array of 3 i32"}, [&] { metadata_.get_u32("ints"); });
}

TEST_F(MetadataTest, ConvertsFloatsAndBools) {
    EXPECT_EQ(metadata_.get_f32("f32"), 0.5f);
    EXPECT_EQ(metadata_.get<double>("f32"), 0.5);
    EXPECT_EQ(metadata_.get<double>("f64"), 1e300);
    EXPECT_TRUE(metadata_.get_bool("bool"));
    expect_error(TSR_CORRUPT_DATA, {"'f64'", "fits f32", "1e+300"}, [&] { metadata_.get_f32("f64"); });
    expect_error(TSR_CORRUPT_DATA, {"'u8'", "found u8 200"}, [&] { metadata_.get_f32("u8"); });
    expect_error(TSR_CORRUPT_DATA, {"'u8'", "expected bool"}, [&] { metadata_.find_bool("u8"); });
}

TEST_F(MetadataTest, StringsAreChecked) {
    EXPECT_EQ(metadata_.get_string("text"), "gr\xC3\xBC\xC3\x9F");
    EXPECT_EQ(metadata_.find_string("none"), std::nullopt);
    expect_error(TSR_CORRUPT_DATA, {"'bad text'", "UTF-8", "\\xff"}, [&] { metadata_.get_string("bad text"); });
    expect_error(TSR_CORRUPT_DATA, {"'u8'", "expected a string"}, [&] { metadata_.get_string("u8"); });
}

TEST_F(MetadataTest, Arrays) {
    EXPECT_EQ(metadata_.get_strings("tokens")[1], "\xFF");
    EXPECT_EQ(metadata_.find_strings("none"), nullptr);
    EXPECT_THAT(metadata_.get_array<uint32_t>("ints"), ElementsAre(1, 2, 3));
    EXPECT_THAT(metadata_.get_array<int32_t>("signed"), ElementsAre(1, -1));
    EXPECT_THAT(metadata_.get_array<float>("floats"), ElementsAre(1.5f, -2));
    EXPECT_THAT(metadata_.get_array<bool>("bools"), ElementsAre(true, false, true));
    EXPECT_EQ(metadata_.find_array<uint32_t>("none"), std::nullopt);
    expect_error(TSR_CORRUPT_DATA, {"'signed'", "each element an integer that fits u32", "array of 2 i8", "[1, -1]"},
                 [&] { metadata_.get_array<uint32_t>("signed"); });
    expect_error(TSR_CORRUPT_DATA, {"'tokens'"}, [&] { metadata_.get_array<float>("tokens"); });
    expect_error(TSR_CORRUPT_DATA, {"'u8'", "an array"}, [&] { metadata_.get_array<uint32_t>("u8"); });
    expect_error(TSR_CORRUPT_DATA, {"'ints'", "array of strings"}, [&] { metadata_.get_strings("ints"); });
}

TEST_F(MetadataTest, MissingKeysAreNamed) {
    expect_error(TSR_NOT_FOUND, {"dir/model.gguf", "'none'", "missing"}, [&] { metadata_.get_u32("none"); });
    expect_error(TSR_NOT_FOUND, {"'none'"}, [&] { metadata_.get_strings("none"); });
    expect_error(TSR_NOT_FOUND, {"'none'"}, [&] { metadata_.get_array<float>("none"); });
}

TEST_F(MetadataTest, KeepsOrderAndReplaces) {
    expect_error(TSR_CORRUPT_DATA, {"dir/model.gguf", "'u8'", "twice"}, [&] { metadata_.add("u8", true); });
    const size_t before = metadata_.entries().size();
    metadata_.set("u8", std::string("new"));
    EXPECT_EQ(metadata_.entries().size(), before);
    EXPECT_EQ(metadata_.entries().front().key, "u8");
    EXPECT_EQ(metadata_.get_string("u8"), "new");
    metadata_.set("last", true);
    EXPECT_EQ(metadata_.entries().back().key, "last");
    EXPECT_TRUE(metadata_.contains("last"));
}

TEST(Override, ReadsEachType) {
    const auto value = [](std::string_view text) { return parse_override(text).value; };
    EXPECT_EQ(parse_override("a.b=int:5").key, "a.b");
    EXPECT_EQ(value("k=int:-5"), Value(int64_t{-5}));
    EXPECT_EQ(value("k=int:18446744073709551615"), Value(std::numeric_limits<uint64_t>::max()));
    EXPECT_EQ(value("k=float:0.25"), Value(0.25f));
    EXPECT_EQ(value("k=float:1e-6"), Value(1e-6f));
    EXPECT_EQ(value("k=bool:true"), Value(true));
    EXPECT_EQ(value("k=bool:false"), Value(false));
    EXPECT_EQ(value("k=str:a=b:c"), Value(std::string("a=b:c")));
    EXPECT_EQ(value("k=str:"), Value(std::string()));
}

TEST(Override, RefusesTheRest) {
    for (const char* text : {"",
                             "k",
                             "=int:1",
                             "k=int",
                             "k=:1",
                             "k:int=1",
                             "k=long:1",
                             "k=int:",
                             "k=int:1.5",
                             "k=int:0x10",
                             "k=int: 1",
                             "k=int:18446744073709551616",
                             "k=int:-9223372036854775809",
                             "k=float:",
                             "k=float:x",
                             "k=float:nan",
                             "k=float:inf",
                             "k=float:1e60",
                             "k=bool:1",
                             "k=bool:TRUE",
                             "k=str:\xFF",
                             "\xFF=int:1"}) {
        expect_error(TSR_INVALID_ARGUMENT, {"KEY=TYPE:VALUE"}, [&] { parse_override(text); });
    }
    expect_error(TSR_INVALID_ARGUMENT, {"'k=int:x'", "type int"}, [&] { parse_override("k=int:x"); });
}

}  // namespace
}  // namespace tessera::gguf
