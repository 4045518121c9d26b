// Bounds of numbers in a form that llguidance, which computes with doubles, enforces exactly.
#pragma once

#include <boost/json/object.hpp>

#include <string>

namespace tessera::structure {

// What is wrong with a keyword.
struct KeywordFault {
    std::string keyword, why;  // empty: nothing
};

// Writes "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum" and "multipleOf" of `given`, together with the
// range of a "format" like int32, to `made`, which may get the type "integer" for "number". Where there are bounds,
// whole numbers beyond 63 bits, others beyond 1e18 and those next to a bound that has no exact double are not accepted.
// Returns the first keyword that is invalid or accepts nothing that can be written; the others are written.
KeywordFault write_bounds(const boost::json::object& given, boost::json::object& made);

}  // namespace tessera::structure
