// The body of a response that may be many times the request.
#pragma once

#include "apps/server/byte_budget.hpp"

#include <string>
#include <string_view>

namespace tessera::server {

// Memory of what exceeds kUncounted counts in a budget while the body grows, so that small responses are never refused.
// One thread at a time.
class CountedBody {
  public:
    static constexpr size_t kUncounted = 1 << 20;

    // `field`: of the request that the response follows from. `memory` outlives this.
    CountedBody(ByteBudget& memory, std::string_view field) : held_(memory), field_(field) {}

    // Throws ApiError: 400 where the response would be larger than the whole budget, 503 where others hold it.
    void append(std::string_view part);
    // Of memory beside the body.
    void count(uint64_t bytes);

    std::string take() { return std::move(text_); }

  private:
    HeldBytes held_;
    std::string_view field_;
    std::string text_;
};

}  // namespace tessera::server
