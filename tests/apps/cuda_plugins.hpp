// Plans for GPUs need the plugins for them, which not every build has.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>

namespace tessera::test {

inline bool has_cuda_plugins() {
    return std::filesystem::exists(TSR_PLUGIN_DIR "/tessera_cuda_ampere.toml");
}

}  // namespace tessera::test

#define NEEDS_CUDA_PLUGINS() \
    if (!tessera::test::has_cuda_plugins()) GTEST_SKIP() << "this build has no plugins for GPUs (TSR_CUDA)"
