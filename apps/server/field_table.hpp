// What a request's object may hold: every field that is known, and what becomes of it.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tessera::server {

enum class Standing : uint8_t {
    kHonoured,  // read by code: Fields::check_read() fails for one that is not
    kHarmless,  // cannot change the answer, whatever it says
    kRefused,   // with every value but those that ask for nothing
    kHint,  // without effect; accepted with the values of `wished`, which the response's header names, and neutral ones
};

struct FieldRow {
    std::string_view name;
    Standing standing;
    // Honoured: what it does. Harmless: why it changes nothing. Refused: why, or what to use instead. Hint: why it has
    // no effect, or what to use instead.
    std::string_view text;
    // Of a refused field or a hint: a JSON list of the values that ask for nothing, beside null. kOff if empty;
    // kNotPositive: any number that is not above 0.
    std::string_view neutral = {};
    // Of a hint: a JSON list of the values that ask for something the server does not do.
    std::string_view wished = {};
};

inline constexpr std::string_view kOff = R"([false, 0, "", []])";
inline constexpr std::string_view kNotPositive = "<= 0";

// Immutable; any thread.
class FieldTable {
  public:
    // `name`: of the object in messages, "POST /tokenize". The rows outlive the table. Throws std::logic_error for a
    // name that stands twice.
    FieldTable(std::string name, std::initializer_list<std::span<const FieldRow>> parts);

    const std::string& name() const noexcept { return name_; }
    std::span<const FieldRow> rows() const noexcept { return rows_; }
    std::optional<size_t> index_of(std::string_view name) const;

    // Throws ApiError(400) that names the first field of `object`, which lies at `path` in the request, that is not
    // known or is refused; null asks for nothing, whatever the name. `name`: of the object in the message, where
    // several share the table; empty: the table's. Adds hints that were given to the response's header kNoEffectHeader
    // (response_notes.hpp).
    void check(const boost::json::object& object, std::string_view path, std::string_view name = {}) const;

  private:
    bool is_neutral(size_t row, const boost::json::value& value) const;
    // Of a hint with a value that is not neutral.
    void take_hint(size_t row, const boost::json::value& value, const std::string& path) const;

    std::string name_;
    std::vector<FieldRow> rows_;
    std::vector<boost::json::array> neutral_, wished_;  // by row
    std::unordered_map<std::string_view, size_t> index_;
};

// "messages[3].content"; `path` empty: the request itself.
std::string path_of(std::string_view path, std::string_view name);

}  // namespace tessera::server
