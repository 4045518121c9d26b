#include "core/registry/refused.hpp"

#include "core/base/text.hpp"
#include "core/registry/discover.hpp"

#include <spdlog/fmt/fmt.h>

#include <filesystem>
#include <string_view>
#include <system_error>

namespace tessera {

bool is_refused(const PluginRecord& record, const Registry& registry, const Config& config, const Hardware& hardware) {
    if (record.state != PluginState::kRejected) return false;
    if (record.manifest.name.empty()) {
        // A library without a manifest may be what a plugin links to; a folder that does not exist holds no plugin.
        std::error_code error;
        return record.path.extension() != ".so" && std::filesystem::exists(record.path, error);
    }
    if (registry.find_plugin(record.manifest.name)) return false;  // another one of this name is used
    return why_unsuitable(record, config, hardware).empty();
}

std::string refused_plugins(const Registry& registry, const Config& config, const Hardware& hardware) {
    constexpr size_t kMost = 3;
    std::string text;
    size_t count = 0;
    for (const PluginRecord& record : registry.plugins()) {
        if (!is_refused(record, registry, config, hardware) || ++count > kMost) continue;
        const std::string& name = record.manifest.name;
        const std::string_view reason = std::string_view(record.reason).substr(0, record.reason.find('\n'));
        text += fmt::format("{}{}: {}", text.empty() ? "" : "; ",
                            name.empty() ? printable(record.path.filename().string()) : name, printable(reason, 1000));
    }
    if (count > kMost) text += fmt::format("; and {} more", count - kMost);
    return text;
}

}  // namespace tessera
