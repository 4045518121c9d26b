// Speed against depth: the rows of `tessera sweep` and of files that it or llama-sweep-bench wrote.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tessera::app {

struct SweepRow {
    uint32_t prompt = 0;      // tokens
    uint32_t generation = 0;  // tokens
    uint32_t depth = 0;       // cached tokens before them
    double prompt_seconds = 0;
    double generation_seconds = 0;

    double prompt_speed() const { return prompt_seconds > 0 ? prompt / prompt_seconds : 0; }
    double generation_speed() const { return generation_seconds > 0 ? generation / generation_seconds : 0; }
};

struct SweepResults {
    std::string name;
    std::vector<SweepRow> rows;
};

// Title and rule of the table, and a line of it; a line of JSON with the names that llama-sweep-bench uses. Each ends
// in '\n'.
std::string sweep_table_head();
std::string sweep_table_line(const SweepRow& row);
std::string sweep_json_line(const SweepRow& row);

// The rows of a file of either format, other lines ignored; the name is that of the file. Throws Error: what
// reading the file throws, and TSR_CORRUPT_DATA if it holds no row.
SweepResults read_sweep_results(const std::filesystem::path& file);

// A drawing of all results as SVG: prompt and generation, tokens per second over depth.
std::string sweep_plot(const std::vector<SweepResults>& results);

}  // namespace tessera::app
