// The C++ source by which a plugin embeds the images of a module.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tessera::cuda::compiler {

struct CompiledImage {
    int real = 0;      // sm number; of PTX its virtual architecture
    int virtual_ = 0;  // the architecture that it was made from
    bool ptx = false;
    bool overlaps = false;  // its kernels wait for what they were launched behind
    std::string bytes;
};

// Writes the images beside `output`, as they are and compressed, named by their content so that a change of one changes
// the source, and the source. Images of an earlier compilation of the module that no longer belong to it are removed.
// Throws std::runtime_error.
void write_embedding(const std::string& module, const std::vector<CompiledImage>& images,
                     const std::filesystem::path& output);

}  // namespace tessera::cuda::compiler
