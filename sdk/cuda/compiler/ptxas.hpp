// ptxas, NVIDIA's assembler from PTX to machine code.
#pragma once

#include <filesystem>
#include <string>

namespace tessera::cuda::compiler {

struct Assembled {
    std::string cubin;
    std::string log;  // of ptxas -v: registers, spills, shared memory
};

class Ptxas {
  public:
    // Throws std::runtime_error.
    explicit Ptxas(const std::filesystem::path& toolkit);

    // "V12.9.86"
    const std::string& version() const { return version_; }

    // Machine code for sm_`real`. `work` is a folder for temporary files. Throws std::runtime_error with its log.
    Assembled assemble(const std::string& ptx, int real, const std::filesystem::path& work,
                       const std::string& name) const;

  private:
    std::filesystem::path program_;
    std::string version_;
};

// "kernel threads registers spill_stores spill_loads static_shared stack" for each kernel in a log of ptxas -v, one a
// line; bytes, and of threads the maximum of a block that the PTX says (0: none).
std::string kernel_statistics(const std::string& log, const std::string& ptx);

}  // namespace tessera::cuda::compiler
