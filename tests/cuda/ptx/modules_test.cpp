// Every kernel that the build compiled for GPUs: each of its instructions is known to the executor of PTX.
#include "testing/emulated_cuda/ptx/module.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace tessera::cuda::ptx {
namespace {

TEST(CompiledModules, EachInstructionIsKnown) {
    size_t modules = 0, kernels = 0, instructions = 0;
    for (const auto& entry : std::filesystem::directory_iterator(TSR_EMULATED_DIR)) {
        if (entry.path().extension() != ".ptx") continue;
        SCOPED_TRACE(entry.path().filename());
        std::ifstream file(entry.path(), std::ios::binary);
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        ++modules;
        try {
            Module module(text);
            for (const std::string_view name : module.kernels()) {
                try {
                    instructions += module.kernel(name)->code.size();
                    ++kernels;
                } catch (const Error& error) {
                    ADD_FAILURE() << name << ": " << error.what();
                }
            }
        } catch (const Error& error) {
            ADD_FAILURE() << error.what();
        }
    }
    std::printf("%zu modules, %zu kernels, %zu instructions\n", modules, kernels, instructions);
    EXPECT_GE(modules, TSR_LEAST_MODULES);
}

}  // namespace
}  // namespace tessera::cuda::ptx
