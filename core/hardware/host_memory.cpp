// Memory and processor time that this process may use. Source: the Linux kernel's documentation of control groups,
// Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst.
#include "core/hardware/probe.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

namespace tessera {
namespace {

namespace fs = std::filesystem;

std::optional<uint64_t> parse_number(std::string_view text) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

// Value of a line "key value" or "key:   value kB" of a system file.
std::optional<uint64_t> find_value(const fs::path& file, std::string_view wanted) {
    std::ifstream in(file);
    std::string key;
    uint64_t value;
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        if (words >> key >> value && key == wanted) return value;
    }
    return std::nullopt;
}

// How one version of control groups names the files that tell of memory.
struct MemoryFiles {
    const char* limit;
    const char* usage;
    const char* cached[2];  // file pages, which the kernel drops when memory is short: keys of memory.stat
};
constexpr MemoryFiles kVersion1 = {
    "memory.limit_in_bytes", "memory.usage_in_bytes", {"total_inactive_file", "total_active_file"}};
constexpr MemoryFiles kVersion2 = {"memory.max", "memory.current", {"inactive_file", "active_file"}};

void apply_group(const fs::path& folder, const MemoryFiles& files, HostMemory& memory) {
    const auto limit = parse_number(read_line(folder / files.limit));
    if (!limit) return;  // no such group, or "max"
    memory.total_bytes = std::min(memory.total_bytes, *limit);
    uint64_t used = parse_number(read_line(folder / files.usage)).value_or(0);
    for (const char* key : files.cached) used -= std::min(used, find_value(folder / "memory.stat", key).value_or(0));
    memory.free_bytes = std::min(memory.free_bytes, *limit - std::min(*limit, used));
}

struct Group {
    fs::path mount;  // of the hierarchy
    fs::path path;   // of this process in it, without the leading slash
};

// This process's group in a hierarchy: of the controller (version 1), or the unified one if `controller` is empty.
std::optional<Group> find_group(const fs::path& root, std::string_view controller) {
    std::ifstream in(root / "proc/self/cgroup");
    for (std::string line; std::getline(in, line);) {
        const size_t first = line.find(':');
        const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
        if (controllers.find(fmt::format(",{},", controller)) == std::string::npos) continue;
        fs::path mount = root / "sys/fs/cgroup";
        if (!controller.empty())
            mount /= controller;
        else if (std::error_code error; fs::exists(mount / "unified", error))
            mount /= "unified";
        return Group{mount, fs::path(line.substr(second + 1)).relative_path()};
    }
    return std::nullopt;
}

// The group's folders from its own to the root of the hierarchy. In a container the path may be the host's, and only
// the root is there: folders that are missing say nothing.
std::vector<fs::path> folders_of(const Group& group) {
    std::vector<fs::path> folders;
    for (fs::path path = group.path.lexically_normal();; path = path.parent_path()) {
        folders.push_back(path.empty() ? group.mount : group.mount / path);
        if (path.empty() || *path.begin() == "..") break;
    }
    return folders;
}

}  // namespace

std::string read_line(const fs::path& file) {
    std::ifstream in(file);
    std::string line;
    std::getline(in, line);
    const size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string::npos) return {};
    return line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
}

HostMemory probe_host_memory(const fs::path& root) {
    HostMemory memory;
    memory.total_bytes = find_value(root / "proc/meminfo", "MemTotal:").value_or(0) * 1024;
    memory.free_bytes = find_value(root / "proc/meminfo", "MemAvailable:").value_or(0) * 1024;
    if (const auto group = find_group(root, "memory")) {
        for (const fs::path& folder : folders_of(*group)) apply_group(folder, kVersion1, memory);
    }
    if (const auto group = find_group(root, "")) {
        for (const fs::path& folder : folders_of(*group)) apply_group(folder, kVersion2, memory);
    }
    return memory;
}

std::optional<uint32_t> probe_cpu_quota(const fs::path& root) {
    double cpus = 0;
    const auto consider = [&](double quota, double period) {
        if (quota > 0 && period > 0 && (cpus == 0 || quota / period < cpus)) cpus = quota / period;
    };
    if (const auto group = find_group(root, "cpu")) {
        for (const fs::path& folder : folders_of(*group)) {
            const auto quota = parse_number(read_line(folder / "cpu.cfs_quota_us"));  // -1, no number here: no limit
            const auto period = parse_number(read_line(folder / "cpu.cfs_period_us"));
            if (quota && period) consider(static_cast<double>(*quota), static_cast<double>(*period));
        }
    }
    if (const auto group = find_group(root, "")) {
        for (const fs::path& folder : folders_of(*group)) {
            double quota = 0, period = 0;
            std::istringstream words(read_line(folder / "cpu.max"));  // "max 100000" does not parse: no limit
            if (words >> quota >> period) consider(quota, period);
        }
    }
    if (cpus == 0) return std::nullopt;
    const double whole = std::min(cpus, 65536.0);
    return std::max(1u, static_cast<uint32_t>(whole) + (whole > static_cast<uint32_t>(whole) ? 1 : 0));
}

}  // namespace tessera
