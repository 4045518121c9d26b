// Reads the fields of a request's JSON, with errors that name field, expectation and what was found.
#pragma once

#include "apps/server/field_table.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::server {

// The object in a request's body. Throws ApiError(400): not JSON, not an object, nested deeper than 64, a key twice.
boost::json::object parse_object(std::string_view body);

// A field that is null counts as missing, and so does one that the table lacks: readings that several tables share ask
// for the names of all of them. All throw ApiError(400) where a field is not of the kind that is asked for,
// and std::logic_error for a row of the table that is not honoured. One thread at a time.
class Fields {
  public:
    // `object` and `table` outlive this. `path`: where the object lies in the request, "messages[3]"; empty: the
    // request itself. Throws what FieldTable::check throws.
    Fields(const boost::json::object& object, const FieldTable& table, std::string path = {});

    // Throws std::logic_error that names the first honoured row of the table that has not been asked for. At the end of
    // each reading, so that no row is honoured in the table alone.
    void check_read() const;

    bool has(std::string_view name) const { return find(name) != nullptr; }
    const boost::json::value* find(std::string_view name) const;

    std::optional<bool> boolean(std::string_view name) const;
    // Whole numbers, also as 3.0.
    std::optional<int64_t> integer(std::string_view name, int64_t minimum, int64_t maximum) const;
    std::optional<double> number(std::string_view name, double minimum, double maximum) const;
    std::optional<std::string_view> text(std::string_view name) const;
    const boost::json::array* array(std::string_view name, size_t maximum) const;
    const boost::json::object* object(std::string_view name) const;

    // "messages[3].content".
    std::string path(std::string_view name) const { return path_of(path_, name); }
    [[noreturn]] void reject(std::string_view name, std::string_view expected) const;
    // A value that is understood and not offered.
    [[noreturn]] void refuse(std::string_view name, std::string_view reason) const;
    // Two names of one field with different values.
    [[noreturn]] void contradict(std::string_view name, std::string_view other) const;

  private:
    const boost::json::value* value_of(std::string_view name) const;

    const boost::json::object& object_;
    const FieldTable& table_;
    std::string path_;
    mutable std::vector<bool> asked_;  // by row of the table
};

// What `read`, which is given a name, returns for the one of several names of a field that is given. Throws
// ApiError(400) where two are given and say different things.
template <typename Read>
auto read_any(const Fields& fields, std::span<const std::string_view> names, const Read& read)
    -> decltype(read(std::string_view())) {
    decltype(read(std::string_view())) found;
    std::string_view from;
    for (const std::string_view name : names) {
        auto value = read(name);
        if (!value) continue;
        if (found && *found != *value) fields.contradict(from, name);
        if (!found) from = name;
        found = std::move(value);
    }
    return found;
}

template <typename Read>
auto read_any(const Fields& fields, std::initializer_list<std::string_view> names, const Read& read) {
    return read_any(fields, std::span(names.begin(), names.size()), read);
}

// Calls `read` with each object of a list of at most `maximum` and where it lies, "messages[3]"; not at all where the
// field is missing. Throws ApiError(400) for what is no such list.
void each_object(const Fields& fields, std::string_view name, size_t maximum,
                 const std::function<void(const boost::json::object& object, const std::string& path)>& read);

// Empty where the field is missing.
std::string text_or_empty(const Fields& fields, std::string_view name);

// How a message shows a value that was not expected: `"abc"`, `a list`, `12`.
std::string shown(const boost::json::value& value);

}  // namespace tessera::server
