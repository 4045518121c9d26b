#include "core/registry/manifest.hpp"

#include "core/base/error.hpp"
#include "core/registry/sha256.hpp"
#include "core/registry/version.hpp"
#include "tests/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

namespace tessera {
namespace {

using testing::ElementsAre;

constexpr const char* kWhole = R"(
name = "cuda_ampere"
version = "1.2.0"
abi = "1.0"
library = "tessera_cuda_ampere.so"
sha256 = "00112233445566778899AABBCCDDEEFF00112233445566778899aabbccddeeff"
summary = "Tensor cores"
kinds = ["cuda"]
ops = ["matmul"]
cpu_flags = ["avx2", "fma"]
plan_cpu_flags = ["fma"]
minimum_compute_capability = "8.0"
maximum_compute_capability = "12.1"
minimum_driver = "525.60"
priority = -3
)";

TEST(Manifest, ReadsEverything) {
    const Manifest manifest = parse_manifest(kWhole, "m.toml");
    EXPECT_EQ(manifest.name, "cuda_ampere");
    EXPECT_EQ(manifest.version, "1.2.0");
    EXPECT_EQ(manifest.abi_major, 1u);
    EXPECT_EQ(manifest.abi_minor, 0u);
    EXPECT_EQ(manifest.library, "tessera_cuda_ampere.so");
    EXPECT_EQ(manifest.sha256, "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff");
    EXPECT_THAT(manifest.kinds, ElementsAre("cuda"));
    EXPECT_THAT(*manifest.ops, ElementsAre("matmul"));
    EXPECT_THAT(manifest.cpu_flags, ElementsAre("avx2", "fma"));
    EXPECT_THAT(manifest.plan_cpu_flags, ElementsAre("fma"));
    EXPECT_EQ(manifest.minimum_compute_capability, 800u);
    EXPECT_EQ(manifest.maximum_compute_capability, 1210u);
    EXPECT_EQ(manifest.minimum_driver, "525.60");
    EXPECT_EQ(manifest.priority, -3);
}

// Cut short or with bytes changed it is read or refused; nothing else happens.
TEST(Manifest, SurvivesDamage) {
    const std::string whole = kWhole;
    const auto try_it = [](const std::string& text) {
        try {
            parse_manifest(text, "m.toml");
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), TSR_CORRUPT_DATA) << error.what();
        }
    };
    for (size_t i = 0; i < whole.size(); ++i) try_it(whole.substr(0, i));
    std::mt19937 random(7);
    for (int i = 0; i < 3000; ++i) {
        std::string text = whole;
        for (int k = 0; k < 3; ++k) text[random() % text.size()] = static_cast<char>(random());
        try_it(text);
    }
    try_it(std::string(100000, '['));
    try_it("a" + std::string(100000, '.') + " = 1");
}

TEST(Version, ParsesAndCompares) {
    EXPECT_THAT(*parse_version("580.65.06"), ElementsAre(580, 65, 6));
    EXPECT_LT(*parse_version("1.9"), *parse_version("1.10"));
    EXPECT_LT(*parse_version("1"), *parse_version("1.0"));
    for (const char* bad : {"", ".", "1.", ".1", "1..2", "1a", "-1", "1.2.3.4.5.6.7.8.9", "1234567890"}) {
        EXPECT_FALSE(parse_version(bad)) << bad;
    }
}

// The digests are those of FIPS 180-4's examples, computed elsewhere.
TEST(Sha256, KnownDigests) {
    const test::TemporaryFolder folder;
    const auto file = folder.write("digested", "abc");
    EXPECT_EQ(sha256_of_file(file), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    std::ofstream(file, std::ios::trunc).close();
    EXPECT_EQ(sha256_of_file(file), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    std::ofstream(file) << std::string(1000000, 'a') + std::string(1000000, 'a');
    // More than one chunk of reading; the digest is from coreutils.
    EXPECT_EQ(sha256_of_file(file), "bcf7f9d1b4311c3352e60502255ce09a6744df84e8f2c89f79c4b5d74933a95a");
}

}  // namespace
}  // namespace tessera
