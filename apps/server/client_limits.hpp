// What each client may use at once and in a minute.
#pragma once

#include "apps/server/api_error.hpp"

#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace tessera::server {

// Nothing: no limit.
struct ClientLimits {
    std::optional<uint32_t> running;  // answers in steps at once; more of them wait
    std::optional<uint32_t> waiting;  // answers that wait; without `running`, beside as many as the server works on
    std::optional<uint64_t> requests_per_minute;  // each of `n` answers is one
    std::optional<uint64_t> tokens_per_minute;    // of prompts and answers, cached ones included

    bool operator==(const ClientLimits&) const = default;
};

// "running=4 waiting=16 requests-per-minute=60 tokens-per-minute=60000", separated by blanks or commas; what is not
// named stays as in `base`. "none" for a number: no limit. Throws Error(TSR_INVALID_ARGUMENT).
ClientLimits parse_client_limits(std::string_view text, const ClientLimits& base = {});

// What clients have used, by name. A minute's share is a bucket that fills evenly: who has used nothing for a minute
// may use all of it at once. A prompt counts when its request is accepted, an answer when it ends; so the last answer
// may exceed the share, and what it has exceeded delays the next. Any thread.
class ClientAccounts {
  public:
    using Clock = std::chrono::steady_clock;

    // A request that was accepted; the places of its answers are free again when they are given back, or this is
    // destroyed.
    class Ticket {
      public:
        ~Ticket();
        Ticket(const Ticket&) = delete;
        Ticket& operator=(const Ticket&) = delete;
        // Tokens of answers count.
        void use(uint64_t tokens);
        // The places of so many answers, or of those that still have theirs.
        void give_back(uint32_t answers = std::numeric_limits<uint32_t>::max());

      private:
        friend class ClientAccounts;
        Ticket(ClientAccounts& accounts, std::string client, uint32_t answers, Clock::time_point since)
            : accounts_(accounts), client_(std::move(client)), answers_(answers), since_(since) {}
        ClientAccounts& accounts_;
        const std::string client_;
        uint32_t answers_;  // that have their places
        const Clock::time_point since_;
    };

    // Counts a request with a prompt of so many tokens and so many answers (n). `places`: answers that the server works
    // on at once. Throws ApiError: 429 with the time after which to try again; 400 for more answers than the client may
    // ever have. The ticket must not outlive the accounts.
    std::unique_ptr<Ticket> admit(const std::string& client, const ClientLimits& limits, uint32_t places,
                                  uint32_t answers, uint64_t prompt_tokens, Clock::time_point now = Clock::now());
    // Why not even the shortest request would be admitted; nothing: it would be.
    std::optional<ApiError> refusal(const std::string& client, const ClientLimits& limits, uint32_t places,
                                    Clock::time_point now = Clock::now());

    uint64_t refused() const;  // by admit() and refusal(), with 429

  private:
    struct Account {
        uint32_t answers = 0;                    // being made or waiting
        std::optional<double> place_seconds;     // for which requests have had their places, the last ones most
        std::optional<double> requests, tokens;  // left in the bucket; nothing: it is full
        ClientLimits limits;
        Clock::time_point filled;
    };

    Account& account_of(const std::string& client, const ClientLimits& limits, Clock::time_point now);
    std::optional<ApiError> refusal(const Account& account, uint32_t places, uint32_t answers, uint64_t prompt_tokens);
    void forget_idle(Clock::time_point now);

    mutable std::mutex mutex_;
    std::map<std::string, Account> accounts_;
    uint64_t refused_ = 0;
};

}  // namespace tessera::server
