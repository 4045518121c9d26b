#include "apps/server/spare_descriptors.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace tessera::server {
namespace {

TEST(SpareDescriptors, AreGivenOneByOneAndTakenAgain) {
    SpareDescriptors spares(2);
    EXPECT_TRUE(spares.lacking());
    EXPECT_FALSE(spares.free_one());
    spares.fill();
    EXPECT_FALSE(spares.lacking());
    const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    EXPECT_TRUE(spares.free_one());
    EXPECT_TRUE(spares.lacking());
    // The one that became free is the next to be opened.
    const int freed = open("/dev/null", O_RDONLY | O_CLOEXEC);
    EXPECT_LT(freed, next);
    EXPECT_TRUE(spares.free_one());
    EXPECT_FALSE(spares.free_one());
    for (const int descriptor : {next, freed}) close(descriptor);
    spares.fill();
    EXPECT_FALSE(spares.lacking());
}

}  // namespace
}  // namespace tessera::server
