#include "core/base/toml.hpp"

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/nearest.hpp"
#include "core/base/text.hpp"

#include <spdlog/fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>

namespace tessera {

struct TomlFile::Content {
    std::string name;
    toml::table root;
};

namespace {

constexpr size_t kMaxFileBytes = 1 << 20;
constexpr size_t kMaxStringBytes = 4096;
constexpr double kMaxSize = 1125899906842624.0;  // 2^50: products with device counts still fit 64 bits

const toml::table& as_table(const void* table) {
    return *static_cast<const toml::table*>(table);
}

std::string_view kind_name(const toml::node& node) {
    switch (node.type()) {
        case toml::node_type::table:
            return "a table";
        case toml::node_type::array:
            return "an array";
        case toml::node_type::string:
            return "a string";
        case toml::node_type::integer:
            return "an integer";
        case toml::node_type::floating_point:
            return "a number with a fraction";
        case toml::node_type::boolean:
            return "a boolean";
        default:
            return "a date or time";
    }
}

// The parser, and what frees its tree, recurse once for each level, so levels are bounded before it sees the text.
constexpr size_t kMaxBrackets = 16, kMaxDots = 16;
constexpr size_t kMaxValues = 8192;  // readers compare keys and elements pairwise
constexpr size_t kMaxKeyBytes = 1024;

// Past the string that begins at `at`. One that does not end is over with its line or the text: the parser says so.
size_t string_end(std::string_view text, size_t at) {
    const char quote = text[at];
    const std::string three(3, quote);
    const bool multiline = text.substr(at).starts_with(three);
    for (size_t i = at + (multiline ? 3 : 1); i < text.size(); ++i) {
        if (quote == '"' && text[i] == '\\') {
            ++i;
        } else if (multiline && text.substr(i).starts_with(three)) {
            // Up to two quotes before the end belong to the string.
            for (i += 3; i < text.size() && text[i] == quote;) ++i;
            return i;
        } else if (!multiline && (text[i] == quote || text[i] == '\n')) {
            return text[i] == quote ? i + 1 : i;
        }
    }
    return text.size();
}

// What is too much for the parser, and in which line; line 0: nothing is.
struct Excess {
    size_t line = 0;
    std::string what;
};
Excess find_excess(std::string_view text) {
    size_t line = 1, brackets = 0, dots = 0, values = 0, bytes = 0;
    for (size_t i = 0; i < text.size();) {
        const char c = text[i];
        if (c == '"' || c == '\'') {
            const size_t end = string_end(text, i);
            line += static_cast<size_t>(std::ranges::count(text.substr(i, end - i), '\n'));
            i = end;
            continue;
        }
        if (c == '#') {
            i = std::min(text.find('\n', i), text.size());
            continue;
        }
        ++i;
        if (++bytes > kMaxKeyBytes) return {line, fmt::format("a key or a number of more than {} bytes", kMaxKeyBytes)};
        if (c == '.' && ++dots > kMaxDots) return {line, fmt::format("a key of more than {} parts", kMaxDots)};
        if (c == ']' || c == '}') brackets -= std::min<size_t>(brackets, 1);
        if ((c == '[' || c == '{') && ++brackets > kMaxBrackets)
            return {line, fmt::format("more than {} arrays and tables within each other", kMaxBrackets)};
        const bool begins_value = c == '=' || c == ',' || c == '[' || c == '{';
        if (begins_value && ++values > kMaxValues) return {line, fmt::format("more than {} values", kMaxValues)};
        if (c == '\n') ++line;
        if (c == '\n' || begins_value) dots = bytes = 0;
    }
    return {};
}

bool has_control_character(std::string_view text) {
    return std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; });
}

}  // namespace

TomlFile::TomlFile(std::string_view text, std::string name) : content_(std::make_unique<Content>()) {
    content_->name = std::move(name);
    if (text.size() > kMaxFileBytes) {
        fail(TSR_CORRUPT_DATA, "{}: expected at most {} bytes of TOML, found {}", content_->name, kMaxFileBytes,
             text.size());
    }
    if (const Excess excess = find_excess(text); excess.line)
        fail(TSR_CORRUPT_DATA, "{}:{}: {}", content_->name, excess.line, excess.what);
    try {
        content_->root = toml::parse(text, content_->name);
    } catch (const toml::parse_error& error) {
        fail(TSR_CORRUPT_DATA, "{}:{}: not valid TOML: {}", content_->name, error.source().begin.line,
             printable(error.description()));
    }
}

TomlFile TomlFile::read(const std::filesystem::path& path) {
    const File file(path);
    if (file.size() > kMaxFileBytes) {
        fail(TSR_CORRUPT_DATA, "{}: expected at most {} bytes of TOML, found {}", path.string(), kMaxFileBytes,
             file.size());
    }
    std::string text(file.size(), '\0');
    file.pread_exact(0, std::as_writable_bytes(std::span(text)));
    return TomlFile(text, path.string());
}

TomlFile::~TomlFile() = default;
TomlFile::TomlFile(TomlFile&&) noexcept = default;
TomlFile& TomlFile::operator=(TomlFile&&) noexcept = default;

TomlFile::Table TomlFile::root() const {
    return Table(*content_, &content_->root, "");
}

std::string TomlFile::Table::full(std::string_view key) const {
    return printable(path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key));
}

void TomlFile::Table::reject(std::string_view key, std::string_view message) const {
    const toml::node* node = as_table(table_).get(key);
    const auto line = node ? node->source().begin.line : as_table(table_).source().begin.line;
    fail(TSR_CORRUPT_DATA, "{}:{}: key '{}': {}", content_->name, line, full(key), message);
}

void TomlFile::Table::missing(std::string_view key) const {
    reject(key, "is missing");
}

const void* TomlFile::Table::find(std::string_view key) {
    if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
    return as_table(table_).get(key);
}

void TomlFile::Table::ignore(std::string_view key) {
    find(key);
}

std::optional<std::string> TomlFile::Table::string(std::string_view key) {
    const auto* node = static_cast<const toml::node*>(find(key));
    if (!node) return std::nullopt;
    if (!node->is_string()) reject(key, fmt::format("expected a string, found {}", kind_name(*node)));
    const std::string& text = node->as_string()->get();
    if (text.size() > kMaxStringBytes)
        reject(key, fmt::format("expected at most {} bytes, found {}", kMaxStringBytes, text.size()));
    if (has_control_character(text)) reject(key, fmt::format("'{}' holds a control character", printable(text, 60)));
    return text;
}

std::optional<int64_t> TomlFile::Table::integer(std::string_view key, int64_t minimum, int64_t maximum) {
    const auto* node = static_cast<const toml::node*>(find(key));
    if (!node) return std::nullopt;
    if (!node->is_integer()) reject(key, fmt::format("expected an integer, found {}", kind_name(*node)));
    const int64_t value = node->as_integer()->get();
    if (value < minimum || value > maximum)
        reject(key, fmt::format("expected {} to {}, found {}", minimum, maximum, value));
    return value;
}

std::optional<bool> TomlFile::Table::boolean(std::string_view key) {
    const auto* node = static_cast<const toml::node*>(find(key));
    if (!node) return std::nullopt;
    if (!node->is_boolean()) reject(key, fmt::format("expected true or false, found {}", kind_name(*node)));
    return node->as_boolean()->get();
}

std::optional<std::vector<std::string>> TomlFile::Table::strings(std::string_view key) {
    const auto* node = static_cast<const toml::node*>(find(key));
    if (!node) return std::nullopt;
    if (!node->is_array()) reject(key, fmt::format("expected an array of strings, found {}", kind_name(*node)));
    std::vector<std::string> values;
    for (const toml::node& element : *node->as_array()) {
        if (!element.is_string())
            reject(key, fmt::format("expected an array of strings, found {} in it", kind_name(element)));
        const std::string& text = element.as_string()->get();
        if (text.size() > kMaxStringBytes || has_control_character(text)) {
            reject(key, fmt::format("'{}' is too long or holds a control character", printable(text, 60)));
        }
        values.push_back(text);
    }
    return values;
}

std::optional<uint64_t> TomlFile::Table::size(std::string_view key) {
    const auto* node = static_cast<const toml::node*>(find(key));
    if (!node) return std::nullopt;
    std::optional<uint64_t> bytes;
    if (node->is_integer()) {
        bytes = parse_size(std::to_string(node->as_integer()->get()));
    } else if (node->is_string()) {
        bytes = parse_size(node->as_string()->get());
    } else {
        reject(key, fmt::format("expected a size (\"24GiB\", or a number of MiB), found {}", kind_name(*node)));
    }
    if (!bytes)
        reject(key, "expected a size above 0 and at most 1024 TiB: \"24GiB\", \"512MiB\", or a whole number of MiB");
    return bytes;
}

std::optional<TomlFile::Table> TomlFile::Table::table(std::string_view key) {
    const auto* node = static_cast<const toml::node*>(find(key));
    if (!node) return std::nullopt;
    if (!node->is_table()) reject(key, fmt::format("expected a table, found {}", kind_name(*node)));
    return Table(*content_, node->as_table(), full(key));
}

std::vector<TomlFile::Table> TomlFile::Table::tables(std::string_view key) {
    const auto* node = static_cast<const toml::node*>(find(key));
    if (!node) return {};
    if (!node->is_array()) {
        reject(key, fmt::format("expected an array of tables (written [[{}]]), found {}", full(key), kind_name(*node)));
    }
    std::vector<Table> tables;
    for (const toml::node& element : *node->as_array()) {
        if (!element.is_table())
            reject(key, fmt::format("expected an array of tables, found {} in it", kind_name(element)));
        tables.push_back(Table(*content_, element.as_table(), fmt::format("{}[{}]", full(key), tables.size())));
    }
    return tables;
}

std::vector<std::string> TomlFile::Table::keys() const {
    std::vector<std::pair<toml::source_position, std::string>> found;
    for (const auto& [key, node] : as_table(table_)) found.emplace_back(key.source().begin, key.str());
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::string> names;
    for (auto& [position, name] : found) names.push_back(std::move(name));
    return names;
}

void TomlFile::Table::finish() const {
    for (const std::string& key : keys()) {
        if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
        const std::vector<std::string_view> known(known_.begin(), known_.end());
        const std::string meant = did_you_mean(key, known);
        const auto line = as_table(table_).get(key)->source().begin.line;
        fail(TSR_CORRUPT_DATA, "{}:{}: unknown key '{}'{}", content_->name, line, full(key),
             meant.empty() ? fmt::format("; known are: {}", fmt::join(known, ", ")) : meant);
    }
}

std::optional<uint64_t> parse_size(std::string_view text) noexcept {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
    if (error != std::errc() || !std::isfinite(value) || value <= 0) return std::nullopt;
    std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
    while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
    double scale = 0;
    if (unit.empty() || unit == "MiB") scale = 1048576.0;
    if (unit == "KiB") scale = 1024.0;
    if (unit == "GiB") scale = 1073741824.0;
    if (unit == "TiB") scale = 1099511627776.0;
    const double bytes = std::floor(value * scale);
    if (scale == 0 || bytes < 1 || bytes > kMaxSize) return std::nullopt;
    return static_cast<uint64_t>(bytes);
}

}  // namespace tessera
