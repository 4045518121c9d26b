#include "core/registry/trust.hpp"

#include <grp.h>
#include <pwd.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

namespace tessera {
namespace {

namespace fs = std::filesystem;

// Debian and others give every user a private group with write permission: such a group counts as the user.
bool is_own_group(gid_t group) {
    if (group == 0) return true;
    std::vector<char> user_text(16384), group_text(16384);
    passwd user{};
    passwd* found_user = nullptr;
    if (getpwuid_r(geteuid(), &user, user_text.data(), user_text.size(), &found_user) != 0 || !found_user) return false;
    ::group entry{};
    ::group* found_group = nullptr;
    if (getgrgid_r(group, &entry, group_text.data(), group_text.size(), &found_group) != 0 || !found_group)
        return false;
    if (user.pw_gid != group || std::strcmp(entry.gr_name, user.pw_name) != 0) return false;
    for (char** member = entry.gr_mem; *member; ++member) {
        if (std::strcmp(*member, user.pw_name) != 0) return false;
    }
    return true;
}

std::string judge(const fs::path& path) {
    struct stat status;
    if (stat(path.c_str(), &status) != 0)
        return fmt::format("cannot look at {}: {}", path.string(), std::strerror(errno));
    if (status.st_uid != 0 && status.st_uid != geteuid()) {
        return fmt::format("{} belongs to user {}; expected root or the user who runs this ({})", path.string(),
                           status.st_uid, geteuid());
    }
    if ((status.st_mode & S_IWOTH) || ((status.st_mode & S_IWGRP) && !is_own_group(status.st_gid))) {
        return fmt::format("others may write to {} (mode {:o}): take that away with chmod go-w", path.string(),
                           status.st_mode & 07777);
    }
    return {};
}

}  // namespace

std::string why_distrust(const fs::path& file) {
    for (const fs::path& path : {file, file.parent_path()}) {
        if (std::string why = judge(path); !why.empty()) return why;
    }
    // Of folders further up only permission to replace a folder of the path matters, which a sticky folder denies.
    for (fs::path folder = file.parent_path().parent_path();; folder = folder.parent_path()) {
        struct stat status;
        if (stat(folder.c_str(), &status) != 0) {
            return fmt::format("cannot look at {}: {}", folder.string(), std::strerror(errno));
        }
        if ((status.st_mode & S_IWOTH) && !(status.st_mode & S_ISVTX)) {
            return fmt::format("everybody may write to {}, a folder above it (mode {:o})", folder.string(),
                               status.st_mode & 07777);
        }
        if (folder == folder.parent_path()) return {};
    }
}

}  // namespace tessera
