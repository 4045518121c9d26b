// The lists of cases, by op. Inside this folder only.
#pragma once

#include "case.hpp"
#include "random_rows.hpp"

#include <functional>

namespace tessera::conformance {

using Use = std::function<void(Case&)>;

void attention_cases(const std::string& op, const Use& use);
void cache_write_cases(const std::string& op, const Use& use);

}  // namespace tessera::conformance
