#include "apps/tessera/output.hpp"

#include <gtest/gtest.h>

namespace tessera::app {
namespace {

TEST(Output, SizesAndCounts) {
    EXPECT_EQ(size_text(12), "12 bytes");
    EXPECT_EQ(size_text(2048), "2.0 KiB");
    EXPECT_EQ(size_text(uint64_t{4392} << 20), "4392.0 MiB");
    EXPECT_EQ(size_text(uint64_t{376} << 30), "376.0 GiB");
    EXPECT_EQ(grouped(1234567), "1,234,567");
    EXPECT_EQ(grouped(999), "999");
    EXPECT_EQ(counted(1, "layer"), "1 layer");
    EXPECT_EQ(counted(2000, "token"), "2,000 tokens");
}

}  // namespace
}  // namespace tessera::app
