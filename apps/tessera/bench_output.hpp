// Results of `tessera bench` as a table or for programs: the columns that users of llama-bench know.
#pragma once

#include <boost/json/object.hpp>

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::app {

enum class BenchFormat { kMarkdown, kCsv, kJson, kJsonLines };

// One test: n_prompt, n_gen, n_depth, test, avg_ts, stddev_ts, samples_ts and the environment, in the order of the
// columns of CSV.
using BenchRecord = boost::json::object;

// Writes each record as it comes, to an open file that outlives it. One thread.
class BenchWriter {
  public:
    // `columns`: fields that a table shows besides model, size, params, backend, threads, test and speed, of which
    // params, backend and size are left out in this order where the table would exceed 80 columns. `test_width`: of the
    // longest name of a test.
    BenchWriter(BenchFormat format, std::FILE* out, std::vector<std::string> columns, size_t test_width);

    void add(const BenchRecord& record);
    // After the last record.
    void finish();

  private:
    struct Column {
        std::string_view field, title;
        bool left;
        size_t width;
    };
    void write(std::string_view text);
    void choose_columns(const BenchRecord& record);

    BenchFormat format_;
    std::FILE* out_;
    std::vector<std::string> fields_;
    size_t test_width_;
    std::vector<Column> columns_;  // of a table; chosen for the first record
    size_t count_ = 0;
};

}  // namespace tessera::app
