#define BOOST_DLL_USE_STD_FS

#include "core/registry/module.hpp"

#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/registry/table.hpp"

#include <boost/dll/shared_library.hpp>
#include <spdlog/fmt/fmt.h>

#include <exception>
#include <map>
#include <mutex>

namespace tessera {
namespace {

void log_for_plugin(const tsr_host*, tsr_log_level level, const char* plugin, const char* message) {
    constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                                     spdlog::level::err};
    const auto known = level <= TSR_LOG_ERROR ? kLevels[level] : spdlog::level::err;
    try {
        log().log(known, "{}: {}", printable(plugin ? plugin : "a plugin", 64),
                  printable(message ? message : "", 4096));
    } catch (...) {
        // A line that cannot be logged is lost; a plugin is no place for the exception.
    }
}

const void* no_extension(const tsr_host*, const char*) {
    return nullptr;
}

const tsr_host kHost = {sizeof(tsr_host), 0,           nullptr, nullptr, TSR_ABI_MAJOR, TSR_ABI_MINOR,
                        log_for_plugin,   no_extension};

std::string take_message(const tsr_status* status) {
    std::string text = printable(status->message ? status->message : "no message", 1000);
    if (status->destroy) status->destroy(status);
    return text;
}

// Plugins promise that no exception crosses; one that breaks this is refused, not the process ended.
template <typename Call>
std::string guard(std::string_view what, Call&& call) {
    try {
        return call();
    } catch (const std::exception& error) {
        return fmt::format("{} threw an exception: {}", what, printable(error.what(), 1000));
    } catch (...) {
        return fmt::format("{} threw an exception", what);
    }
}

struct Mapped {
    boost::dll::shared_library library;
    std::string sha256;
    Module module;
};

std::string start(Mapped& mapped, const std::filesystem::path& path, const Manifest& manifest,
                  const Hardware& hardware) {
    try {
        mapped.library.load(path, boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
    } catch (const std::exception& error) {
        return fmt::format("the dynamic loader refused it: {}", printable(error.what(), 1000));
    }
    if (!mapped.library.has(TSR_PLUGIN_QUERY)) {
        return fmt::format("it does not export the function {}", TSR_PLUGIN_QUERY);
    }
    const auto query = &mapped.library.get<const tsr_plugin*(const tsr_host*)>(TSR_PLUGIN_QUERY);
    const tsr_plugin* table = nullptr;
    std::string why = guard(TSR_PLUGIN_QUERY, [&] {
        table = query(&kHost);
        return table ? std::string() : fmt::format("it cannot serve a host of ABI {}.{}", TSR_ABI_MAJOR, TSR_ABI_MINOR);
    });
    if (why.empty()) why = table_fault(*table);
    if (why.empty()) why = contradiction(manifest, *table);
    if (why.empty() && table->initialize) {
        why = guard("initialize", [&] {
            const auto devices = hardware.devices();
            const tsr_status* status = table->initialize(table, devices.data(), static_cast<uint32_t>(devices.size()));
            return status ? "it failed to initialise: " + take_message(status) : std::string();
        });
    }
    if (why.empty()) mapped.module.table = table;
    return why;
}

}  // namespace

Module open_module(const std::filesystem::path& library, const Manifest& manifest, const Hardware& hardware) {
    // Never destroyed: a library that ran must not be unmapped, not even when the process ends.
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
        // The manifest may be another one than the first time.
        if (std::string why = contradiction(manifest, *mapped.module.table); !why.empty()) return {nullptr, why};
    }
    return mapped.module;
}

}  // namespace tessera
