#include "apps/tessera-server/access_log.hpp"

#include "apps/tessera-server/json_text.hpp"
#include "core/base/error.hpp"
#include "core/base/system_error.hpp"

#include <spdlog/fmt/chrono.h>

#include <chrono>

namespace tessera::server {

void AccessLog::Close::operator()(std::FILE* file) const noexcept {
    if (file != stdout) std::fclose(file);
}

AccessLog::AccessLog(const std::optional<std::filesystem::path>& file) : path_(file) {
    reopen();
}

void AccessLog::reopen() {
    if (!path_) return;
    if (*path_ == "-") {
        file_.reset(stdout);
        return;
    }
    std::FILE* const opened = std::fopen(path_->c_str(), "ae");
    if (!opened) fail_system(errno, *path_, "write the access log");
    file_.reset(opened);
}

void AccessLog::write(const Access& access) {
    if (!file_) return;
    const auto now = std::chrono::system_clock::now();
    std::string line = fmt::format(R"({{"time":"{:%FT%T}Z","id":{},"client":)",
                                   std::chrono::floor<std::chrono::milliseconds>(now), access.request->number);
    append_json(line, access.request->address);
    line += R"(,"method":)";
    append_json(line, access.request->method);
    line += R"(,"path":)";
    append_json(line, access.request->path);
    line += fmt::format(R"(,"status":{},"bytes":{},"seconds":{:.4f})", access.status, access.bytes, access.seconds);
    if (const Usage* usage = access.usage) {
        line += fmt::format(R"(,"prompt_tokens":{},"cached_tokens":{},"new_tokens":{},"first_token_seconds":{:.4f},)",
                            usage->prompt_tokens, usage->reused_tokens, usage->new_tokens, usage->first_token_seconds);
        line += R"("finish":)";
        append_json(line, usage->finish);
    }
    line += "}\n";
    std::fwrite(line.data(), 1, line.size(), file_.get());
    std::fflush(file_.get());
}

}  // namespace tessera::server
