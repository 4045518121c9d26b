// Answers as text, read whole and in parts.
#pragma once

#include "core/text/python_json.hpp"
#include "core/text/reply_parser.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::text {

struct ReadReply {
    std::string reasoning, content;
    std::vector<std::pair<std::string, std::string>> calls = {};  // names and arguments

    bool operator==(const ReadReply&) const = default;
};

inline void PrintTo(const ReadReply& reply, std::ostream* out) {
    *out << "reasoning '" << reply.reasoning << "', content '" << reply.content << "'";
    for (const auto& [name, arguments] : reply.calls) *out << ", " << name << " " << arguments;
}

// In pushes of `step` bytes. The parser moves to another place before it reads, and again in the middle, as one in a
// vector does.
inline ReadReply read_reply(const ReplySyntax& syntax, std::string_view text, size_t step) {
    std::optional<ReplyParser> made_here(syntax);
    std::optional<ReplyParser> parser(std::move(*made_here));
    made_here.reset();
    std::vector<ReplyEvent> events;
    bool moved = false;
    for (size_t at = 0; at < text.size(); at += std::min(step, text.size() - at)) {
        if (!moved && at >= text.size() / 2) {
            std::optional<ReplyParser> next(std::move(*parser));
            parser.reset();
            parser.emplace(std::move(*next));
            moved = true;
        }
        parser->push(text.substr(at, step), events);
    }
    parser->finish(events);
    ReadReply made;
    for (const ReplyEvent& event : events) {
        if (event.kind == ReplyKind::kReasoning) made.reasoning += event.text;
        if (event.kind == ReplyKind::kContent) made.content += event.text;
        if (event.kind == ReplyKind::kToolCall) made.calls.emplace_back(event.text, "");
        if (event.kind == ReplyKind::kToolArguments) made.calls.at(event.call).second += event.text;
    }
    return made;
}

// The same, and checks that other cuts change nothing, and that arguments are JSON wherever the answer ends.
inline ReadReply read_every_way(const ReplySyntax& syntax, std::string_view text) {
    const ReadReply whole = read_reply(syntax, text, text.size());
    for (const size_t step : {1, 2, 3, 5, 7}) EXPECT_EQ(read_reply(syntax, text, step), whole) << text << ", " << step;
    for (size_t end = 0; end <= text.size(); ++end) {
        if (end < text.size() && (text[end] & 0xC0) == 0x80) continue;  // within a character
        for (const auto& [name, arguments] : read_reply(syntax, text.substr(0, end), end).calls)
            EXPECT_TRUE(parse_python_json(arguments)) << text.substr(0, end) << ": " << arguments;
    }
    return whole;
}

}  // namespace tessera::text
