// NVRTC, NVIDIA's compiler from CUDA C++ to PTX as a library, opened at run time.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tessera::cuda::compiler {

class Nvrtc {
  public:
    // Throws std::runtime_error that says where it was looked for.
    explicit Nvrtc(const std::filesystem::path& toolkit);

    // "12.9"
    const std::string& version() const { return version_; }

    // The PTX of `text`. C headers that NVRTC does not have (stdint.h, stddef.h) are given to it. Throws
    // std::runtime_error with the compiler's log.
    std::string compile(const std::string& text, const std::string& name,
                        const std::vector<std::string>& options) const;

  private:
    struct Functions {
        int (*version)(int* major, int* minor);
        const char* (*error_text)(int result);
        int (*create)(void** program, const char* text, const char* name, int headers, const char* const* contents,
                      const char* const* names);
        int (*destroy)(void** program);
        int (*compile)(void* program, int count, const char* const* options);
        int (*log_size)(void* program, size_t* bytes);
        int (*log)(void* program, char* text);
        int (*ptx_size)(void* program, size_t* bytes);
        int (*ptx)(void* program, char* text);
    };
    Functions nvrtc_{};
    std::string version_;
};

// Compared with cached results: a change of these headers changes what is compiled.
extern const char* const kStdint;
extern const char* const kStddef;

}  // namespace tessera::cuda::compiler
