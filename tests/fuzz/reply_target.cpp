#include "tests/fuzz/reply_target.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/text/chat_template.hpp"
#include "core/text/json_text.hpp"
#include "core/text/python_json.hpp"
#include "tests/fuzz/promises.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace tessera::fuzz {
namespace {

using namespace text;
using Events = std::vector<ReplyEvent>;

// Calls are numbered in order, their arguments follow them, and no event is empty.
void check(const Events& events) {
    uint32_t calls = 0;
    for (const ReplyEvent& one : events) {
        expect(!one.text.empty(), "an event has text");
        if (one.kind == ReplyKind::kToolCall) {
            expect(one.call == calls, "number of a call");
            ++calls;
        } else if (one.kind == ReplyKind::kToolArguments) {
            expect(calls > 0 && one.call + 1 == calls, "arguments are of the last call");
        } else {
            expect(one.call == 0, "no call");
        }
    }
}

Events joined(const Events& events) {
    check(events);
    Events all;
    for (const ReplyEvent& one : events) {
        if (!all.empty() && one.kind != ReplyKind::kToolCall && all.back().kind == one.kind &&
            all.back().call == one.call) {
            all.back().text += one.text;
        } else {
            all.push_back(one);
        }
    }
    return all;
}

Events parse(const ReplySyntax& syntax, std::string_view text, size_t step, size_t growth) {
    ReplyParser parser(syntax);
    Events events;
    while (!text.empty()) {
        const size_t length = std::min(std::max<size_t>(step, 1), text.size());
        parser.push(text.substr(0, length), events);
        text.remove_prefix(length);
        step = growth == 0 ? step : step * growth % 13;
    }
    parser.push("", events);
    parser.finish(events);
    return joined(events);
}

// Deeper ones are JSON, too, which parse_python_json() does not take.
void check_json(std::string_view text) {
    constexpr std::ptrdiff_t kDeep = 200;
    const auto brackets = std::ranges::count_if(text, [](char c) { return c == '{' || c == '['; });
    std::string quoted = "\"";
    append_json_characters(quoted, text);
    const bool valid_utf8 = parse_python_json(quoted + '"').has_value();
    expect(brackets > kDeep || !valid_utf8 || parse_python_json(text).has_value(), "arguments are JSON");
}

void use_parser(uint8_t choice, uint8_t cut, std::string_view text) {
    ReplySyntax syntax;
    constexpr uint8_t kSyntaxes = static_cast<uint8_t>(ToolSyntax::kLast) + 1;
    syntax.tools = static_cast<ToolSyntax>(choice % kSyntaxes);
    syntax.reasoning = choice / kSyntaxes % 3 > 0;
    syntax.begins_in_reasoning = choice / kSyntaxes % 3 > 1;
    syntax.content_begun = choice / kSyntaxes / 3 % 2 > 0;
    syntax.content_or_calls = !text.empty() && text.back() % 2 > 0;
    syntax.exact = cut % 2 > 0;
    syntax.whole = cut % 4 > 1;
    syntax.names = std::make_shared<const ToolNames>(ToolNames{"f", "g"});
    if (syntax.tools == ToolSyntax::kChannels) syntax.framing = ReplyFraming::kChannels;
    if (syntax.tools == ToolSyntax::kMuse) syntax.framing = ReplyFraming::kRecipients;
    // Marks of these families, which their templates show.
    if (syntax.tools == ToolSyntax::kKimiK3) {
        syntax.content_open = "<|open|>response<|sep|>";
        syntax.content_marks = {syntax.content_open, "<|close|>response<|sep|>"};
    }
    if (syntax.tools == ToolSyntax::kRecipient) syntax.content_begin = "all\n";
    const Events whole = parse(syntax, text, text.size(), 0);
    expect(parse(syntax, text, 1, 0) == whole, "single bytes give the same");
    expect(parse(syntax, text, cut % 16, cut / 16) == whole, "cuts change nothing");

    std::string content;
    std::vector<std::string> arguments;
    for (const ReplyEvent& one : whole) {
        if (one.kind == ReplyKind::kToolCall) arguments.emplace_back();
        if (one.kind == ReplyKind::kToolArguments) arguments.back() += one.text;
        if (one.kind == ReplyKind::kContent) content += one.text;
    }
    for (const std::string& one : arguments) check_json(one);
    // Between parts are headers and marks.
    if (syntax.framing != ReplyFraming::kMarkers || !syntax.content_marks.empty() || !syntax.content_begin.empty())
        return;
    if (arguments.empty()) expect(text.ends_with(content), "content is what was written");
    if (arguments.empty() && !syntax.reasoning) expect(content == text, "all is content");
}

void use_json(std::string_view text) {
    const auto value = parse_python_json(text);
    if (!value) return;
    const std::string written = value->dumps();
    const auto again = parse_python_json(written);
    // Python writes what is larger than any number as a name that is no JSON.
    if (written.find("Infinity") != written.npos) return;
    expect(again && again->dumps() == written, "what was written is read as the same");
    expect(parse_python_json(value->dumps(4)).has_value(), "indented JSON");
}

// Each line is a message: its first byte chooses the role, and what the rest is: the content, reasoning, arguments of a
// call, or a tool.
void use_writer(uint8_t choice, std::string_view text) {
    static const std::vector<ChatTemplate> templates = [] {
        std::vector<ChatTemplate> all;
        for (const std::string& name : ChatTemplate::names()) all.push_back(ChatTemplate::by_name(name));
        return all;
    }();
    const ChatTemplate& chat = templates[choice % templates.size()];
    ChatOptions options{.bos = "<bos>", .eos = "<eos>", .add_generation_prompt = choice < 128};
    if (choice % 3 > 0) options.thinking = choice % 3 == 1;
    std::vector<ChatMessage> messages;
    while (!text.empty()) {
        const std::string line(text.substr(0, text.find('\n')));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        if (line.empty()) continue;
        const std::string rest = line.substr(1);
        switch (line.front()) {
            case 's':
                messages.push_back({"system", rest});
                break;
            case 'd':
                messages.push_back({"developer", rest});
                break;
            case 'u':
                messages.push_back({"user", rest});
                break;
            case 'a':
                messages.push_back({"assistant", rest});
                break;
            case 'r':
                messages.push_back({.role = "assistant", .content = "", .reasoning = rest});
                break;
            case 't':
                messages.push_back({"tool", rest});
                break;
            case 'c': {
                if (messages.empty() || messages.back().role != "assistant") messages.push_back({"assistant", ""});
                messages.back().tool_calls.push_back(
                    {"", rest.substr(0, rest.find('{')), rest.substr(std::min(rest.find('{'), rest.size()))});
                break;
            }
            case 'f':
                options.tools.push_back({rest, rest, "", ""});
                break;
            case 'w':
                options.tools.push_back({"f", "", "", rest});
                break;
            default:
                messages.push_back({line, line});
        }
    }
    try {
        const WrittenChat written = chat.write(messages, options);
        size_t at = 0;
        for (const TextRange& range : written.contents) {
            expect(at <= range.begin && range.begin < range.end && range.end <= written.text.size(), "ranges in order");
            expect(std::string_view(written.text).substr(at, range.begin - at).find('\x02') == std::string_view::npos,
                   "own text is the template's");
            at = range.end;
        }
        expect(written.text.find('\x02', at) == std::string::npos, "own text is the template's");
        parse(written.reply, written.text, 7, 0);
    } catch (const Error& error) {
        expect(error.code() == TSR_INVALID_ARGUMENT || error.code() == TSR_UNSUPPORTED, "code of an error");
        expect(printable(error.what(), SIZE_MAX) == error.what(), "message that is not fit to print");
    }
}

}  // namespace

void run_reply(std::string_view input) {
    if (input.size() < 2) return;
    const auto choice = static_cast<uint8_t>(input[0]);
    const auto cut = static_cast<uint8_t>(input[1]);
    const std::string_view text = input.substr(2);
    use_parser(choice, cut, text);
    use_json(text);
    use_writer(choice, text);
}

}  // namespace tessera::fuzz
