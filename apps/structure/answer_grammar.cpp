#include "apps/structure/answer_grammar.hpp"

#include "apps/structure/ecma_pattern.hpp"
#include "apps/structure/lark.hpp"
#include "core/base/error.hpp"
#include "core/text/tool_reader.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace tessera::structure {
namespace {

// Before anything is made of what would be too large in any case.
void check_bytes(std::string_view what, size_t bytes) {
    constexpr size_t kMostBytes = 1 << 20;
    if (bytes > kMostBytes) fail(TSR_INVALID_ARGUMENT, "{} {} bytes; at most {} are accepted", what, bytes, kMostBytes);
}

// Any text up to a marker, and the marker. `never`: what the text does not have.
std::string text_until(std::string_view marker, std::vector<std::string> never, const text::Tokenizer& tokenizer) {
    const bool ends = std::ranges::any_of(never, [&](const std::string& one) { return marker.starts_with(one); });
    if (!ends && plain_begin(marker, tokenizer).size() == marker.size()) never.emplace_back(marker);
    const std::string text = lark_without(never);
    const Expression made = lark_until(text, marker, "THOUGHTS", tokenizer);
    return fmt::format("thoughts: {}\n{}", made.text, made.rules);
}

std::string channels(const Body& body, const text::ReplySyntax& syntax, const text::Tokenizer& tokenizer) {
    if (syntax.begins_in_reasoning || syntax.content_begun)
        fail(TSR_UNSUPPORTED, "a message that has been begun cannot be held to a grammar");
    const MessageMarks marks = message_marks(syntax.framing);
    return fmt::format("start: ({} thoughts)? {} body\n{}", lark_markers(marks.reasoning, tokenizer),
                       body.has_header ? std::string() : content_header(syntax, tokenizer),
                       text_until(marks.next, call_markers(syntax), tokenizer));
}

}  // namespace

MessageMarks message_marks(text::ReplyFraming framing) {
    if (framing == text::ReplyFraming::kRecipients)
        return {" to=self<|message|>", " to=user<|message|>", " to=user<|message|>", "<|eom|><|start|>assistant"};
    return {"<|channel|>analysis<|message|>", "<|channel|>final<|message|>", "<|channel|>commentary<|message|>",
            "<|end|><|start|>assistant"};
}

std::string content_header(const text::ReplySyntax& reply, const text::Tokenizer& tokenizer) {
    if (reply.framing != text::ReplyFraming::kMarkers)
        return lark_markers(message_marks(reply.framing).content, tokenizer);
    std::string either;
    for (const std::string& mark : {reply.content_begin, reply.content_open})
        if (!mark.empty()) either += fmt::format("{}({})", either.empty() ? "" : " | ", lark_markers(mark, tokenizer));
    return either.empty() ? "" : fmt::format("({})?", either);
}

Body schema_body(const boost::json::value& schema, const SchemaOptions& options) {
    ReadSchema read = read_schema(schema, options);
    return {.rules = fmt::format("body: %json {}\n", schema_rule(read.schema)),
            .unenforced = std::move(read.unenforced)};
}

Body schema_body(std::string_view schema, const SchemaOptions& options) {
    return schema_body(parse_schema(schema), options);
}

Body any_object_body() {
    return schema_body(any_object());
}

Body regex_body(std::string_view pattern) {
    check_bytes("the pattern has", pattern.size());
    // All of the answer is matched in any case.
    if (pattern.starts_with('^')) pattern.remove_prefix(1);
    if (pattern.ends_with('$') && !pattern.ends_with("\\$")) pattern.remove_suffix(1);
    return {.rules = fmt::format("body: BODY\nBODY: {}\n", lark_regex(translate_pattern(pattern)))};
}

Body choice_body(std::span<const std::string> choices) {
    size_t bytes = 0;
    for (const std::string& choice : choices) bytes += choice.size();
    check_bytes("the choices have", bytes);
    std::string all;
    for (const std::string& choice : choices) all += (all.empty() ? "" : "|") + quoted_for_regex(choice);
    return {.rules = fmt::format("body: BODY\nBODY: {}\n", lark_regex(all))};
}

GrammarText answer_grammar(const Body& body) {
    return {GrammarKind::kLark, "start: body\n" + body.rules};
}

GrammarText answer_grammar(const Body& body, const text::ReplySyntax& syntax, const text::Tokenizer& tokenizer) {
    std::string begin;
    const std::string header = body.has_header ? std::string() : content_header(syntax, tokenizer);
    if (syntax.framing != text::ReplyFraming::kMarkers) {
        begin = channels(body, syntax, tokenizer);
    } else if (!syntax.reasoning) {
        begin = fmt::format("start: {} body\n", header);
    } else {
        begin = syntax.begins_in_reasoning ? fmt::format("start: thoughts BLANK? {} body\n", header)
                                           : fmt::format("start: (BLANK? {} thoughts BLANK?)? {} body\n",
                                                         lark_markers(syntax.reasoning_begin, tokenizer), header);
        const auto reader = text::make_tool_reader(syntax);
        const auto never = reader && reader->in_reasoning() ? call_markers(syntax) : std::vector<std::string>();
        begin += text_until(syntax.reasoning_end, never, tokenizer) + "BLANK: /[\\n]{1,4}/\n";
    }
    return {GrammarKind::kLark, begin + body.rules};
}

}  // namespace tessera::structure
