#include "apps/server/dialects/anthropic/documents.hpp"

#include "apps/server/conversation.hpp"
#include "apps/server/dialects/anthropic/dialect.hpp"

namespace tessera::server::anthropic {
namespace {

namespace json = boost::json;

// A text, or blocks of text. `images`: of images among them it is said that they cannot be shown.
std::string text_in(const Fields& fields, std::string_view name, bool images) {
    const json::value* const given = fields.find(name);
    if (given && given->is_string()) return std::string(given->get_string());
    if (!given || !given->is_array()) fields.reject(name, "a text, or a list of blocks of text");
    std::string text;
    each_object(fields, name, kMaximumParts, [&](const json::object& block, const std::string& path) {
        const json::value* const type = block.if_contains("type");
        if (images && type && *type == "image") return append_line(text, unread_text(block, path));
        const Fields part(block, text_table(), path);
        if (part.text("type") != "text") part.reject("type", "text");
        const auto part_text = part.text("text");
        if (!part_text) part.reject("text", "a text");
        append_line(text, *part_text);
        part.check_read();
    });
    return text;
}

void check_citations(const Fields& fields) {
    const json::object* const given = fields.object("citations");
    if (given) Fields(*given, citations_table(), fields.path("citations")).check_read();
}

}  // namespace

std::string unread_text(const json::object& block, const std::string& path) {
    const Fields fields(block, unread_table(), path);
    std::string text = unread_part(*fields.text("type"));
    fields.check_read();
    return text;
}

std::optional<std::string> document_text(const json::object& block, const std::string& path, bool of_result) {
    const json::value* const source = block.if_contains("source");
    const json::value* const type = source && source->is_object() ? source->get_object().if_contains("type") : nullptr;
    if (!type || (*type != "text" && *type != "content")) return std::nullopt;
    const Fields fields(block, document_table(), path);
    fields.text("type");
    std::string text(fields.text("title").value_or(""));
    append_line(text, fields.text("context").value_or(""));
    const Fields given(*fields.object("source"), document_source_table(), fields.path("source"));
    const bool plain = given.text("type") == "text";
    append_line(text, text_in(given, plain ? "data" : "content", of_result && !plain));
    if (const std::string_view other = plain ? "content" : "data"; given.has(other))
        given.refuse(other, plain ? "belongs to the type content" : "belongs to the type text");
    given.check_read();
    check_citations(fields);
    fields.check_read();
    return text;
}

std::string search_result_text(const json::object& block, const std::string& path) {
    const Fields fields(block, search_result_table(), path);
    fields.text("type");
    std::string text(fields.text("title").value_or(""));
    append_line(text, fields.text("source").value_or(""));
    append_line(text, text_in(fields, "content", false));
    check_citations(fields);
    fields.check_read();
    return text;
}

}  // namespace tessera::server::anthropic
