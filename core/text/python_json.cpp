#include "core/text/python_json.hpp"

#include "core/text/json_text.hpp"

#include <boost/json/basic_parser_impl.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <unordered_map>
#include <utility>

namespace tessera::text {
namespace {

constexpr size_t kMaxDepth = 256;

// repr() of the number that `text` spells, a JSON number.
std::string python_number(std::string_view text) {
    if (text.find_first_of(".eE") == text.npos) return text == "-0" ? "0" : std::string(text);
    const bool negative = text.front() == '-';
    double value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec == std::errc::result_out_of_range) {
        const size_t exponent = text.find_first_of("eE");
        const bool small = exponent != text.npos ? text.substr(exponent + 1).starts_with('-')
                                                 : text.substr(negative ? 1 : 0).starts_with("0.");
        return std::string(negative ? "-" : "") + (small ? "0.0" : "Infinity");
    }
    return python_float(value);
}

// Builds the value from the events of Boost.JSON's parser.
struct Handler {
    static constexpr size_t max_object_size = static_cast<size_t>(-1);
    static constexpr size_t max_array_size = static_cast<size_t>(-1);
    static constexpr size_t max_key_size = static_cast<size_t>(-1);
    static constexpr size_t max_string_size = static_cast<size_t>(-1);
    using Error = boost::json::error_code;
    using Text = boost::json::string_view;

    std::vector<PythonJson> open = {{PythonJson::Kind::kList, {}, {}}};  // lists and objects around what comes
    std::vector<std::string> keys = {{}};                                // of each of them in its parent
    std::string part;
    std::string key;

    void add(PythonJson value, std::string name) { open.back().members.push_back({std::move(name), std::move(value)}); }
    void begin(PythonJson::Kind kind) {
        open.push_back({kind, {}, {}});
        keys.push_back(std::exchange(key, {}));
    }
    void end() {
        PythonJson value = std::move(open.back());
        open.pop_back();
        std::string name = std::move(keys.back());
        keys.pop_back();
        if (value.kind == PythonJson::Kind::kObject) drop_equal_keys(value);
        add(std::move(value), std::move(name));
    }
    static void drop_equal_keys(PythonJson& value) {
        std::unordered_map<std::string_view, size_t> places;
        std::vector<PythonMember> kept;
        kept.reserve(value.members.size());  // the views stay valid
        for (auto& [name, member] : value.members) {
            const auto found = places.find(name);
            if (found != places.end()) {
                kept[found->second].value = std::move(member);
                continue;
            }
            kept.push_back({std::move(name), std::move(member)});
            places.emplace(kept.back().key, kept.size() - 1);
        }
        value.members = std::move(kept);
    }
    void plain(std::string text) { add({PythonJson::Kind::kPlain, std::move(text), {}}, std::exchange(key, {})); }
    bool more(Text text) {
        part.append(text.data(), text.size());
        return true;
    }
    std::string whole(Text text) {
        more(text);
        return std::exchange(part, {});
    }

    bool on_document_begin(Error&) { return true; }
    bool on_document_end(Error&) { return true; }
    bool on_object_begin(Error&) { return begin(PythonJson::Kind::kObject), true; }
    bool on_object_end(size_t, Error&) { return end(), true; }
    bool on_array_begin(Error&) { return begin(PythonJson::Kind::kList), true; }
    bool on_array_end(size_t, Error&) { return end(), true; }
    bool on_key_part(Text text, size_t, Error&) { return more(text); }
    bool on_key(Text text, size_t, Error&) { return key = whole(text), true; }
    bool on_string_part(Text text, size_t, Error&) { return more(text); }
    bool on_string(Text text, size_t, Error&) {
        return add({PythonJson::Kind::kText, whole(text), {}}, std::exchange(key, {})), true;
    }
    bool on_number_part(Text text, Error&) { return more(text); }
    bool on_int64(int64_t, Text text, Error&) { return plain(python_number(whole(text))), true; }
    bool on_uint64(uint64_t, Text text, Error&) { return plain(python_number(whole(text))), true; }
    bool on_double(double, Text text, Error&) { return plain(python_number(whole(text))), true; }
    bool on_bool(bool value, Error&) { return plain(value ? "true" : "false"), true; }
    bool on_null(Error&) { return plain("null"), true; }
    bool on_comment_part(Text, Error&) { return true; }
    bool on_comment(Text, Error&) { return true; }
};

void write(const PythonJson& value, std::string& out, uint32_t indent, size_t level) {
    if (value.kind == PythonJson::Kind::kPlain) {
        out += value.text;
    } else if (value.kind == PythonJson::Kind::kText) {
        out += '"';
        append_json_characters(out, value.text);
        out += '"';
    } else {
        const bool object = value.kind == PythonJson::Kind::kObject;
        out += object ? '{' : '[';
        bool first = true;
        for (const auto& [key, member] : value.members) {
            if (!first) out += indent > 0 ? "," : ", ";
            first = false;
            if (indent > 0) out += '\n' + std::string(indent * (level + 1), ' ');
            if (object) {
                out += '"';
                append_json_characters(out, key);
                out += "\": ";
            }
            write(member, out, indent, level + 1);
        }
        if (indent > 0 && !first) out += '\n' + std::string(indent * level, ' ');
        out += object ? '}' : ']';
    }
}

}  // namespace

std::string python_float(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return std::string(value < 0 ? "-" : "") + "inf";
    std::array<char, 40> buffer;
    const auto written =
        std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::scientific);
    std::string_view shortest(buffer.data(), static_cast<size_t>(written.ptr - buffer.data()));
    const bool negative = shortest.starts_with('-');
    if (negative) shortest.remove_prefix(1);
    const size_t e = shortest.find('e');
    int exponent = 0;
    const std::string_view power = shortest.substr(e + 1);
    std::from_chars(power.data() + (power.front() == '+' ? 1 : 0), power.data() + power.size(), exponent);
    std::string digits(shortest.substr(0, e));
    std::erase(digits, '.');

    std::string out = negative ? "-" : "";
    if (exponent < -4 || exponent >= 16) {
        out += digits.front();
        if (digits.size() > 1) out += '.' + digits.substr(1);
        const std::string size = std::to_string(std::abs(exponent));
        return out + (exponent < 0 ? "e-" : "e+") + (size.size() < 2 ? "0" : "") + size;
    }
    if (exponent < 0) return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
    const auto whole = static_cast<size_t>(exponent) + 1;
    if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0') + ".0";
    return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

PythonJson PythonJson::of_text(std::string_view text) {
    return {Kind::kText, std::string(text), {}};
}

const PythonJson* PythonJson::find(std::string_view key) const noexcept {
    if (kind != Kind::kObject) return nullptr;
    const auto found = std::ranges::find(members, key, &PythonMember::key);
    return found == members.end() ? nullptr : &found->value;
}

std::string PythonJson::dumps(uint32_t indent) const {
    std::string out;
    write(*this, out, indent, 0);
    return out;
}

std::optional<PythonJson> parse_python_json(std::string_view text) {
    boost::json::parse_options options;
    options.max_depth = kMaxDepth;
    boost::json::basic_parser<Handler> parser(options);
    boost::json::error_code error;
    const size_t read = parser.write_some(false, text.data(), text.size(), error);
    if (error || !parser.done() || json_spaces(text.substr(read)) + read != text.size()) return std::nullopt;
    auto& members = parser.handler().open.front().members;
    if (members.size() != 1) return std::nullopt;
    return std::move(members.front().value);
}

}  // namespace tessera::text
