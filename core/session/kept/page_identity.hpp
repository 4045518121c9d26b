// What the bytes of cache pages depend on beside the tokens: pages of one process are used by another only where all of
// it is the same.
#pragma once

#include "core/session/kept/page_record.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {
class Engine;
class Registry;
struct ExpertReduction;
}  // namespace tessera

namespace tessera::session {

struct PageIdentity {
    struct Property {
        std::string name, value;  // of one line each; the name has no ':'
        bool operator==(const Property&) const = default;
    };
    std::vector<Property> properties;

    // A line "name: value" for each.
    std::string text() const;
    Digest digest() const { return digest_of(text()); }
    // "cache types: f16, here q8_0", of the first that differs; nothing: they are the same.
    std::optional<std::string> difference(const PageIdentity& here) const;
};

inline constexpr size_t kMaxIdentityBytes = 4096;

// What text() wrote. Throws Error(TSR_CORRUPT_DATA).
PageIdentity parse_identity(std::string_view text);

// The number of the format; the program and the plugins that are in use, by their libraries' hashes; the model's
// metadata with what was overridden, its tensors, and samples of their bytes; formats and layouts of the caches; what
// rotates or reduces what is cached. `program`: names what of it computes. `experts`: as the engine was asked for.
// Reads a few bytes of each tensor; throws what GgufFile::read throws.
PageIdentity identity_of(const Engine& engine, const Registry& registry, const ExpertReduction& experts,
                         std::string_view program);

}  // namespace tessera::session
