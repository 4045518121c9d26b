// Results of measuring commands: formats that are written, formats that are read, and what is drawn.
#include "apps/tessera/bench_output.hpp"
#include "apps/tessera/measuring.hpp"
#include "apps/tessera/sweep_results.hpp"
#include "core/base/error.hpp"
#include "tests/temporary_folder.hpp"

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <regex>
#include <string>

namespace tessera::app {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ResultsTest : public testing::Test {
  protected:
    std::string file(const std::string& name, const std::string& text) {
        return folder_.write("tessera-results-" + name, text);
    }

  private:
    const test::TemporaryFolder folder_;
};

TEST_F(ResultsTest, BothFormsOfASweepAreReadBack) {
    const std::vector<SweepRow> rows = {{512, 128, 0, 10.5, 7.25}, {512, 128, 512, 11, 8.5}};
    std::string lines = "loaded something {\n\n", table = sweep_table_head();
    for (const SweepRow& row : rows) {
        lines += sweep_json_line(row);
        table += sweep_table_line(row);
    }
    for (const std::string& path :
         {file("rows.jsonl", lines), file("rows.md", "main: n_kv_max = 1024\n" + table + "\nllama_print_timings\n")}) {
        const SweepResults results = read_sweep_results(path);
        EXPECT_EQ(results.name, "tessera-results-rows");
        ASSERT_EQ(results.rows.size(), 2u) << path;
        EXPECT_EQ(results.rows[1].depth, 512u);
        EXPECT_EQ(results.rows[0].prompt, 512u);
        EXPECT_NEAR(results.rows[0].prompt_speed(), 512 / 10.5, 0.01);
        EXPECT_NEAR(results.rows[1].generation_speed(), 128 / 8.5, 0.01);
    }
}

TEST_F(ResultsTest, LinesOfOthersAreReadAndOrdered) {
    const SweepResults results =
        read_sweep_results(file("other.jsonl",
                                "{\"n_kv_max\": 1024, \"flash_attn\": 1, \"pp\": 512, \"tg\": 128, \"n_kv\": 512, "
                                "\"t_pp\": 12.0, \"speed_pp\": 42.6, \"t_tg\": 8.0, \"speed_tg\": 16.0 }\n"
                                "{\"pp\": 512, \"tg\": 128, \"n_kv\": 0, \"t_pp\": 10, \"t_tg\": 7}\n"));
    ASSERT_EQ(results.rows.size(), 2u);
    EXPECT_EQ(results.rows[0].depth, 0u);
    EXPECT_DOUBLE_EQ(results.rows[1].generation_speed(), 16.0);
}

TEST_F(ResultsTest, FilesWithoutRowsAreRefusedByName) {
    for (const std::string& text : {std::string(""), std::string("| a | b |\n"), std::string("{\"n_kv\": 3}\n"),
                                    std::string("{\"n_kv\": -1, \"pp\": 1, \"tg\": 1, \"t_pp\": 1, \"t_tg\": 1}\n"),
                                    std::string("| 1 | 1 | 1e99 | 1 | 1 | 1 | 1 |\n")}) {
        try {
            read_sweep_results(file("bad", text));
            FAIL() << text;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), TSR_CORRUPT_DATA);
            EXPECT_THAT(error.what(), HasSubstr("tessera-results-bad"));
        }
    }
    EXPECT_THROW(read_sweep_results("/proc/nonexistent"), Error);
}

TEST(SweepPlot, DrawsEveryPointInsideItsFrame) {
    SweepResults one{"ours", {}}, two{"a<b>&\"c\"", {}};
    for (uint32_t depth = 0; depth <= 4096; depth += 512) {
        one.rows.push_back({512, 128, depth, 7.0 + depth / 1000.0, 6.0 + depth / 700.0});
        two.rows.push_back({512, 128, depth, 11.0 + depth / 500.0, 7.0});
    }
    const std::string svg = sweep_plot({one, two});
    EXPECT_THAT(svg, testing::StartsWith("<svg "));
    EXPECT_THAT(svg, HasSubstr("a&lt;b>&amp;&quot;c&quot;"));
    const std::regex size("width=\"(\\d+)\" height=\"(\\d+)\""), circle("<circle cx=\"([0-9.]+)\" cy=\"([0-9.]+)\"");
    std::smatch found;
    ASSERT_TRUE(std::regex_search(svg, found, size));
    const double width = std::stod(found[1]), height = std::stod(found[2]);
    size_t points = 0;
    for (std::sregex_iterator at(svg.begin(), svg.end(), circle), end; at != end; ++at, ++points) {
        EXPECT_GE(std::stod((*at)[1]), 0);
        EXPECT_LE(std::stod((*at)[1]), width);
        EXPECT_GE(std::stod((*at)[2]), 0);
        EXPECT_LE(std::stod((*at)[2]), height);
    }
    EXPECT_EQ(points, 2u * 2 * 9);
    // A single row at depth 0, and rows without a time, are drawn as well as can be.
    EXPECT_THAT(sweep_plot({{"one", {{512, 128, 0, 1, 0}}}}), testing::EndsWith("</svg>\n"));
    EXPECT_THAT(sweep_plot({}), testing::Not(HasSubstr("nan")));
}

TEST(Measuring, MeanAndDeviation) {
    EXPECT_EQ(spread_of({}).mean, 0);
    EXPECT_EQ(spread_of({3}).deviation, 0);
    EXPECT_DOUBLE_EQ(spread_of({1, 2, 3}).mean, 2);
    EXPECT_DOUBLE_EQ(spread_of({1, 2, 3}).deviation, 1);
}

BenchRecord record_of(double speed) {
    return {{"backend", "CPU"},
            {"model_type", "deepseek2 \"q4_0\""},
            {"model_size", uint64_t{3} << 30},
            {"model_n_params", uint64_t{15700000000}},
            {"type_k", "q8_0"},
            {"n_threads", 2},
            {"test", "pp512 @ d64"},
            {"avg_ts", speed},
            {"stddev_ts", 0.5},
            {"samples_ts", boost::json::array{1.0, 2.0}}};
}

std::string written(BenchFormat format, size_t records, std::vector<std::string> columns = {},
                    std::string_view model = "deepseek2 \"q4_0\"", std::string_view test = "pp512 @ d64") {
    std::FILE* file = std::tmpfile();
    BenchWriter writer(format, file, std::move(columns), test.size());
    for (size_t i = 0; i < records; ++i) {
        BenchRecord record = record_of(10.0 + static_cast<double>(i));
        record["model_type"] = model;
        record["test"] = test;
        writer.add(record);
    }
    writer.finish();
    std::string text(static_cast<size_t>(std::ftell(file)), '\0');
    std::rewind(file);
    EXPECT_EQ(std::fread(text.data(), 1, text.size(), file), text.size());
    std::fclose(file);
    return text;
}

TEST(BenchWriter, Forms) {
    const std::string table = written(BenchFormat::kMarkdown, 2, {"type_k"});
    EXPECT_THAT(table, HasSubstr("| model            | threads | type_k |        test |            t/s |"));
    EXPECT_THAT(table, HasSubstr("|       2 |   q8_0 | pp512 @ d64 |   11.00 ± 0.50 |"));
    // Columns are left out where a line would be longer than 80 characters, params first.
    const std::string all = written(BenchFormat::kMarkdown, 1, {}, "llama", "pp512");
    EXPECT_THAT(all, HasSubstr("| llama |  3.00 GiB |  15.70 B | CPU     |"));
    const std::string some = written(BenchFormat::kMarkdown, 1, {}, "llama q4_0", "pp512");
    EXPECT_THAT(some, AllOf(HasSubstr("3.00 GiB"), HasSubstr("backend"), Not(HasSubstr("params"))));
    EXPECT_THAT(written(BenchFormat::kMarkdown, 1), testing::Not(HasSubstr("type_k")));

    const std::string csv = written(BenchFormat::kCsv, 2);
    EXPECT_EQ(std::ranges::count(csv, '\n'), 3);
    EXPECT_THAT(csv, HasSubstr("\"deepseek2 \"\"q4_0\"\"\""));
    EXPECT_THAT(csv, testing::Not(HasSubstr("samples_ts")));

    const auto array = boost::json::parse(written(BenchFormat::kJson, 2)).as_array();
    ASSERT_EQ(array.size(), 2u);
    EXPECT_EQ(array[1].at("avg_ts").as_double(), 11.0);
    EXPECT_EQ(array[1].at("samples_ts").as_array().size(), 2u);
    EXPECT_TRUE(boost::json::parse(written(BenchFormat::kJson, 0)).as_array().empty());

    const std::string lines = written(BenchFormat::kJsonLines, 3);
    EXPECT_EQ(std::ranges::count(lines, '\n'), 3);
    EXPECT_TRUE(boost::json::parse(lines.substr(0, lines.find('\n'))).is_object());
}

}  // namespace
}  // namespace tessera::app
