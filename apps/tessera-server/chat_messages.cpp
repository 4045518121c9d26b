#include "apps/tessera-server/chat_messages.hpp"

#include "apps/tessera-server/api_error.hpp"

#include <spdlog/fmt/fmt.h>

namespace tessera::server {
namespace {

namespace json = boost::json;

constexpr size_t kMaximumMessages = 100'000, kMaximumParts = 10'000;

// A text, or a list of parts that are texts.
std::string content_of(const Fields& message) {
    const json::value* const content = message.find("content");
    if (!content) return {};
    if (content->is_string()) return std::string(content->get_string());
    std::string text;
    const json::array* const parts = message.array("content", kMaximumParts);
    for (size_t i = 0; i < parts->size(); ++i) {
        const json::value& part = (*parts)[i];
        const std::string path = fmt::format("{}[{}]", message.path("content"), i);
        if (!part.is_object()) throw ApiError(400, path + ": expected an object, found " + shown(part), path);
        const Fields fields(part.get_object(), path);
        const auto type = fields.text("type");
        if (type != "text")
            throw ApiError(501,
                           fmt::format("{}: parts of type {} are not read; this version reads text alone", path,
                                       type ? shown(*fields.find("type")) : "nothing"),
                           path, "not_supported");
        text += fields.text("text").value_or("");
    }
    return text;
}

}  // namespace

text::WrittenChat write_chat(const Fields& fields, const ServedModel& model) {
    if (!model.writer) throw ApiError(400, model.writer_fault, "messages");
    const json::array* const given = fields.array("messages", kMaximumMessages);
    if (!given || given->empty()) throw ApiError(400, "messages: expected a list of at least one message", "messages");
    std::vector<text::ChatMessage> messages;
    for (size_t i = 0; i < given->size(); ++i) {
        const std::string path = fmt::format("messages[{}]", i);
        const json::value& value = (*given)[i];
        if (!value.is_object()) throw ApiError(400, path + ": expected an object, found " + shown(value), path);
        const Fields message(value.get_object(), path);
        const auto role = message.text("role");
        if (!role) message.reject("role", "system, user or assistant");
        messages.push_back({std::string(*role), content_of(message)});
    }
    return model.writer->write(messages);
}

}  // namespace tessera::server
