// Results of `tessera bench` as people and programs read them: the columns that users of llama-bench know.
#pragma once

#include <boost/json/object.hpp>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::app {

enum class BenchFormat { kMarkdown, kCsv, kJson, kJsonLines };

// One test: n_prompt, n_gen, n_depth, test, avg_ts, stddev_ts, samples_ts and what it ran on, in the order of the
// columns of CSV.
using BenchRecord = boost::json::object;

// Writes each record as it comes, to an open file that outlives it. One thread.
class BenchWriter {
  public:
    // `columns`: what of a record a table shows beside model, size, params, backend, threads, test and speed.
    BenchWriter(BenchFormat format, std::FILE* out, std::vector<std::string> columns);

    void add(const BenchRecord& record);
    // After the last record.
    void finish();

  private:
    void write(std::string_view text);

    BenchFormat format_;
    std::FILE* out_;
    std::vector<std::string> columns_;
    size_t count_ = 0;
};

}  // namespace tessera::app
