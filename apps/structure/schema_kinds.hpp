// A schema as the kinds of values that it has, for values that are not written as JSON.
#pragma once

#include <boost/json/object.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::structure {

enum class ValueKind : uint8_t { kText, kInteger, kNumber, kBoolean, kNull, kList, kObject, kConstant };

struct SchemaKind {
    ValueKind kind;
    boost::json::object keywords;      // those that hold for the kind
    boost::json::value constant = {};  // of kConstant
    std::string place;                 // for messages
};

// The kinds of values of a schema within `root`, both as read_schema() returns them; none: it is false. Throws
// Error(TSR_INVALID_ARGUMENT) that names the keyword and its place for what cannot be told apart.
std::vector<SchemaKind> kinds_of(const boost::json::value& schema, const boost::json::value& root,
                                 const std::string& place);

// What "#/..." refers to in `root`; null: nothing.
const boost::json::value* referred(std::string_view reference, const boost::json::value& root);

}  // namespace tessera::structure
