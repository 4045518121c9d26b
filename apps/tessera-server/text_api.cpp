#include "apps/tessera-server/text_api.hpp"

#include "apps/tessera-server/chat_messages.hpp"
#include "apps/tessera-server/json_text.hpp"
#include "apps/tessera-server/request_fields.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

namespace tessera::server {
namespace {

namespace json = boost::json;

constexpr size_t kMaximumTokens = 1 << 24;

HttpResponse json_response(std::string body) {
    return {200, "application/json", std::move(body), {}};
}

}  // namespace

HttpResponse tokenize_response(std::string_view body, const ModelText& model) {
    const json::object object = parse_object(body);
    const Fields fields(object);
    const auto content = fields.text("content");
    if (!content) fields.reject("content", "a text");
    const std::vector<text::Token> tokens =
        model.tokenizer->encode(*content, {.add_special = fields.boolean("add_special").value_or(false),
                                           .parse_special = fields.boolean("parse_special").value_or(true)});
    if (!fields.boolean("with_pieces").value_or(false))
        return json_response(fmt::format(R"({{"tokens":[{}]}})", fmt::join(tokens, ",")));
    std::string pieces;
    for (const text::Token token : tokens) {
        pieces += fmt::format(R"({}{{"id":{},"piece":{}}})", pieces.empty() ? "" : ",", token,
                              json_string(model.tokenizer->bytes(token)));
    }
    return json_response(fmt::format(R"({{"tokens":[{}]}})", pieces));
}

HttpResponse detokenize_response(std::string_view body, const ModelText& model) {
    const json::object object = parse_object(body);
    const Fields fields(object);
    const json::array* const given = fields.array("tokens", kMaximumTokens);
    if (!given) fields.reject("tokens", "a list of tokens");
    const std::vector<text::Token> tokens = read_tokens(fields, "tokens", *given, *model.tokenizer);
    return json_response(
        fmt::format(R"({{"content":{}}})",
                    json_string(model.tokenizer->decode(tokens, {.show_control = true, .drop_prefix_space = false}))));
}

HttpResponse apply_template_response(std::string_view body, const ModelText& model) {
    const json::object object = parse_object(body);
    return json_response(fmt::format(R"({{"prompt":{}}})", json_string(write_chat(Fields(object), model).text)));
}

}  // namespace tessera::server
