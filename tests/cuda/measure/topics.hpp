// What is measured, by topic. Each writes its lines through Bench::report; all may throw sdk::Failure.
#pragma once

#include "bench.hpp"

#include <tessera/cuda/images.hpp>

#include <string>
#include <vector>

namespace tessera::test {

struct Format {
    tsr_type type;
    const char* name;
};
// The formats that files in circulation use most.
const std::vector<Format>& common_formats();

// Copies within the card; multiply-adds by each instruction that `module`, or one of nullptr, has a kernel for.
void measure_rates(Bench& bench, const cuda::Module* module);
// What kernels, copies and loads cost beside their work. `module` as above.
void measure_latencies(Bench& bench, const cuda::Module* module);
// Products of one, few and many rows; norms and sums.
void measure_products(Bench& bench);
void measure_rows(Bench& bench);
// Products with experts by ids, and whole feed-forward parts.
void measure_experts(Bench& bench);
// One token and prompts, at depths.
void measure_attention(Bench& bench);

}  // namespace tessera::test
