// How many requests wait, of each client and of all.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace tessera::session {

// What waits, of one client or of all.
struct Waiting {
    size_t requests = 0;
    uint64_t tokens = 0;  // of their prompts
    bool operator==(const Waiting&) const = default;
};

// Kept as requests come and leave, so that a step costs nothing for those that wait. One thread at a time.
class WaitingCounts {
  public:
    void add(std::string_view client, const Waiting& more) {
        auto at = by_client_.find(client);
        if (at == by_client_.end()) at = by_client_.emplace(std::string(client), Waiting()).first;
        for (Waiting* count : {&at->second, &all_}) {
            count->requests += more.requests;
            count->tokens += more.tokens;
        }
    }
    // Of what has been added.
    void remove(std::string_view client, const Waiting& less) {
        const auto at = by_client_.find(client);
        if (at == by_client_.end()) return;
        for (Waiting* count : {&at->second, &all_}) {
            count->requests -= std::min(count->requests, less.requests);
            count->tokens -= std::min(count->tokens, less.tokens);
        }
        if (at->second.requests == 0) by_client_.erase(at);
    }

    const Waiting& all() const noexcept { return all_; }
    Waiting of(std::string_view client) const {
        const auto at = by_client_.find(client);
        return at == by_client_.end() ? Waiting() : at->second;
    }
    size_t clients() const noexcept { return by_client_.size(); }

  private:
    std::map<std::string, Waiting, std::less<>> by_client_;
    Waiting all_;
};

}  // namespace tessera::session
