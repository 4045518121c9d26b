// tessera-cuda-compile: sources to PTX by NVRTC, PTX to machine code by ptxas, machine code into a C++ source.
#include "cache.hpp"
#include "embed.hpp"
#include "nvrtc.hpp"
#include "options.hpp"
#include "overlap.hpp"
#include "ptxas.hpp"
#include "sources.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <optional>

namespace tessera::cuda::compiler {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> nvrtc_options(const Options& options, int architecture) {
    std::vector<std::string> all = {"--gpu-architecture=compute_" + std::to_string(architecture), "--std=c++20",
                                    "--device-as-default-execution-space", "-DSIMT_MODULE=" + options.name,
                                    "-DSIMT_ARCH=" + std::to_string(architecture * 10)};
    for (const std::string& definition : options.definitions) all.push_back("-D" + definition);
    for (const fs::path& folder : options.include_folders) all.push_back("-I" + fs::absolute(folder).string());
    return all;
}

// One translation unit of all sources.
std::string unit_of(const Options& options) {
    std::string text;
    for (const fs::path& source : options.sources) text += "#include \"" + fs::absolute(source).string() + "\"\n";
    return text;
}

// A path as makefiles write it.
std::string escaped(const std::string& path) {
    std::string text;
    for (const char c : path) {
        if (c == ' ' || c == '#') text += '\\';
        if (c == '$') text += '$';
        text += c;
    }
    return text;
}

void compile(const Options& options) {
    const std::vector<SourceFile> files = read_sources(options.sources, options.include_folders);
    const Nvrtc nvrtc(options.toolkit);
    const Ptxas ptxas(options.toolkit);
    const Cache cache(options.cache);
    const fs::path work = options.cache.empty() ? fs::temp_directory_path() : options.cache;

    std::map<int, std::string> ptx;  // by virtual architecture
    const auto ptx_for = [&](int architecture) -> const std::string& {
        if (const auto found = ptx.find(architecture); found != ptx.end()) return found->second;
        Hash hash;
        hash.add("ptx 1").add(nvrtc.version()).add(kStdint).add(kStddef).add(options.name);
        hash.add(std::to_string(architecture));
        for (const std::string& definition : options.definitions) hash.add(definition);
        // By content and name, not by place: another clone of the same sources finds the results.
        for (const SourceFile& file : files) hash.add(file.path.filename().string()).add(file.text);
        const std::string text = cache.get(hash.text(), [&] {
            return nvrtc.compile(unit_of(options), options.name + ".cu", nvrtc_options(options, architecture));
        });
        return ptx.emplace(architecture, text).first->second;
    };

    std::vector<CompiledImage> images;
    std::string statistics;
    for (const Target& target : options.targets) {
        const bool overlaps = can_overlap(target.real);
        const std::string from =
            overlaps ? overlapping(ptx_for(target.virtual_), target.real) : ptx_for(target.virtual_);
        // The log, its length before it, and then the cubin.
        const std::string key =
            Hash().add("cubin 1").add(ptxas.version()).add(std::to_string(target.real)).add(from).text();
        const std::string kept = cache.get(key, [&] {
            const Assembled made = ptxas.assemble(from, target.real, work, options.name);
            return std::to_string(made.log.size()) + "\n" + made.log + made.cubin;
        });
        const size_t end = kept.find('\n');
        const size_t log_bytes = end == std::string::npos ? kept.size() : std::stoul(kept.substr(0, end));
        if (end == std::string::npos || end + 1 + log_bytes >= kept.size())
            throw std::runtime_error("the cached result " + key + " is damaged: remove it from " +
                                     options.cache.string());
        images.push_back({target.real, target.virtual_, false, overlaps, kept.substr(end + 1 + log_bytes)});
        std::string kernels = kernel_statistics(kept.substr(end + 1, log_bytes), from);
        for (size_t at = 0; at < kernels.size();) {
            const size_t line = kernels.find('\n', at) + 1;
            statistics += options.name + " " + std::to_string(target.real) + " " + kernels.substr(at, line - at);
            at = line;
        }
    }
    if (options.ptx) {
        int newest = 0;
        for (const Target& target : options.targets) newest = std::max(newest, target.virtual_);
        images.push_back({newest, newest, true, false, ptx_for(newest)});
    }
    write_embedding(options.name, images, options.output);
    if (!options.ptx_folder.empty()) {
        for (const auto& [architecture, text] : ptx)
            update_file(options.ptx_folder / (options.name + "." + std::to_string(architecture) + ".ptx"), text);
    }
    if (!options.statistics.empty()) update_file(options.statistics, statistics);
    if (!options.dependencies.empty()) {
        std::string rule = escaped(options.output.string()) + ":";
        for (const SourceFile& file : files) rule += " \\\n  " + escaped(file.path.string());
        write_file(options.dependencies, rule + "\n");
    }
}

}  // namespace
}  // namespace tessera::cuda::compiler

int main(int count, char** arguments) {
    using namespace tessera::cuda::compiler;
    if (count == 2 && std::strcmp(arguments[1], "--help") == 0) {
        std::fputs(kUsage, stdout);
        return 0;
    }
    try {
        compile(parse_options(count, arguments));
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "tessera-cuda-compile: %s\n", error.what());
        return 1;
    }
}
