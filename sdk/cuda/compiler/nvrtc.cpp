#include "nvrtc.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <stdexcept>

namespace tessera::cuda::compiler {

namespace fs = std::filesystem;

namespace {

// Without the line that tells, whatever is compiled, that a later release will not know these architectures.
std::string without_deprecation(const std::string& log) {
    std::string text;
    for (size_t begin = 0; begin < log.size();) {
        const size_t end = std::min(log.find('\n', begin), log.size() - 1) + 1;
        if (!log.substr(begin, end - begin).starts_with("nvrtc: warning: Architectures prior to"))
            text += log.substr(begin, end - begin);
        begin = end;
    }
    return text;
}

}  // namespace

const char* const kStdint =
    "#pragma once\n"
    "typedef signed char int8_t;\ntypedef short int16_t;\ntypedef int int32_t;\ntypedef long int64_t;\n"
    "typedef unsigned char uint8_t;\ntypedef unsigned short uint16_t;\ntypedef unsigned int uint32_t;\n"
    "typedef unsigned long uint64_t;\ntypedef long intptr_t;\ntypedef unsigned long uintptr_t;\n";
const char* const kStddef = "#pragma once\ntypedef unsigned long size_t;\ntypedef long ptrdiff_t;\n";

Nvrtc::Nvrtc(const fs::path& toolkit) {
    void* library = nullptr;
    std::string tried;
    for (const char* folder : {"lib", "lib64"}) {
        // The builtins are looked for by name alone: mapped before, they are found.
        const fs::path at = toolkit / folder;
        dlopen((at / "libnvrtc-builtins.so.12.9").c_str(), RTLD_NOW | RTLD_GLOBAL);
        library = dlopen((at / "libnvrtc.so.12").c_str(), RTLD_NOW | RTLD_LOCAL);
        if (library) break;
        const char* why = dlerror();
        tried += "\n  " + std::string(why ? why : (at / "libnvrtc.so.12").string());
    }
    if (!library)
        throw std::runtime_error("cannot open libnvrtc.so.12 of CUDA 12 (tools/setup --cuda installs it into .cuda):" +
                                 tried);
    const auto get = [&]<class Function>(const char* name, Function*& function) {
        function = reinterpret_cast<Function*>(dlsym(library, name));
        if (!function) throw std::runtime_error(std::string("libnvrtc.so.12 lacks the function ") + name);
    };
    get("nvrtcVersion", nvrtc_.version);
    get("nvrtcGetErrorString", nvrtc_.error_text);
    get("nvrtcCreateProgram", nvrtc_.create);
    get("nvrtcDestroyProgram", nvrtc_.destroy);
    get("nvrtcCompileProgram", nvrtc_.compile);
    get("nvrtcGetProgramLogSize", nvrtc_.log_size);
    get("nvrtcGetProgramLog", nvrtc_.log);
    get("nvrtcGetPTXSize", nvrtc_.ptx_size);
    get("nvrtcGetPTX", nvrtc_.ptx);
    int major = 0, minor = 0;
    nvrtc_.version(&major, &minor);
    version_ = std::to_string(major) + "." + std::to_string(minor);
}

std::string Nvrtc::compile(const std::string& text, const std::string& name,
                           const std::vector<std::string>& options) const {
    const char* const contents[] = {kStdint, kStddef};
    const char* const names[] = {"stdint.h", "stddef.h"};
    void* program = nullptr;
    if (const int result = nvrtc_.create(&program, text.c_str(), name.c_str(), 2, contents, names); result != 0)
        throw std::runtime_error(name + ": nvrtcCreateProgram: " + nvrtc_.error_text(result));
    struct Destroy {
        const Functions& nvrtc;
        void** program;
        ~Destroy() { nvrtc.destroy(program); }
    } destroy{nvrtc_, &program};

    std::vector<const char*> pointers;
    for (const std::string& option : options) pointers.push_back(option.c_str());
    const int compiled = nvrtc_.compile(program, static_cast<int>(pointers.size()), pointers.data());
    size_t bytes = 0;
    std::string log;
    if (nvrtc_.log_size(program, &bytes) == 0 && bytes > 1) {
        log.resize(bytes);
        nvrtc_.log(program, log.data());
        log.resize(bytes - 1);
        log = without_deprecation(log);
    }
    if (compiled != 0) {
        std::string message = name + ": NVRTC " + version_ + ": " + nvrtc_.error_text(compiled) + ", with";
        for (const std::string& option : options) message += " " + option;
        throw std::runtime_error(message + "\n" + log);
    }
    if (!log.empty()) throw std::runtime_error(name + ": warnings of NVRTC count as errors:\n" + log);
    if (const int result = nvrtc_.ptx_size(program, &bytes); result != 0 || bytes < 2)
        throw std::runtime_error(name + ": nvrtcGetPTXSize: " + nvrtc_.error_text(result));
    std::string ptx(bytes, '\0');
    if (const int result = nvrtc_.ptx(program, ptx.data()); result != 0)
        throw std::runtime_error(name + ": nvrtcGetPTX: " + nvrtc_.error_text(result));
    ptx.resize(bytes - 1);
    return ptx;
}

}  // namespace tessera::cuda::compiler
