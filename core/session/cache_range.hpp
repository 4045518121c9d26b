// Advice for answers that are no numbers, where the cache's types may be the cause.
#pragma once

#include "core/base/error.hpp"
#include "core/plan/options.hpp"

namespace tessera::session {

// Returns the error of check_logits() with the advice to take a cache type of a wider range, where those of the options
// cannot hold all values of a 32-bit float; other errors as they are.
Error with_cache_advice(const Error& error, const PlanOptions& options);

}  // namespace tessera::session
