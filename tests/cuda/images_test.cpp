// Which image a card runs, and what is said where there is none.
#include <tessera/cpp/status.hpp>
#include <tessera/cuda/images.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <string>
#include <vector>

namespace tessera::cuda {
namespace {

using testing::HasSubstr;

TEST(Images, TheNewestOfTheSameMajorVersionThatIsNotNewerThanTheCard) {
    const Image images[] = {{600, false, nullptr, nullptr},
                            {610, false, nullptr, nullptr},
                            {700, false, nullptr, nullptr},
                            {800, false, nullptr, nullptr},
                            {900, false, nullptr, nullptr}};
    const Module module = {"m", images, std::size(images)};
    EXPECT_EQ(find_image(module, 600), &images[0]);
    EXPECT_EQ(find_image(module, 610), &images[1]);
    EXPECT_EQ(find_image(module, 620), &images[1]);
    EXPECT_EQ(find_image(module, 750), &images[2]);
    EXPECT_EQ(find_image(module, 860), &images[3]);
    EXPECT_EQ(find_image(module, 890), &images[3]);
    EXPECT_EQ(find_image(module, 900), &images[4]);
    // Machine code of another major version does not run.
    EXPECT_EQ(find_image(module, 1000), nullptr);
    EXPECT_EQ(find_image(module, 500), nullptr);
}

TEST(Images, PtxOnlyWhereNoMachineCodeFits) {
    const Image images[] = {
        {800, true, nullptr, nullptr}, {800, false, nullptr, nullptr}, {610, true, nullptr, nullptr}};
    const Module module = {"m", images, std::size(images)};
    EXPECT_EQ(find_image(module, 860), &images[1]);
    EXPECT_EQ(find_image(module, 900), &images[0]);
    EXPECT_EQ(find_image(module, 1200), &images[0]);
    EXPECT_EQ(find_image(module, 700), &images[2]);
    EXPECT_EQ(find_image(module, 600), nullptr);
}

TEST(Images, CodeMadeFromAnOlderArchitectureHasItsInstructions) {
    const Image images[] = {{700, false, nullptr, nullptr, 0, 610},
                            {900, false, nullptr, nullptr, 0, 600},
                            {610, true, nullptr, nullptr, 0, 610}};
    const Module module = {"m", images, std::size(images)};
    EXPECT_EQ(instructions_for(module, 750), 610u);
    EXPECT_EQ(instructions_for(module, 900), 600u);
    EXPECT_EQ(instructions_for(module, 1000), 610u);
    EXPECT_EQ(instructions_for(module, 600), 0u);
    const Image plain[] = {{860, false, nullptr, nullptr}};
    EXPECT_EQ(instructions_for({"m", plain, 1}, 890), 860u);
}

TEST(Images, ARefusalNamesModuleCardAndBuild) {
    const Image images[] = {{610, false, nullptr, nullptr}, {800, false, nullptr, nullptr}};
    const std::string text = missing_image({"cuda_ampere__matmul", images, 2}, 900);
    EXPECT_THAT(text, HasSubstr("cuda_ampere__matmul"));
    EXPECT_THAT(text, HasSubstr("capability 9.0"));
    EXPECT_THAT(text, HasSubstr("6.1 8.0"));
    EXPECT_THAT(text, HasSubstr("TSR_CUDA_ARCHS=90"));
}

TEST(Images, DamagedOnesAreRefused) {
    const std::string text(5000, 'k');
    std::vector<unsigned char> packed(compressBound(text.size()));
    uLongf length = packed.size();
    ASSERT_EQ(compress(packed.data(), &length, reinterpret_cast<const Bytef*>(text.data()), text.size()), Z_OK);
    const auto unpacked = [&](uLongf end, size_t bytes) {
        return decompressed({860, false, packed.data(), packed.data() + end, bytes});
    };
    const std::vector<unsigned char> whole = unpacked(length, text.size());
    EXPECT_EQ(std::string(whole.begin(), whole.end()), text);
    EXPECT_THROW(unpacked(length - 5, text.size()), sdk::Failure);
    EXPECT_THROW(unpacked(length, text.size() + 1), sdk::Failure);
    EXPECT_THROW(unpacked(length, text.size() - 1), sdk::Failure);
    packed[length / 2] ^= 0x55;
    EXPECT_THROW(unpacked(length, text.size()), sdk::Failure);
}

}  // namespace
}  // namespace tessera::cuda
