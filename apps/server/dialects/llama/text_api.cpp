#include "apps/server/dialects/llama/text_api.hpp"

#include "apps/server/api_error.hpp"
#include "apps/server/chat_messages.hpp"
#include "apps/server/counted_body.hpp"
#include "apps/server/dialects/llama/dialect.hpp"
#include "apps/server/request_fields.hpp"
#include "core/base/text.hpp"
#include "core/text/detokenizer.hpp"
#include "core/text/json_writer.hpp"

#include <spdlog/fmt/fmt.h>

namespace tessera::server {
namespace {

namespace json = boost::json;

constexpr size_t kMaximumTextTokens = 1 << 24;

// A text, or its bytes where it ends within a character.
void write_piece(text::JsonWriter& json, std::string_view bytes) {
    if (is_utf8(bytes)) {
        json.value(bytes);
        return;
    }
    json.begin_list();
    for (const char byte : bytes) json.value(static_cast<unsigned char>(byte));
    json.end_list();
}

}  // namespace

HttpResponse tokenize_response(std::string_view body, const ModelText& model, ByteBudget& memory) {
    const json::object object = parse_object(body);
    const Fields fields(object, tokenize_table());
    const auto content = fields.text("content");
    if (!content) fields.reject("content", "a text");
    const bool with_pieces = fields.boolean("with_pieces").value_or(false);
    const text::EncodeOptions options{.add_special = fields.boolean("add_special").value_or(false),
                                      .parse_special = fields.boolean("parse_special").value_or(true),
                                      .most_tokens = kMaximumTextTokens};
    fields.check_read();
    const std::vector<text::Token> tokens = model.tokenizer->encode(*content, options);
    if (tokens.size() > kMaximumTextTokens)
        throw ApiError(400, fmt::format("content: more than {} tokens; send it in parts", kMaximumTextTokens),
                       "content");
    CountedBody response(memory, "content");
    if (const size_t bytes = tokens.capacity() * sizeof(text::Token); bytes > CountedBody::kUncounted)
        response.count(bytes);
    response.append(R"({"tokens":[)");
    for (size_t i = 0; i < tokens.size(); ++i) {
        if (i > 0) response.append(",");
        if (with_pieces) {
            std::string part;
            text::JsonWriter json(part);
            json.begin_object().member("id", tokens[i]).key("piece");
            write_piece(json, model.tokenizer->bytes(tokens[i]));
            json.end_object();
            response.append(part);
        } else {
            response.append(fmt::format("{}", tokens[i]));
        }
    }
    response.append("]}");
    return json_response(response.take());
}

HttpResponse detokenize_response(std::string_view body, const ModelText& model, ByteBudget& memory) {
    const json::object object = parse_object(body);
    const Fields fields(object, detokenize_table());
    const json::array* const given = fields.array("tokens", kMaximumTextTokens);
    if (!given) fields.reject("tokens", "a list of tokens");
    fields.check_read();
    CountedBody response(memory, "tokens");
    text::StreamingDetokenizer detokenizer(*model.tokenizer, true);
    response.append(R"({"content":")");
    const auto append = [&](std::string_view bytes) {
        std::string quoted = text::json_string(bytes);
        response.append(std::string_view(quoted).substr(1, quoted.size() - 2));
    };
    for (const json::value& value : *given)
        append(detokenizer.push(read_token(fields, "tokens", value, *model.tokenizer)));
    append(detokenizer.finish());
    response.append("\"}");
    return json_response(response.take());
}

HttpResponse apply_template_response(std::string_view body, const ModelText& model, ByteBudget& memory) {
    const json::object object = parse_object(body);
    const Fields fields(object, template_table());
    // Of any length, as far as memory goes: nothing is generated.
    const Conversation conversation = read_conversation(fields, model);
    fields.check_read();
    const text::WrittenChat chat = write(conversation, model, [](uint64_t) {});
    CountedBody response(memory, "messages");
    response.append(R"({"prompt":)");
    response.append(text::json_string(chat.text));
    response.append("}");
    return json_response(response.take());
}

}  // namespace tessera::server
