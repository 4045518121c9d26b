// What pages are of, as files say it; what the engine says is in page_identity.cpp.
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/session/kept/page_identity.hpp"

#include <algorithm>

namespace tessera::session {

std::string PageIdentity::text() const {
    std::string text;
    for (const Property& property : properties) text += fmt::format("{}: {}\n", property.name, property.value);
    return text;
}

std::optional<std::string> PageIdentity::difference(const PageIdentity& here) const {
    for (const Property& own : properties) {
        const auto same = std::ranges::find(here.properties, own.name, &Property::name);
        if (same == here.properties.end()) return fmt::format("{}: {}, here nothing", own.name, own.value);
        if (same->value != own.value) return fmt::format("{}: {}, here {}", own.name, own.value, same->value);
    }
    for (const Property& other : here.properties) {
        if (std::ranges::find(properties, other.name, &Property::name) == properties.end())
            return fmt::format("{}: nothing, here {}", other.name, other.value);
    }
    return std::nullopt;
}

PageIdentity parse_identity(std::string_view text) {
    PageIdentity identity;
    if (text.size() > kMaxIdentityBytes)
        fail(TSR_CORRUPT_DATA, "what pages are of has {} bytes; at most {} are read", text.size(), kMaxIdentityBytes);
    while (!text.empty()) {
        const size_t end = text.find('\n'), colon = text.substr(0, end).find(": ");
        if (end == text.npos || colon == text.npos || colon == 0)
            fail(TSR_CORRUPT_DATA, "what pages are of: expected a line 'name: value', found '{}'",
                 printable(text.substr(0, end), 80));
        const std::string_view line = text.substr(0, end);
        if (printable(line, SIZE_MAX) != line)
            fail(TSR_CORRUPT_DATA, "what pages are of: '{}' has control characters or is no UTF-8",
                 printable(line, 80));
        std::string name(line.substr(0, colon));
        if (std::ranges::find(identity.properties, name, &PageIdentity::Property::name) != identity.properties.end())
            fail(TSR_CORRUPT_DATA, "what pages are of: '{}' is there twice", name);
        identity.properties.push_back({std::move(name), std::string(line.substr(colon + 2))});
        text.remove_prefix(end + 1);
    }
    return identity;
}

}  // namespace tessera::session
