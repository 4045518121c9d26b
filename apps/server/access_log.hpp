// One line of JSON for each request.
#pragma once

#include "apps/server/exchange.hpp"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace tessera::server {

struct Access {
    const HttpRequest* request;
    unsigned status;     // 499: the client went before the response ended
    uint64_t bytes;      // of the response, header included
    double seconds;      // from the request's header to the response's end
    const Usage* usage;  // nullptr: the request generated nothing
};

// Nothing of a prompt, a response or a key is written. A thread of its own writes: no caller waits for a disk or a
// pipe. Lines for which there is no room meanwhile, or which cannot be written, are dropped and counted. Any thread.
class AccessLog {
  public:
    // `file`: "-" is standard output; none: nothing is written. Throws Error if it cannot be opened.
    explicit AccessLog(const std::optional<std::filesystem::path>& file);
    // Writes what waits, for a second at most.
    ~AccessLog();

    void write(const Access& access);
    // Opens the file anew, after another program has moved it; a message of the log says if that fails, and the file
    // stays the one that it was.
    void reopen();
    uint64_t dropped() const;

  private:
    int open_file() const;
    void run();
    // What is left: it could not be written, or the log ends and nobody reads.
    std::string_view write_all(std::string_view text);
    bool ends_within_line() const;

    const std::optional<std::filesystem::path> path_;
    int descriptor_ = -1;  // of the thread that writes
    bool torn_ = false;    // of the thread that writes: the file ends within a line
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::string waiting_;
    uint64_t dropped_ = 0;
    bool reopen_ = false;
    std::optional<std::chrono::steady_clock::time_point> end_;  // the log ends
    std::thread thread_;
};

}  // namespace tessera::server
