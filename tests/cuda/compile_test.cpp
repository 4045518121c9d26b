// tessera-cuda-compile as the build runs it.
#include "sdk/cuda/compiler/options.hpp"
#include "sdk/cuda/compiler/overlap.hpp"
#include "tests/apps/process.hpp"
#include "tests/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <iterator>

namespace tessera::test {
namespace {

using testing::HasSubstr;
namespace fs = std::filesystem;

std::string read(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

TEST(CompileOptions, TargetsAreMadeFromTheNewestVirtualArchitectureOrTheOneThatIsNamed) {
    using cuda::compiler::parse_target;
    const auto virtual_of = [](const char* text) { return parse_target(text).virtual_; };
    EXPECT_EQ(virtual_of("60"), 60);
    EXPECT_EQ(virtual_of("61"), 61);
    EXPECT_EQ(virtual_of("75"), 61);
    EXPECT_EQ(virtual_of("120"), 80);
    EXPECT_EQ(virtual_of("90@61"), 61);
    EXPECT_EQ(parse_target("90@61").real, 90);
    for (const char* wrong : {"", "8.6", "50", "sm_80", "61@80", "90@", "99999"})
        EXPECT_THROW(parse_target(wrong), std::runtime_error) << wrong;
}

TEST(CompileOptions, AModuleHasOneImageForAnArchitecture) {
    const char* const words[] = {"",         "--name", "m",        "--source", "a.cu",     "--toolkit", "t",
                                 "--output", "o",      "--target", "90",       "--target", "90@61"};
    EXPECT_THROW(cuda::compiler::parse_options(std::size(words), words), std::runtime_error);
    EXPECT_EQ(cuda::compiler::parse_options(std::size(words) - 2, words).targets.size(), 1u);
}

TEST(Overlap, EveryKernelWaitsFirstOrWhereItSays) {
    using testing::StartsWith;
    const auto head = [](const char* target) {
        return std::string("\n.version 8.8\n.target sm_") + target + "\n.address_size 64\n";
    };
    const std::string one = ".visible .entry one(\n\t.param .u64 a\n)\n.maxntid 64\n{\n",
                      two = ".visible .entry two()\n{\n", end = "\tret;\n}\n", loads = "\tld.global.u32 %r1, [%rd1];\n";
    const std::string made = cuda::compiler::overlapping(
        head("80") + one + loads + end + two + "\t// tessera prefetch [%rd2]\n" + loads + "\t// tessera wait\n" + end,
        90);
    ASSERT_THAT(made, StartsWith(head("90") + one + "\tgriddepcontrol.wait;\n"));
    const size_t first = made.find(loads), second = made.find(two);
    const std::string begin = made.substr((head("90") + one).size(), first - (head("90") + one).size());
    EXPECT_THAT(begin, HasSubstr("@few griddepcontrol.launch_dependents;\n"));
    EXPECT_EQ(made.substr(second), two + "\tprefetch.global.L2 [%rd2];\n" + loads + begin + end);
    EXPECT_THROW(cuda::compiler::overlapping("int", 90), std::runtime_error);
    EXPECT_THROW(cuda::compiler::overlapping(head("80") + ".entry one(", 90), std::runtime_error);
    EXPECT_FALSE(cuda::compiler::can_overlap(89));
    EXPECT_TRUE(cuda::compiler::can_overlap(120));
}

class Compile : public testing::Test {
  protected:
    void SetUp() override {
        if (!*TSR_TOOLKIT) GTEST_SKIP() << "built without TSR_CUDA: there are no compilers";
        folder_.write("scale.hpp", "#pragma once\ninline constexpr int kScale = 3;\n");
        write_source("out[0] = kScale * SIMT_ARCH;");
    }
    void write_source(const std::string& body) {
        folder_.write("one.cu",
                      "#include <tessera/cuda/simt.hpp>\n#include \"scale.hpp\"\n"
                      "SIMT_KERNEL(64, 2) one(int* out) { " +
                          body + " }\n");
    }
    Outcome compile(std::vector<std::string> more = {}, const std::string& toolkit = TSR_TOOLKIT) {
        std::vector<std::string> words = {TSR_CUDA_COMPILE,
                                          "--name",
                                          "m__one",
                                          "--source",
                                          folder_.file("one.cu"),
                                          "--include",
                                          TSR_SOURCE_DIR "/sdk/cuda/include",
                                          "--toolkit",
                                          toolkit,
                                          "--output",
                                          output(),
                                          "--cache",
                                          folder_.file("cache"),
                                          "--statistics",
                                          folder_.file("statistics"),
                                          "--dependencies",
                                          folder_.file("rule")};
        if (more.empty()) more = {"--target", "61", "--target", "80"};
        words.insert(words.end(), more.begin(), more.end());
        return run_process(words);
    }
    std::string output() const { return folder_.file("out/m__one.cpp"); }
    // Each lies beside its compressed copy, NAME.z, which is embedded.
    std::vector<std::string> images() const {
        std::vector<std::string> names, compressed;
        for (const auto& entry : fs::directory_iterator(folder_.path() / "out")) {
            const std::string name = entry.path().filename();
            if (name.ends_with(".z")) {
                compressed.push_back(name.substr(0, name.size() - 2));
            } else if (!name.ends_with(".cpp")) {
                names.push_back(name);
            }
        }
        std::ranges::sort(names);
        EXPECT_THAT(compressed, testing::UnorderedElementsAreArray(names));
        return names;
    }
    TemporaryFolder folder_;
};

TEST_F(Compile, GivesAnImageForEachArchitecture) {
    const Outcome made = compile({"--target", "60", "--target", "90@61", "--target", "120", "--ptx"});
    ASSERT_EQ(made.code, 0) << made.err;
    const std::string source = read(output());
    for (const char* row : {"{600, false,", "{900, false,", "{1200, false,", "{800, true,"})
        EXPECT_THAT(source, HasSubstr(row));
    // The last number is what the card's code was made from; then whether its kernels wait for those before them.
    for (const char* row : {"\\{600, false, [^}]*, 600, false\\}", "\\{900, false, [^}]*, 610, true\\}",
                            "\\{1200, false, [^}]*, 800, true\\}", "\\{800, true, [^}]*, 800, false\\}"})
        EXPECT_THAT(source, testing::ContainsRegex(row));
    EXPECT_THAT(source, HasSubstr("tessera_cuda_module_m__one"));
    ASSERT_EQ(images().size(), 4u);
    for (const std::string& name : images()) {
        const std::string image = read(folder_.path() / "out" / name);
        const bool ptx = name.ends_with(".ptx");
        EXPECT_EQ(image.starts_with("\x7f"
                                    "ELF"),
                  !ptx)
            << name;
        const std::string compressed = read(folder_.path() / "out" / (name + ".z"));
        std::string unpacked(image.size(), '\0');
        uLongf length = unpacked.size();
        EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(unpacked.data()), &length,
                             reinterpret_cast<const Bytef*>(compressed.data()), compressed.size()),
                  Z_OK);
        EXPECT_TRUE(length == image.size() && unpacked == image) << name;
        // By this symbol the emulated driver knows a module.
        EXPECT_THAT(image, HasSubstr("tessera_module_m__one"));
        if (ptx) {
            EXPECT_EQ(image.back(), '\0');
        }
    }
    EXPECT_THAT(read(folder_.file("statistics")), HasSubstr("m__one 90 one 64 "));
    EXPECT_THAT(read(folder_.file("rule")), HasSubstr("scale.hpp"));
}

TEST_F(Compile, AnErrorIsTheCompilersLog) {
    write_source("out[0] = kNothing;");
    const Outcome failed = compile();
    EXPECT_EQ(failed.code, 1);
    EXPECT_THAT(failed.err, HasSubstr("kNothing"));
    EXPECT_THAT(failed.err, HasSubstr("one.cu(3)"));
    EXPECT_FALSE(fs::exists(output()));
}

TEST_F(Compile, WhatAnArchitectureLacksIsAnError) {
    write_source("out[0] = simt::dp4a(out[1], out[2], 0);");
    EXPECT_EQ(compile({"--target", "61"}).code, 0);
    const Outcome failed = compile({"--target", "60"});
    EXPECT_EQ(failed.code, 1);
    EXPECT_THAT(failed.err, HasSubstr("dp4a needs compute capability 6.1"));
}

TEST_F(Compile, ResultsAreKeptByContent) {
    ASSERT_EQ(compile().code, 0);
    const std::string first = read(output());
    // A toolkit that can tell its version and nothing else: what is compiled now was kept.
    folder_.write("toolkit/bin/ptxas", "#!/bin/sh\n[ \"$1\" = --version ] && exec \"" TSR_TOOLKIT
                                       "/bin/ptxas\" --version\necho broken\nexit 1\n");
    fs::permissions(folder_.file("toolkit/bin/ptxas"), fs::perms::owner_all);
    fs::create_symlink(fs::path(TSR_TOOLKIT) / "lib", folder_.path() / "toolkit/lib");
    fs::remove_all(folder_.path() / "out");
    const Outcome again = compile({}, folder_.file("toolkit"));
    ASSERT_EQ(again.code, 0) << again.err;
    EXPECT_EQ(read(output()), first);
    // A change in a header is a change.
    folder_.write("scale.hpp", "#pragma once\ninline constexpr int kScale = 4;\n");
    const Outcome changed = compile({}, folder_.file("toolkit"));
    EXPECT_EQ(changed.code, 1);
    EXPECT_THAT(changed.err, HasSubstr("broken"));
    // And its images replace the earlier ones.
    const std::vector<std::string> before = images();
    ASSERT_EQ(compile().code, 0);
    EXPECT_EQ(images().size(), before.size());
    EXPECT_NE(images(), before);
}

// An installed toolkit has its libraries in lib64, beside much else.
TEST_F(Compile, AnInstalledToolkitIsTaken) {
    ASSERT_EQ(compile().code, 0);
    const std::string own = read(output());
    fs::create_directories(folder_.path() / "cuda-12.9");
    fs::create_symlink(fs::path(TSR_TOOLKIT) / "bin", folder_.path() / "cuda-12.9/bin");
    fs::create_symlink(fs::path(TSR_TOOLKIT) / "lib", folder_.path() / "cuda-12.9/lib64");
    fs::remove_all(folder_.path() / "cache");
    fs::remove_all(folder_.path() / "out");
    const Outcome made = compile({}, folder_.file("cuda-12.9"));
    ASSERT_EQ(made.code, 0) << made.err;
    EXPECT_EQ(read(output()), own);
    // Without them the error names both folders.
    fs::remove(folder_.path() / "cuda-12.9/lib64");
    fs::remove_all(folder_.path() / "cache");
    const Outcome failed = compile({}, folder_.file("cuda-12.9"));
    EXPECT_EQ(failed.code, 1);
    EXPECT_THAT(failed.err, testing::AllOf(HasSubstr("tools/setup --cuda"), HasSubstr("cuda-12.9/lib/libnvrtc.so.12"),
                                           HasSubstr("cuda-12.9/lib64/libnvrtc.so.12")));
}

TEST_F(Compile, ADamagedResultIsNotUsed) {
    ASSERT_EQ(compile({"--target", "61"}).code, 0);
    for (const auto& entry : fs::recursive_directory_iterator(folder_.path() / "cache")) {
        if (entry.is_regular_file()) fs::resize_file(entry.path(), 3);
    }
    const Outcome failed = compile({"--target", "61"});
    EXPECT_EQ(failed.code, 1);
    EXPECT_NE(failed.err, "");
}

TEST_F(Compile, AMissingToolkitSaysWhatBringsIt) {
    const Outcome failed = compile({}, folder_.file("nothing"));
    EXPECT_EQ(failed.code, 1);
    EXPECT_THAT(failed.err, HasSubstr("tools/setup --cuda"));
}

}  // namespace
}  // namespace tessera::test
