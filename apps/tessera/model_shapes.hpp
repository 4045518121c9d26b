// The shapes of a model's nodes, for tests of kernels.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tessera::app {

struct ModelShapes {
    std::vector<std::string> shapes;   // as conformance::parse_shape takes them
    std::vector<std::string> skipped;  // why it refuses others, such as weights of more elements than tests allocate
};

// Those of the file's graph, each once, in its order; of experts as many as tests need. Attention has no such shapes:
// its cases are always the same. Throws what opening the file and building its graph throw.
ModelShapes model_shapes(const std::filesystem::path& file);

}  // namespace tessera::app
