// Reads the fields of a request's JSON, with errors that name field, expectation and what was found.
#pragma once

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace tessera::server {

// The object in a request's body. Throws ApiError(400): not JSON, not an object, nested deeper than 64, a key twice.
boost::json::object parse_object(std::string_view body);

// A field that is null counts as missing. All throw ApiError(400) where a field is not of the kind that is asked for.
class Fields {
  public:
    // `object` outlives this. `path`: where it lies in the request, "messages[3]"; empty: the request itself.
    explicit Fields(const boost::json::object& object, std::string path = {})
        : object_(object), path_(std::move(path)) {}

    const boost::json::object& object() const noexcept { return object_; }
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
    std::string path(std::string_view name) const;
    [[noreturn]] void reject(std::string_view name, std::string_view expected) const;
    // 501: a field that is known and not offered.
    [[noreturn]] void refuse(std::string_view name, std::string_view reason) const;

  private:
    const boost::json::object& object_;
    std::string path_;
};

// How a message shows a value that was not expected: `"abc"`, `a list`, `12`.
std::string shown(const boost::json::value& value);

}  // namespace tessera::server
