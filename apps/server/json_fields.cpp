#include "apps/server/json_fields.hpp"

#include "apps/server/api_error.hpp"
#include "apps/server/json_fault.hpp"
#include "apps/server/json_memory.hpp"
#include "core/base/text.hpp"
#include "core/text/utf8.hpp"

#include <boost/json/parser.hpp>
#include <boost/json/serialize.hpp>
#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <stdexcept>

namespace tessera::server {
namespace {

namespace json = boost::json;

constexpr size_t kMaximumDepth = 64;

// Members of all objects in a value.
struct Members {
    size_t count = 0;
    bool infinite = false;  // one of the numbers is: the parser reads 1e400 so

    explicit Members(const json::value& value) { add(value); }

    void add(const json::value& value) {
        if (value.is_array()) {
            for (const json::value& element : value.get_array()) add(element);
        } else if (value.is_object()) {
            for (const auto& [key, member] : value.get_object()) {
                ++count;
                add(member);
            }
        } else if (value.is_double()) {
            infinite = infinite || !std::isfinite(value.get_double());
        }
    }
};

// Of valid JSON: each has a colon behind its key. The parser keeps the last of several with one key.
size_t written_members(std::string_view text) {
    size_t count = 0;
    bool quoted = false;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '"') quoted = !quoted;
        if (quoted && text[i] == '\\') ++i;
        if (!quoted && text[i] == ':') ++count;
    }
    return count;
}

std::string fault_of(std::string_view body, const boost::system::error_code& error) {
    if (body.empty()) return "it is empty";
    for (const std::string_view mark : {"\xEF\xBB\xBF", "\xFF\xFE", "\xFE\xFF"}) {
        if (body.starts_with(mark)) return "it begins with a byte order mark; send UTF-8 without one";
    }
    // The parser says neither where nor what.
    const auto fault = find_json_fault(body, kMaximumDepth);
    return fault ? fault->message(body) : error.message();
}

}  // namespace

json::object parse_object(std::string_view body) {
    json::parse_options options;
    options.max_depth = kMaximumDepth;
    boost::system::error_code error;
    const json::storage_ptr storage = JsonMemory::storage();
    // What is not complete yet counts as well.
    json::parser parser(storage, options);
    parser.reset(storage);
    parser.write(json::string_view(body.data(), body.size()), error);
    const auto refuse = [&] {
        throw ApiError(400, fmt::format("the request's body is not JSON: {}", fault_of(body, error)));
    };
    if (error) refuse();
    json::value value = parser.release();
    const Members members(value);
    if (members.infinite) refuse();
    if (!value.is_object())
        throw ApiError(400, fmt::format("the request's body: expected a JSON object, found {}", shown(value)));
    if (written_members(body) != members.count)
        throw ApiError(400, "the request's body: an object has a key twice, and only one of its values could count");
    return std::move(value.get_object());
}

std::string shown(const json::value& value) {
    switch (value.kind()) {
        case json::kind::null:
            return "null";
        case json::kind::object:
            return "an object";
        case json::kind::array:
            return "a list";
        case json::kind::string:
            return fmt::format("\"{}\"", printable({value.get_string().data(), value.get_string().size()}, 60));
        default:
            return json::serialize(value);
    }
}

Fields::Fields(const json::object& object, const FieldTable& table, std::string path)
    : object_(object), table_(table), path_(std::move(path)), asked_(table.rows().size()) {
    table.check(object, path_);
}

void Fields::check_read() const {
    for (size_t i = 0; i < asked_.size(); ++i) {
        if (table_.rows()[i].standing == Standing::kHonoured && !asked_[i])
            throw std::logic_error(fmt::format("{}: nothing reads the field {}", table_.name(), table_.rows()[i].name));
    }
}

const json::value* Fields::value_of(std::string_view name) const {
    const json::value* const value = object_.if_contains(json::string_view(name.data(), name.size()));
    return value && !value->is_null() ? value : nullptr;
}

const json::value* Fields::find(std::string_view name) const {
    const auto row = table_.index_of(name);
    if (!row) return nullptr;
    if (table_.rows()[*row].standing != Standing::kHonoured)
        throw std::logic_error(fmt::format("{}: the field {} is read and not honoured", table_.name(), name));
    asked_[*row] = true;
    return value_of(name);
}

void Fields::reject(std::string_view name, std::string_view expected) const {
    const json::value* const value = value_of(name);
    const std::string where = path(name);
    throw ApiError(400, fmt::format("{}: expected {}, found {}", where, expected, value ? shown(*value) : "nothing"),
                   where);
}

void Fields::refuse(std::string_view name, std::string_view reason) const {
    const std::string where = path(name);
    throw ApiError(400, fmt::format("{}: {}", where, reason), where, "not_supported");
}

void Fields::contradict(std::string_view name, std::string_view other) const {
    const std::string where = path(other);
    throw ApiError(
        400, fmt::format("{}: is the same field as {} and says something else; give one of them", where, path(name)),
        where);
}

std::optional<bool> Fields::boolean(std::string_view name) const {
    const json::value* const value = find(name);
    if (!value) return std::nullopt;
    if (!value->is_bool()) reject(name, "true or false");
    return value->get_bool();
}

std::optional<int64_t> Fields::integer(std::string_view name, int64_t minimum, int64_t maximum) const {
    const json::value* const value = find(name);
    if (!value) return std::nullopt;
    const auto wrong = [&] { reject(name, fmt::format("a whole number from {} to {}", minimum, maximum)); };
    int64_t number = 0;
    if (value->is_int64()) {
        number = value->get_int64();
    } else if (value->is_double() && std::abs(value->get_double()) < 1e15 &&
               std::floor(value->get_double()) == value->get_double()) {
        number = static_cast<int64_t>(value->get_double());
    } else {
        wrong();
    }
    if (number < minimum || number > maximum) wrong();
    return number;
}

std::optional<double> Fields::number(std::string_view name, double minimum, double maximum) const {
    const json::value* const value = find(name);
    if (!value) return std::nullopt;
    const auto wrong = [&] { reject(name, fmt::format("a number from {} to {}", minimum, maximum)); };
    if (!value->is_number()) wrong();
    const auto number = value->to_number<double>();
    if (!(number >= minimum && number <= maximum)) wrong();
    return number;
}

std::optional<std::string_view> Fields::text(std::string_view name) const {
    const json::value* const value = find(name);
    if (!value) return std::nullopt;
    if (!value->is_string()) reject(name, "a text");
    return std::string_view(value->get_string().data(), value->get_string().size());
}

const json::array* Fields::array(std::string_view name, size_t maximum) const {
    const json::value* const value = find(name);
    if (!value) return nullptr;
    if (!value->is_array()) reject(name, "a list");
    if (value->get_array().size() > maximum) {
        const std::string where = path(name);
        throw ApiError(400,
                       fmt::format("{}: a list of {} elements; at most {} are accepted", where,
                                   value->get_array().size(), maximum),
                       where);
    }
    return &value->get_array();
}

const json::object* Fields::object(std::string_view name) const {
    const json::value* const value = find(name);
    if (!value) return nullptr;
    if (!value->is_object()) reject(name, "an object");
    return &value->get_object();
}

void each_object(const Fields& fields, std::string_view name, size_t maximum,
                 const std::function<void(const json::object& object, const std::string& path)>& read) {
    const json::array* const list = fields.array(name, maximum);
    for (size_t i = 0; list && i < list->size(); ++i) {
        const std::string path = fmt::format("{}[{}]", fields.path(name), i);
        const json::value& value = (*list)[i];
        if (!value.is_object()) throw ApiError(400, path + ": expected an object, found " + shown(value), path);
        read(value.get_object(), path);
    }
}

std::string text_or_empty(const Fields& fields, std::string_view name) {
    return std::string(fields.text(name).value_or(""));
}

}  // namespace tessera::server
