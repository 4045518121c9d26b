// References within one JSON Schema document: JSON pointers, anchors and the document's own identifiers.
#pragma once

#include <boost/json/value.hpp>

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace tessera::structure {

// Returns `name` as a part of a JSON pointer: "a/b" as "a~1b".
std::string pointer_part(std::string_view name);

// Immutable; any thread. `document` outlives it.
class SchemaReferences {
  public:
    // Throws Error(TSR_INVALID_ARGUMENT) for a document that is nested too deeply, or whose places are too long.
    explicit SchemaReferences(const boost::json::value& document);

    // A schema and where it is, as a JSON pointer: "/$defs/Cat".
    struct Target {
        const boost::json::value* schema;
        std::string place;
    };

    // Returns the target of a reference in the schema at `place`: "#", "#/$defs/Cat", "#cat", "https://own.id/x#cat".
    // Throws Error(TSR_INVALID_ARGUMENT) with the reason where there is none in this document.
    Target resolve(std::string_view reference, std::string_view place) const;

    // The same for $dynamicRef and $recursiveRef. Throws also where their target depends on the path of evaluation.
    Target resolve_dynamic(std::string_view reference, std::string_view place) const;

  private:
    void index(const boost::json::value& schema, const std::string& place, std::string_view resource, size_t depth);
    std::string resource_of(std::string_view place) const;

    using Anchors = std::map<std::pair<std::string, std::string>, std::string>;  // place by resource and name

    const boost::json::value& document_;
    std::set<std::string, std::less<>> resources_;                // places of schemas with identifiers
    std::map<std::string, std::string, std::less<>> identified_;  // place by identifier
    Anchors anchors_;
    std::map<std::string, size_t, std::less<>> dynamic_anchors_;  // how many have the name
    size_t place_bytes_ = 0;
    bool recursive_anchor_ = false;
};

}  // namespace tessera::structure
