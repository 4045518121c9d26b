// What answers may be, as a grammar in llguidance's Lark: reasoning as the model writes it, then a body.
#pragma once

#include "apps/structure/helper.hpp"
#include "apps/structure/json_schema.hpp"
#include "core/text/reply_parser.hpp"

#include <boost/json/value.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::structure {

// Rules of a Lark grammar, of which `body` is what an answer is.
struct Body {
    std::string rules;
    bool has_header = false;  // it begins with what the syntax writes before content, or needs none
    // Places of what a schema says and the rules do not: "properties/a/uniqueItems", of a tool "NAME/properties/a/not".
    std::vector<std::string> unenforced = {};
};

// All throw Error(TSR_INVALID_ARGUMENT) with what cannot be held to.
Body schema_body(const boost::json::value& schema, const SchemaOptions& options = {});
Body schema_body(std::string_view schema, const SchemaOptions& options = {});
Body any_object_body();
// A pattern that all of the answer matches, as translate_pattern() takes it.
Body regex_body(std::string_view pattern);
// One of them, of which none may be empty.
Body choice_body(std::span<const std::string> choices);
// A grammar as llama.cpp writes it, see gbnf.hpp.
Body gbnf_body(std::string_view grammar, const text::Tokenizer& tokenizer);

// Marks of messages (ReplyFraming): before reasoning, content, and content that calls follow, and what stands between
// two messages.
struct MessageMarks {
    std::string_view reasoning, content, words_before_call, next;
};
MessageMarks message_marks(text::ReplyFraming framing);

// What stands before content, as an expression; empty: nothing.
std::string content_header(const text::ReplySyntax& reply, const text::Tokenizer& tokenizer);

// What free text within such an answer must not have, as it would be read as the beginning of a call; none: it has no
// calls.
std::vector<std::string> call_markers(const text::ReplySyntax& reply);

// The body alone.
GrammarText answer_grammar(const Body& body);
// Behind the reasoning with which answers of this syntax begin, which is free. Throws Error(TSR_UNSUPPORTED) for one
// that has been begun, and where the vocabulary lacks what the syntax is written with.
GrammarText answer_grammar(const Body& body, const text::ReplySyntax& syntax, const text::Tokenizer& tokenizer);

}  // namespace tessera::structure
