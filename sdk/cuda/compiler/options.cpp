#include "options.hpp"

#include <charconv>
#include <stdexcept>
#include <string_view>

namespace tessera::cuda::compiler {
namespace {

// The virtual architectures that kernels are written for: 6.1 brought dp4a, 8.0 asynchronous copies and bf16 products.
constexpr int kVirtual[] = {60, 61, 80};

int number(std::string_view text) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < kVirtual[0] || value > 999)
        throw std::runtime_error("--target: expected an architecture such as 61, 86 or 90@61; found " +
                                 std::string(text));
    return value;
}

bool is_identifier(const std::string& name) {
    if (name.empty() || (name[0] >= '0' && name[0] <= '9')) return false;
    return name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
           std::string::npos;
}

}  // namespace

const char* const kUsage =
    "tessera-cuda-compile: compiles the kernels of one module for GPUs and embeds them into a C++ source\n"
    "  --name NAME           of the module, an identifier\n"
    "  --source FILE.cu      may be given several times\n"
    "  --target ARCH         61: machine code for sm_61; 90@61: for sm_90 made from compute_61; several times\n"
    "  --ptx                 also embed the PTX of the newest target\n"
    "  --include FOLDER      several times      --define NAME[=VALUE]   several times\n"
    "  --toolkit FOLDER      with bin/ptxas and lib/libnvrtc.so.12 (tools/setup --cuda makes .cuda)\n"
    "  --output FILE.cpp     its images lie beside it\n"
    "  --cache FOLDER        results by content\n"
    "  --dependencies FILE   for make or Ninja\n"
    "  --statistics FILE     registers, spills and shared memory of each kernel\n"
    "  --ptx-folder FOLDER   puts the PTX of each target there, as NAME.VIRTUAL.ptx, for the emulated driver\n";

Target parse_target(const std::string& text) {
    const size_t at = text.find('@');
    Target target;
    target.real = number(std::string_view(text).substr(0, at));
    if (at != std::string::npos) {
        target.virtual_ = number(std::string_view(text).substr(at + 1));
    } else {
        for (const int known : kVirtual) {
            if (known <= target.real) target.virtual_ = known;
        }
    }
    if (target.virtual_ > target.real)
        throw std::runtime_error("--target " + text + ": code for sm_" + std::to_string(target.real) +
                                 " cannot be made from the newer compute_" + std::to_string(target.virtual_));
    return target;
}

Options parse_options(int count, const char* const* arguments) {
    Options options;
    for (int i = 1; i < count; ++i) {
        const std::string_view option = arguments[i];
        if (option == "--ptx") {
            options.ptx = true;
            continue;
        }
        if (i + 1 == count) throw std::runtime_error(std::string(option) + ": expected a value behind it, or --help");
        const std::string value = arguments[++i];
        if (option == "--name")
            options.name = value;
        else if (option == "--source")
            options.sources.emplace_back(value);
        else if (option == "--include")
            options.include_folders.emplace_back(value);
        else if (option == "--define")
            options.definitions.push_back(value);
        else if (option == "--target")
            options.targets.push_back(parse_target(value));
        else if (option == "--toolkit")
            options.toolkit = value;
        else if (option == "--cache")
            options.cache = value;
        else if (option == "--output")
            options.output = value;
        else if (option == "--dependencies")
            options.dependencies = value;
        else if (option == "--statistics")
            options.statistics = value;
        else if (option == "--ptx-folder")
            options.ptx_folder = value;
        else
            throw std::runtime_error("unknown option " + std::string(option) + " (--help lists those there are)");
    }
    if (!is_identifier(options.name))
        throw std::runtime_error("--name: expected an identifier; found \"" + options.name + "\"");
    if (options.sources.empty()) throw std::runtime_error("--source: expected at least one");
    if (options.targets.empty()) throw std::runtime_error("--target: expected at least one");
    for (size_t i = 0; i < options.targets.size(); ++i) {
        for (size_t k = 0; k < i; ++k) {
            if (options.targets[k].real == options.targets[i].real)
                throw std::runtime_error("--target: sm_" + std::to_string(options.targets[i].real) +
                                         " is asked for twice; a module has one image for an architecture");
        }
    }
    if (options.toolkit.empty())
        throw std::runtime_error("--toolkit: expected a folder (tools/setup --cuda makes one)");
    if (options.output.empty()) throw std::runtime_error("--output: expected a file");
    return options;
}

}  // namespace tessera::cuda::compiler
