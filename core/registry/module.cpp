#include "core/registry/module.hpp"

#include "core/base/log.hpp"
#include "core/base/plugin_call.hpp"
#include "core/base/text.hpp"
#include "core/registry/plugin_log.hpp"
#include "core/registry/process_state.hpp"
#include "core/registry/table.hpp"

#include <dlfcn.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace tessera {
namespace {

void take_line(const tsr_host*, tsr_log_level level, const char* plugin, const char* message) {
    log_for_plugin(level, plugin, message);
}

const void* no_extension(const tsr_host*, const char*) {
    return nullptr;
}

const tsr_host kHost = {sizeof(tsr_host), 0, nullptr, nullptr, TSR_ABI_MAJOR, TSR_ABI_MINOR, take_line, no_extension};

struct Mapped {
    std::string sha256;
    Module module;
};

// Sets back what the library has changed of the process, with a line that says so.
void restore_process(const ProcessState& before, const std::string& plugin) {
    const std::vector<std::string> changed = before.restore();
    if (changed.empty()) return;
    constexpr size_t kNamed = 4;
    std::string names;
    for (size_t i = 0; i < std::min(changed.size(), kNamed); ++i) names += (i ? ", " : "") + changed[i];
    if (changed.size() > kNamed) names += fmt::format(" and {} more", changed.size() - kNamed);
    log().warn("plugin {}: mapping its library changed {}; set back as before", plugin, names);
}

std::string map_and_query(Mapped& mapped, const std::filesystem::path& path, const Manifest& manifest,
                          const Hardware& hardware) {
    const char* const plugin = manifest.name.c_str();
    const std::string file = path.string();
    void* library = nullptr;  // never closed: what ran must not be unmapped, not even when the process ends
    {
        // Its constructors run; an exception of one ends the process, since dlopen throws none.
        const PluginCallScope scope({plugin, "mapping", "library", file.c_str()});
        library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    }
    if (!library) {
        const char* const said = dlerror();
        return fmt::format("the dynamic loader refused it: {}", printable(said ? said : "it does not say why", 1000));
    }
    const auto query = reinterpret_cast<tsr_plugin_query_function>(dlsym(library, TSR_PLUGIN_QUERY));
    if (!query) return fmt::format("it does not export the function {}", TSR_PLUGIN_QUERY);
    std::string why;
    const tsr_plugin* table = nullptr;
    try {
        table = call_plugin({plugin, TSR_PLUGIN_QUERY}, [&] { return query(&kHost); });
        if (!table) return fmt::format("it cannot serve a host of ABI {}.{}", TSR_ABI_MAJOR, TSR_ABI_MINOR);
        // The pointer may be invalid, so reading it counts as a call, too.
        why = call_plugin({plugin, "reading its table"}, [&] {
            std::string fault = table_fault(*table);
            return fault.empty() ? contradiction(manifest, *table) : fault;
        });
        if (why.empty() && table->initialize) {
            const auto devices = hardware.devices();
            call_checked({plugin, "initialize"}, [&] {
                return table->initialize(table, devices.data(), static_cast<uint32_t>(devices.size()));
            });
        }
    } catch (const std::exception& error) {
        why = error.what();
    }
    if (why.empty()) mapped.module.table = table;
    return why;
}

std::string start(Mapped& mapped, const std::filesystem::path& path, const Manifest& manifest,
                  const Hardware& hardware) {
    const ProcessState before;
    std::string why = map_and_query(mapped, path, manifest, hardware);
    restore_process(before, manifest.name);
    return why;
}

}  // namespace

Module open_module(const std::filesystem::path& library, const Manifest& manifest, const Hardware& hardware) {
    // Never destroyed, as their libraries are never unmapped.
    static auto& mapped_libraries = *new std::map<std::filesystem::path, Mapped>;
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    const auto [at, is_new] = mapped_libraries.try_emplace(library);
    Mapped& mapped = at->second;
    if (is_new) {
        mapped.sha256 = manifest.sha256;
        mapped.module.failure = start(mapped, library, manifest, hardware);
    } else if (mapped.sha256 != manifest.sha256) {
        return {nullptr, "the file has changed since this process mapped it: start again to use the new one"};
    } else if (mapped.module.table) {
        // The manifest may differ from that of the first time.
        if (std::string why = contradiction(manifest, *mapped.module.table); !why.empty()) return {nullptr, why};
    }
    return mapped.module;
}

}  // namespace tessera
