// Errors that a client is told, as the OpenAI API has them.
#pragma once

#include "apps/server/exchange.hpp"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::server {

class ApiError : public std::runtime_error {
  public:
    // `parameter`: the field of the request that is meant; empty: none. `code`: for programs, as
    // "context_length_exceeded"; empty: none.
    ApiError(unsigned status, const std::string& message, std::string parameter = {}, std::string code = {})
        : std::runtime_error(message), status_(status), parameter_(std::move(parameter)), code_(std::move(code)) {}

    unsigned status() const noexcept { return status_; }
    const std::string& parameter() const noexcept { return parameter_; }
    const std::string& code() const noexcept { return code_; }

    // Seconds after which trying again makes sense; 0: not told.
    unsigned retry_after = 0;
    // In place of the type that follows from the status; empty: that one.
    std::string type;
    std::string details;  // JSON of an object, for APIs whose errors have one; empty: none
    std::vector<std::pair<std::string_view, uint64_t>> more;  // further members of the JSON, with static names

  private:
    unsigned status_;
    std::string parameter_, code_;
};

// "rate_limit_error" and the like, as the OpenAI API calls them.
std::string_view error_type_of(unsigned status);

// {"error":{"message":...,"type":...,"param":...,"code":...}}.
std::string json_of(const ApiError& error);

// A request with a prompt of so many tokens, or `at_least` so many, for a context of fewer; llama-server's words, type
// and numbers, which clients that shorten conversations by themselves look for.
ApiError context_exceeded(uint64_t prompt_tokens, uint32_t context, bool at_least = false);

HttpResponse to_response(const ApiError& error);

// From whatever is being caught: an ApiError as it is; an Error of the core, invalid JSON, lack of memory as what they
// mean for the client; all else 500.
ApiError current_api_error();

}  // namespace tessera::server
