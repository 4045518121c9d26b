// The shapes of a model's nodes, for tests of kernels.
#pragma once

#include "sdk/conformance/shapes.hpp"

#include <filesystem>
#include <vector>

namespace tessera::app {

// Those of the file's graph, each once, in its order; of experts as many as tests need. Attention has no such shapes:
// its cases are always the same. Throws what opening the file and building its graph throw.
std::vector<conformance::Shape> model_shapes(const std::filesystem::path& file);

}  // namespace tessera::app
