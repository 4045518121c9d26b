#include "apps/server/client_limits.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace tessera::server {
namespace {

constexpr size_t kManyAccounts = 1024;
constexpr double kMinute = 60;
constexpr double kNewest = 0.25;         // weight of the newest time in a mean
constexpr double kLongestForPlace = 60;  // seconds; an estimate, so worth another try
constexpr std::string_view kNames = "running, waiting, requests-per-minute or tokens-per-minute";

std::optional<uint64_t> parse_number(std::string_view name, std::string_view text, uint64_t minimum, uint64_t maximum) {
    if (text == "none") return std::nullopt;
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number < minimum || number > maximum) {
        fail(TSR_INVALID_ARGUMENT, "{}: expected a whole number from {} to {} or none, found '{}'", name, minimum,
             maximum, printable(text, 40));
    }
    return number;
}

// What has been filled since then.
void fill(std::optional<double>& left, std::optional<uint64_t> limit, double seconds) {
    if (!limit) left.reset();
    if (!left) return;
    const auto whole = static_cast<double>(*limit);
    *left += seconds * whole / kMinute;
    if (*left >= whole) left.reset();
}

// Takes from a bucket; nothing in it counts as full.
void take(std::optional<double>& left, std::optional<uint64_t> limit, uint64_t amount) {
    if (!limit) return;
    left = left.value_or(static_cast<double>(*limit)) - static_cast<double>(amount);
}

// Seconds until the bucket has so much; 0: it has.
double wait(std::optional<double> left, std::optional<uint64_t> limit, uint64_t amount) {
    if (!limit || !left) return 0;
    const double wanted = static_cast<double>(std::min(amount, *limit));
    return *left >= wanted ? 0 : (wanted - *left) * kMinute / static_cast<double>(*limit);
}

ApiError too_many(const std::string& what, double seconds) {
    const auto whole = static_cast<unsigned>(std::clamp(std::ceil(seconds), 1.0, 86400.0));
    ApiError error(429, fmt::format("{}; try again in {} s", what, whole), {}, "rate_limit_exceeded");
    error.retry_after = whole;
    return error;
}

}  // namespace

ClientLimits parse_client_limits(std::string_view text, const ClientLimits& base) {
    constexpr std::string_view separators = " \t\r,";
    ClientLimits limits = base;
    for (;;) {
        text.remove_prefix(std::min(text.find_first_not_of(separators), text.size()));
        if (text.empty()) return limits;
        const std::string_view word = text.substr(0, text.find_first_of(separators));
        text.remove_prefix(word.size());
        const size_t equals = std::min(word.find('='), word.size());
        const std::string_view name = word.substr(0, equals), value = word.substr(std::min(equals + 1, word.size()));
        const auto places = [&](uint64_t minimum) -> std::optional<uint32_t> {
            const auto number = parse_number(name, value, minimum, 1 << 20);
            return number ? std::optional(static_cast<uint32_t>(*number)) : std::nullopt;
        };
        constexpr uint64_t kMost = 1'000'000'000'000;
        if (name == "running") {
            limits.running = places(1);
        } else if (name == "waiting") {
            limits.waiting = places(0);
        } else if (name == "requests-per-minute") {
            limits.requests_per_minute = parse_number(name, value, 1, kMost);
        } else if (name == "tokens-per-minute") {
            limits.tokens_per_minute = parse_number(name, value, 1, kMost);
        } else {
            fail(TSR_INVALID_ARGUMENT, "a client's limit: expected {}, found '{}'", kNames, printable(name, 40));
        }
    }
}

ClientAccounts::Ticket::~Ticket() {
    give_back();
}

void ClientAccounts::Ticket::give_back(uint32_t answers) {
    if (answers_ == 0) return;
    const std::scoped_lock lock(accounts_.mutex_);
    Account& account = accounts_.accounts_[client_];
    account.answers -= std::min(answers, answers_);
    answers_ -= std::min(answers, answers_);
    if (answers_ > 0) return;
    const double seconds = std::max(0.0, std::chrono::duration<double>(Clock::now() - since_).count());
    account.place_seconds = std::lerp(account.place_seconds.value_or(seconds), seconds, kNewest);
}

void ClientAccounts::Ticket::use(uint64_t tokens) {
    const std::scoped_lock lock(accounts_.mutex_);
    Account& account = accounts_.accounts_[client_];
    take(account.tokens, account.limits.tokens_per_minute, tokens);
}

ClientAccounts::Account& ClientAccounts::account_of(const std::string& client, const ClientLimits& limits,
                                                    Clock::time_point now) {
    if (accounts_.size() >= kManyAccounts && !accounts_.contains(client)) forget_idle(now);
    const auto [at, made] = accounts_.try_emplace(client);
    Account& account = at->second;
    const double seconds = made ? 0 : std::chrono::duration<double>(now - account.filled).count();
    fill(account.requests, limits.requests_per_minute, seconds);
    fill(account.tokens, limits.tokens_per_minute, seconds);
    account.limits = limits;
    account.filled = now;
    return account;
}

// Of clients without keys there is one for each address.
void ClientAccounts::forget_idle(Clock::time_point now) {
    std::erase_if(accounts_, [&](const auto& pair) {
        const Account& account = pair.second;
        const double seconds = std::chrono::duration<double>(now - account.filled).count();
        std::optional<double> requests = account.requests, tokens = account.tokens;
        fill(requests, account.limits.requests_per_minute, seconds);
        fill(tokens, account.limits.tokens_per_minute, seconds);
        return account.answers == 0 && !requests && !tokens;
    });
}

std::optional<ApiError> ClientAccounts::refusal(const Account& account, uint32_t places, uint32_t answers,
                                                uint64_t prompt_tokens) {
    const ClientLimits& limits = account.limits;
    if (limits.waiting) {
        const uint64_t allowed = uint64_t{limits.running.value_or(places)} + *limits.waiting;
        if (answers > allowed)
            return ApiError(400, fmt::format("n: {} answers; this client may have {} at once", answers, allowed), "n");
        const uint64_t wanted = account.answers + uint64_t{answers};
        if (wanted > allowed) {
            // Places that are kept for so long on average become free one after the other (Little's law).
            const double each = account.place_seconds.value_or(0) / std::max(account.answers, 1u);
            return too_many(fmt::format("{} answers for this client are being made or wait, of {} that it may have",
                                        account.answers, allowed),
                            std::min(static_cast<double>(wanted - allowed) * each, kLongestForPlace));
        }
    }
    if (const double seconds = wait(account.requests, limits.requests_per_minute, answers); seconds > 0)
        return too_many(fmt::format("this client may send {} requests a minute", *limits.requests_per_minute), seconds);
    if (const double seconds = wait(account.tokens, limits.tokens_per_minute, std::max<uint64_t>(prompt_tokens, 1));
        seconds > 0)
        return too_many(fmt::format("this client may use {} tokens a minute", *limits.tokens_per_minute), seconds);
    return std::nullopt;
}

std::unique_ptr<ClientAccounts::Ticket> ClientAccounts::admit(const std::string& client, const ClientLimits& limits,
                                                              uint32_t places, uint32_t answers, uint64_t prompt_tokens,
                                                              Clock::time_point now) {
    const std::scoped_lock lock(mutex_);
    Account& account = account_of(client, limits, now);
    if (const auto error = refusal(account, places, answers, prompt_tokens)) {
        refused_ += error->status() == 429 ? 1 : 0;
        throw ApiError(*error);
    }
    std::unique_ptr<Ticket> ticket(new Ticket(*this, client, answers, now));
    account.answers += answers;
    take(account.requests, limits.requests_per_minute, answers);
    take(account.tokens, limits.tokens_per_minute, prompt_tokens);
    return ticket;
}

std::optional<ApiError> ClientAccounts::refusal(const std::string& client, const ClientLimits& limits, uint32_t places,
                                                Clock::time_point now) {
    if (limits == ClientLimits{}) return std::nullopt;
    const std::scoped_lock lock(mutex_);
    auto error = refusal(account_of(client, limits, now), places, 1, 1);
    if (error && error->status() != 429) error.reset();
    if (error) ++refused_;
    return error;
}

uint64_t ClientAccounts::refused() const {
    const std::scoped_lock lock(mutex_);
    return refused_;
}

}  // namespace tessera::server
