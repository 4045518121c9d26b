#include "apps/tessera-server/text_api.hpp"

#include "apps/tessera-server/chat_messages.hpp"
#include "apps/tessera-server/json_text.hpp"
#include "apps/tessera-server/request_fields.hpp"
#include "apps/tessera-server/request_tables.hpp"
#include "core/base/text.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

namespace tessera::server {
namespace {

namespace json = boost::json;

constexpr size_t kMaximumTokens = 1 << 24;

HttpResponse json_response(std::string body) {
    return {200, "application/json", std::move(body), {}};
}

// A text, or its bytes where it ends within a character.
std::string piece_json(std::string_view piece) {
    if (is_utf8(piece)) return json_string(piece);
    const std::vector<unsigned> bytes(reinterpret_cast<const unsigned char*>(piece.data()),
                                      reinterpret_cast<const unsigned char*>(piece.data()) + piece.size());
    return fmt::format("[{}]", fmt::join(bytes, ","));
}

}  // namespace

HttpResponse tokenize_response(std::string_view body, const ModelText& model) {
    const json::object object = parse_object(body);
    const Fields fields(object, tokenize_table());
    const auto content = fields.text("content");
    if (!content) fields.reject("content", "a text");
    const std::vector<text::Token> tokens =
        model.tokenizer->encode(*content, {.add_special = fields.boolean("add_special").value_or(false),
                                           .parse_special = fields.boolean("parse_special").value_or(true)});
    const bool with_pieces = fields.boolean("with_pieces").value_or(false);
    fields.check_read();
    if (!with_pieces) return json_response(fmt::format(R"({{"tokens":[{}]}})", fmt::join(tokens, ",")));
    std::string pieces;
    for (const text::Token token : tokens) {
        pieces += fmt::format(R"({}{{"id":{},"piece":{}}})", pieces.empty() ? "" : ",", token,
                              piece_json(model.tokenizer->bytes(token)));
    }
    return json_response(fmt::format(R"({{"tokens":[{}]}})", pieces));
}

HttpResponse detokenize_response(std::string_view body, const ModelText& model) {
    const json::object object = parse_object(body);
    const Fields fields(object, detokenize_table());
    const json::array* const given = fields.array("tokens", kMaximumTokens);
    if (!given) fields.reject("tokens", "a list of tokens");
    fields.check_read();
    const std::vector<text::Token> tokens = read_tokens(fields, "tokens", *given, *model.tokenizer);
    return json_response(
        fmt::format(R"({{"content":{}}})",
                    json_string(model.tokenizer->decode(tokens, {.show_control = true, .drop_prefix_space = false}))));
}

HttpResponse apply_template_response(std::string_view body, const ModelText& model) {
    const json::object object = parse_object(body);
    const Fields fields(object, template_table());
    const text::WrittenChat chat = write_chat(fields, model);
    fields.check_read();
    return json_response(fmt::format(R"({{"prompt":{}}})", json_string(chat.text)));
}

}  // namespace tessera::server
