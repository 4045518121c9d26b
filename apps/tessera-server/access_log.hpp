// One line of JSON for each request.
#pragma once

#include "apps/tessera-server/exchange.hpp"

#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace tessera::server {

struct Access {
    const HttpRequest* request;
    unsigned status;     // 499: the client went before the answer ended
    uint64_t bytes;      // of the answer, header included
    double seconds;      // from the request's header to the answer's end
    const Usage* usage;  // nullptr: the request generated nothing
};

// Nothing of a prompt, an answer or a key is written. One thread at a time.
class AccessLog {
  public:
    // `file`: "-" is standard output; none: nothing is written. Throws Error if it cannot be opened.
    explicit AccessLog(const std::optional<std::filesystem::path>& file);
    void write(const Access& access);
    // Opens the file anew, after another program has moved it.
    void reopen();

  private:
    struct Close {
        void operator()(std::FILE* file) const noexcept;
    };

    std::optional<std::filesystem::path> path_;
    std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace tessera::server
