#include "apps/tessera/bench_output.hpp"

#include "apps/tessera/output.hpp"
#include "core/base/error.hpp"

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include <algorithm>
#include <array>

namespace tessera::app {
namespace {

namespace json = boost::json;

// Of a table: how a field of a record is titled, and how wide.
struct Column {
    std::string_view field, title;
    int width;
    bool left = false;
};
constexpr std::array<Column, 18> kColumns = {{
    {"model_type", "model", 24, true},
    {"model_size", "size", 10},
    {"model_n_params", "params", 10},
    {"backend", "backend", 10, true},
    {"n_gpu_layers", "ngl", 3},
    {"n_cpu_moe", "ncmoe", 5},
    {"n_threads", "threads", 7},
    {"n_batch", "n_batch", 7},
    {"n_ubatch", "n_ubatch", 8},
    {"type_k", "type_k", 6},
    {"type_v", "type_v", 6},
    {"flash_attn", "fa", 2},
    {"mla_attn", "mla", 3},
    {"attn_max_batch", "amb", 5},
    {"ser", "ser", 7},
    {"use_mmap", "mmap", 4},
    {"test", "test", 15},
    {"avg_ts", "t/s", 16},
}};
constexpr std::array<std::string_view, 7> kAlways = {"model_type", "model_size", "model_n_params", "backend",
                                                     "n_threads",  "test",       "avg_ts"};

std::string plain(const json::value& value) {
    if (const json::string* text = value.if_string()) return std::string(*text);
    if (value.is_bool()) return value.get_bool() ? "1" : "0";
    if (value.is_double()) return fmt::format("{:.6f}", value.get_double());
    return json::serialize(value);
}

std::string cell(const BenchRecord& record, std::string_view field) {
    const auto number = [&](std::string_view name) { return record.at(name).to_number<double>(); };
    if (field == "model_size") {
        const double bytes = number(field);
        return bytes < (1 << 30) ? fmt::format("{:.2f} MiB", bytes / (1 << 20))
                                 : fmt::format("{:.2f} GiB", bytes / (1 << 30));
    }
    if (field == "model_n_params")
        return number(field) < 1e9 ? fmt::format("{:.2f} M", number(field) / 1e6)
                                   : fmt::format("{:.2f} B", number(field) / 1e9);
    if (field == "avg_ts") return fmt::format("{:.2f} ± {:.2f}", number(field), number("stddev_ts"));
    return plain(record.at(field));
}

std::string in_quotes(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
    return out + '"';
}

// Samples are lists, which lines of CSV do not have.
std::string csv_line(const BenchRecord& record, bool names) {
    std::string line;
    for (const auto& [name, value] : record) {
        if (value.is_array()) continue;
        if (!line.empty()) line += ',';
        line += in_quotes(names ? std::string(name) : plain(value));
    }
    return line + '\n';
}

}  // namespace

BenchWriter::BenchWriter(BenchFormat format, std::FILE* out, std::vector<std::string> columns)
    : format_(format), out_(out), columns_(std::move(columns)) {
    columns_.insert(columns_.end(), kAlways.begin(), kAlways.end());
}

void BenchWriter::write(std::string_view text) {
    if (out_ == stdout) return print(text);
    std::fwrite(text.data(), 1, text.size(), out_);
    std::fflush(out_);
}

void BenchWriter::add(const BenchRecord& record) {
    const bool first = count_++ == 0;
    switch (format_) {
        case BenchFormat::kCsv:
            write((first ? csv_line(record, true) : "") + csv_line(record, false));
            return;
        case BenchFormat::kJson:
            write((first ? "[\n  " : ",\n  ") + json::serialize(record));
            return;
        case BenchFormat::kJsonLines:
            write(json::serialize(record) + '\n');
            return;
        case BenchFormat::kMarkdown:
            break;
    }
    std::string title = "|", rule = "|", line = "|";
    for (const Column& column : kColumns) {
        if (std::ranges::find(columns_, column.field) == columns_.end()) continue;
        const auto padded = [&](std::string_view text) {
            return column.left ? fmt::format(" {:<{}} |", text, column.width)
                               : fmt::format(" {:>{}} |", text, column.width);
        };
        const std::string dashes(static_cast<size_t>(column.width) - 1, '-');
        title += padded(column.title);
        rule += column.left ? fmt::format(" {}- |", dashes) : fmt::format(" {}: |", dashes);
        line += padded(cell(record, column.field));
    }
    write((first ? title + '\n' + rule + '\n' : "") + line + '\n');
}

void BenchWriter::finish() {
    if (format_ == BenchFormat::kJson) write(count_ == 0 ? "[]\n" : "\n]\n");
}

}  // namespace tessera::app
