// Whether two schemas can accept the same value: what oneOf is about.
#pragma once

#include "apps/structure/schema_references.hpp"

#include <span>
#include <string>
#include <string_view>

namespace tessera::structure {

// One thread at a time. `references` outlives it.
class SchemaExclusion {
  public:
    explicit SchemaExclusion(const SchemaReferences& references) : references_(references) {}

    // Returns whether no value is accepted by two of the schemas; false also where that is not known.
    bool exclude_each_other(std::span<const SchemaReferences::Target> schemas);

    // Returns a property by which the schemas exclude each other if it is required: a "kind" with a different constant
    // in each. `first`: tried before the others; empty: none. Returns an empty string where there is none.
    std::string find_tag(std::span<const SchemaReferences::Target> schemas, std::string_view first);

  private:
    using Target = SchemaReferences::Target;

    // Counts a look at a schema. Returns false when there have been too many, or at that depth: it is not known then.
    bool may_look(const Target& schema, size_t depth);
    bool exclude(const Target& a, const Target& b, size_t depth);
    bool excludes_here(const Target& a, const Target& b, size_t depth);
    bool exclude_as_objects(const Target& a, const Target& b, size_t depth);
    bool rejects(const Target& schema, const boost::json::value& value, size_t depth);
    bool values_are_rejected(const Target& a, const Target& b, size_t depth);
    bool property_of(const Target& schema, std::string_view name, Target& found, size_t depth);
    bool resolve(const Target& schema, Target& found) const;
    bool accepts_only_objects(const Target& schema, size_t depth);

    const SchemaReferences& references_;
    size_t steps_ = 0;
};

}  // namespace tessera::structure
