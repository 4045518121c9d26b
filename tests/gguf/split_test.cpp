#include "core/gguf/split.hpp"

#include "tests/gguf/bytes.hpp"
#include "tests/gguf/expect.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::gguf {
namespace {

using test::Bytes;
using test::expect_error;
using test::preamble;

TEST(SplitName, Parses) {
    EXPECT_EQ(parse_split_name("m-00001-of-00003.gguf"), (SplitName{"m", 1, 3}));
    EXPECT_EQ(parse_split_name("a-b-00002-of-00009-00010-of-00010.gguf"), (SplitName{"a-b-00002-of-00009", 10, 10}));
    EXPECT_EQ(parse_split_name("-00001-of-00001.gguf"), (SplitName{"", 1, 1}));
    EXPECT_EQ(split_file_name({"m", 1, 3}), "m-00001-of-00003.gguf");
    for (const char* name :
         {"", "m.gguf", "m-00000-of-00003.gguf", "m-00004-of-00003.gguf", "m-00001-of-00000.gguf", "m-1-of-3.gguf",
          "m-00001-of-00003.bin", "m-0000x-of-00003.gguf", "m-00001-of-0000 .gguf", "m_00001-of-00003.gguf",
          "m-00001-to-00003.gguf", "00001-of-00003.gguf", "m-+0001-of-00003.gguf"}) {
        EXPECT_EQ(parse_split_name(name), std::nullopt) << name;
    }
}

Header part(uint32_t number, uint32_t count, uint32_t all, std::vector<std::string> tensors) {
    Bytes b = preamble(tensors.size(), 4);
    b.u32("split.no", number).u32("split.count", count).u32("split.tensors.count", all);
    b.str("only.here", "part " + std::to_string(number));
    uint64_t offset = 0;
    for (const std::string& name : tensors) {
        b.tensor(name, {8}, TSR_TYPE_F32, offset);
        offset += 32;
    }
    b.pad(32).zeros(offset);
    return parse_header(MemorySource(b.span(), "part" + std::to_string(number)));
}

template <typename... Parts>
Header join(Parts... parts) {
    std::vector<Header> all;
    (all.push_back(std::move(parts)), ...);
    return join_shards(std::move(all));
}

TEST(Split, JoinsParts) {
    const Header one = part(0, 3, 4, {"a", "b"}), two = part(1, 3, 4, {"c"}), three = part(2, 3, 4, {"d"});
    const Header all = join(one, two, three);
    ASSERT_EQ(all.tensors.size(), 4u);
    EXPECT_EQ(all.tensors[0].file, 0u);
    EXPECT_EQ(all.tensors[1].file, 0u);
    EXPECT_EQ(all.tensors[2].file, 1u);
    EXPECT_EQ(all.tensors[3].file, 2u);
    EXPECT_EQ(all.tensors[3].name, "d");
    EXPECT_EQ(all.tensors[3].offset, three.data_begin);
    EXPECT_EQ(all.metadata.get_string("only.here"), "part 0");
    EXPECT_EQ(all.file_bytes, one.file_bytes + two.file_bytes + three.file_bytes);
}

TEST(Split, WholeFilesNeedNoKeys) {
    const Bytes b = preamble(0, 0);
    const SplitInfo info = split_info(test::parse(b));
    EXPECT_EQ(info.count, 1u);
    EXPECT_EQ(join(test::parse(b)).tensors.size(), 0u);
    EXPECT_EQ(join(part(0, 1, 1, {"a"})).tensors.size(), 1u);
}

TEST(Split, MergedFilesAreWhole) {
    // Whatever the other keys still say, or if they are gone.
    const SplitInfo info = split_info(part(2, 0, 7, {"a"}));
    EXPECT_EQ(info.number, 0u);
    EXPECT_EQ(info.count, 1u);
    EXPECT_EQ(info.tensors, 1u);
    EXPECT_EQ(join(part(0, 0, 1, {"a"})).tensors.size(), 1u);
    EXPECT_EQ(split_info(test::parse(preamble(0, 1).u32("split.count", 0))).count, 1u);
}

TEST(Split, NumbersMustBePossible) {
    expect_error(TSR_CORRUPT_DATA, {"part3", "'split.no'", "found 3 and 3"}, [] { split_info(part(3, 3, 1, {})); });
    expect_error(TSR_CORRUPT_DATA, {"4294967295 and 4294967295"},
                 [] { split_info(part(0xFFFFFFFF, 0xFFFFFFFF, 1, {})); });
    expect_error(TSR_NOT_FOUND, {"'split.no'"}, [] { split_info(test::parse(preamble(0, 1).u32("split.count", 2))); });
    expect_error(TSR_NOT_FOUND, {"'split.tensors.count'"},
                 [] { split_info(test::parse(preamble(0, 2).u32("split.count", 2).u32("split.no", 0))); });
    expect_error(TSR_CORRUPT_DATA, {"'split.count'", "u32", "found string"},
                 [] { split_info(test::parse(preamble(0, 1).str("split.count", "2"))); });
}

TEST(Split, PartsMustBelongTogether) {
    expect_error(TSR_CORRUPT_DATA, {"part0", "part 2 of 2", "part 1 of 2"},
                 [] { join(part(0, 2, 2, {"a"}), part(0, 2, 2, {"b"})); });
    expect_error(TSR_CORRUPT_DATA, {"part1", "part 1 of 2"}, [] { join(part(1, 2, 2, {"a"}), part(0, 2, 2, {"b"})); });
    expect_error(TSR_CORRUPT_DATA, {"part1", "part 2 of 2", "part 2 of 3"},
                 [] { join(part(0, 2, 2, {"a"}), part(1, 3, 2, {"b"})); });
    expect_error(TSR_CORRUPT_DATA, {"part 1 of 1", "part 1 of 2"}, [] { join(part(0, 2, 1, {"a"})); });
    expect_error(TSR_INVALID_ARGUMENT, {"no files"}, [] { join_shards({}); });
}

TEST(Split, TensorsMustBeCounted) {
    expect_error(TSR_CORRUPT_DATA, {"part1", "'split.tensors.count'", "3 tensors", "says 2"},
                 [] { join(part(0, 2, 2, {"a"}), part(1, 2, 3, {"b"})); });
    expect_error(TSR_CORRUPT_DATA, {"'split.tensors.count'", "expected 3 tensors", "found 2"},
                 [] { join(part(0, 2, 3, {"a"}), part(1, 2, 3, {"b"})); });
    expect_error(TSR_CORRUPT_DATA, {"part1", "tensor 'a'", "also in part 1"},
                 [] { join(part(0, 2, 2, {"a"}), part(1, 2, 2, {"a"})); });
}

}  // namespace
}  // namespace tessera::gguf
