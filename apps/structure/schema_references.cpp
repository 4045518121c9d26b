#include "apps/structure/schema_references.hpp"

#include "apps/structure/schema_keywords.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>

namespace tessera::structure {
namespace {

namespace json = boost::json;

constexpr size_t kMostIndexDepth = 256;
constexpr size_t kMostIndexBytes = 32 << 20;  // of the places of all schemas within one

std::string_view text_at(const json::object& schema, std::string_view name) {
    const json::value* const found = schema.if_contains(name);
    return found && found->is_string() ? std::string_view(found->get_string()) : std::string_view();
}

std::string percent_decoded(std::string_view text) {
    std::string made;
    for (size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            made += text[i];
            continue;
        }
        unsigned code = 0;
        const auto digits = text.substr(i + 1, 2);
        if (digits.size() != 2 || std::from_chars(digits.data(), digits.data() + 2, code, 16).ptr != digits.data() + 2)
            fail(TSR_INVALID_ARGUMENT, "'{}' has an invalid percent escape", printable(text, 60));
        made += static_cast<char>(code);
        i += 2;
    }
    return made;
}

}  // namespace

std::string pointer_part(std::string_view name) {
    std::string made;
    for (const char c : name) {
        if (c == '~')
            made += "~0";
        else if (c == '/')
            made += "~1";
        else
            made += c;
    }
    return made;
}

SchemaReferences::SchemaReferences(const json::value& document) : document_(document) {
    resources_.emplace("");
    index(document, "", "", 0);
}

void SchemaReferences::index(const json::value& schema, const std::string& place, std::string_view resource,
                             size_t depth) {
    if (depth > kMostIndexDepth) fail(TSR_INVALID_ARGUMENT, "the schema is nested deeper than {}", kMostIndexDepth);
    // Each has the names of all that it is in.
    place_bytes_ += place.size();
    if (place_bytes_ > kMostIndexBytes)
        fail(TSR_INVALID_ARGUMENT, "the schema has too many schemas below long names; make the names shorter");
    const json::object* const object = schema.if_object();
    if (!object) return;
    for (const std::string_view word : {"$id", "id"}) {
        const std::string_view id = text_at(*object, word);
        // Up to draft 6 an identifier could be an anchor.
        if (id.starts_with('#') && id.size() > 1)
            anchors_.emplace(std::pair(std::string(resource), std::string(id.substr(1))), place);
        else if (!id.empty() && (word == "$id" || place.empty())) {
            resources_.insert(place);
            identified_.emplace(id.ends_with('#') ? id.substr(0, id.size() - 1) : id, place);
            resource = place;
        }
    }
    if (const auto name = text_at(*object, "$anchor"); !name.empty())
        anchors_.emplace(std::pair(std::string(resource), std::string(name)), place);
    if (const auto name = text_at(*object, "$dynamicAnchor"); !name.empty()) {
        anchors_.emplace(std::pair(std::string(resource), std::string(name)), place);
        ++dynamic_anchors_[std::string(name)];
    }
    if (const json::value* const recursive = object->if_contains("$recursiveAnchor"))
        recursive_anchor_ = recursive_anchor_ || *recursive == true;
    for (const auto& [key, value] : *object) {
        const std::string_view name(key.data(), key.size());
        const SchemaKeyword* const keyword = find_schema_keyword(name);
        if (!keyword || keyword->subschemas == Subschemas::kNone) continue;
        const std::string below = fmt::format("{}/{}", place, pointer_part(name));
        if (keyword->subschemas == Subschemas::kMembers && value.is_object()) {
            for (const auto& [member, inner] : value.get_object())
                index(inner, fmt::format("{}/{}", below, pointer_part(std::string_view(member))), resource, depth + 1);
        } else if (value.is_array()) {
            for (size_t i = 0; i < value.get_array().size(); ++i)
                index(value.get_array()[i], fmt::format("{}/{}", below, i), resource, depth + 1);
        } else {
            index(value, below, resource, depth + 1);
        }
    }
}

// The place of the innermost schema with an identifier that `place` is in.
std::string SchemaReferences::resource_of(std::string_view place) const {
    if (resources_.size() == 1) return {};
    for (;;) {
        if (resources_.contains(place)) return std::string(place);
        const size_t last = place.rfind('/');
        if (last == place.npos) return {};
        place = place.substr(0, last);
    }
}

SchemaReferences::Target SchemaReferences::resolve(std::string_view reference, std::string_view place) const {
    const size_t hash = std::min(reference.find('#'), reference.size());
    const std::string_view base = reference.substr(0, hash);
    const std::string fragment = percent_decoded(reference.substr(std::min(hash + 1, reference.size())));
    std::string resource = resource_of(place);
    if (!base.empty()) {
        const auto known = identified_.find(base);
        if (known == identified_.end())
            fail(TSR_INVALID_ARGUMENT, "'{}' is outside the schema; only references within it are followed",
                 printable(reference, 60));
        resource = known->second;
    }
    std::string target;
    if (fragment.empty() || fragment.starts_with('/')) {
        target = resource + fragment;
    } else {
        const auto anchor = anchors_.find({resource, fragment});
        if (anchor == anchors_.end())
            fail(TSR_INVALID_ARGUMENT, "'{}' names an anchor that the schema does not have", printable(reference, 60));
        target = anchor->second;
    }
    json::error_code error;
    const json::value* const found = document_.find_pointer(target, error);
    if (!found || (!found->is_object() && !found->is_bool()))
        fail(TSR_INVALID_ARGUMENT, "'{}' refers to no schema of this document", printable(reference, 60));
    return {found, std::move(target)};
}

SchemaReferences::Target SchemaReferences::resolve_dynamic(std::string_view reference, std::string_view place) const {
    // With one document and one anchor of the name there is only one target.
    const std::string_view name = reference.substr(std::min<size_t>(1, reference.size()));
    const auto found = dynamic_anchors_.find(name);
    const size_t anchors = found == dynamic_anchors_.end() ? 0 : found->second;
    if (resources_.size() > 1 || recursive_anchor_ || anchors > 1)
        fail(TSR_INVALID_ARGUMENT, "'{}' has a target that depends on the path to it; use $ref",
             printable(reference, 60));
    return resolve(reference, place);
}

}  // namespace tessera::structure
