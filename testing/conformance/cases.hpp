// The lists of cases, by op. Inside this folder only.
#pragma once

#include "case.hpp"
#include "random_rows.hpp"

#include <functional>

namespace tessera::conformance {

using Use = std::function<void(Case&)>;

// Of results of weights of a type: kernels may round what they multiply them with.
double tolerance_of(tsr_type type);
// Of elements of a weight, so that products with rows of this length are about 1.
float weight_size(int64_t row);

void attention_cases(const std::string& op, const Use& use);
void cache_write_cases(const std::string& op, const Use& use);

}  // namespace tessera::conformance
