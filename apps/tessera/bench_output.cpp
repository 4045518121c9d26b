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

constexpr size_t kTableColumns = 80;

// The columns of a table, in their order. `width`: the minimum.
struct Field {
    std::string_view name, title;
    size_t width = 0;
    bool left = false;
};
constexpr std::array<Field, 18> kFields = {{
    {"model_type", "model", 0, true},
    {"model_size", "size", 9},
    {"model_n_params", "params", 8},
    {"backend", "backend", 0, true},
    {"n_gpu_layers", "ngl", 3},
    {"n_cpu_moe", "ncmoe", 3},
    {"n_threads", "threads", 3},
    {"n_batch", "n_batch", 5},
    {"n_ubatch", "n_ubatch", 5},
    {"type_k", "type_k", 6},
    {"type_v", "type_v", 6},
    {"flash_attn", "fa", 2},
    {"mla_attn", "mla", 3},
    {"attn_max_batch", "amb", 5},
    {"ser", "ser", 7},
    {"use_mmap", "mmap", 4},
    {"test", "test"},
    {"avg_ts", "t/s", 14},
}};
constexpr std::array<std::string_view, 7> kAlways = {"model_type", "model_size", "model_n_params", "backend",
                                                     "n_threads",  "test",       "avg_ts"};
// What a table can do without, first to last.
constexpr std::array<std::string_view, 3> kDispensable = {"model_n_params", "backend", "model_size"};

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

// Of UTF-8.
size_t characters(std::string_view text) {
    return static_cast<size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string in_quotes(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
    return out + '"';
}

// Samples are lists, which a CSV row cannot hold.
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

BenchWriter::BenchWriter(BenchFormat format, std::FILE* out, std::vector<std::string> columns, size_t test_width)
    : format_(format), out_(out), fields_(std::move(columns)), test_width_(test_width) {
    fields_.insert(fields_.end(), kAlways.begin(), kAlways.end());
}

void BenchWriter::choose_columns(const BenchRecord& record) {
    size_t width = 1;
    for (const Field& field : kFields) {
        if (std::ranges::find(fields_, field.name) == fields_.end()) continue;
        const size_t test = field.name == "test" ? test_width_ : 0;
        columns_.push_back({field.name, field.title, field.left,
                            std::max({field.title.size(), field.width, test, characters(cell(record, field.name))})});
        width += columns_.back().width + 3;
    }
    for (const std::string_view name : kDispensable) {
        if (width <= kTableColumns) return;
        const auto column = std::ranges::find(columns_, name, &Column::field);
        width -= column->width + 3;
        columns_.erase(column);
    }
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
    if (first) choose_columns(record);
    std::string title = "|", rule = "|", line = "|";
    for (const Column& column : columns_) {
        const auto padded = [&](std::string_view text) {
            return column.left ? fmt::format(" {:<{}} |", text, column.width)
                               : fmt::format(" {:>{}} |", text, column.width);
        };
        const std::string dashes(column.width - 1, '-');
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
