#include "tests/structure/calls_walk.hpp"

#include "apps/structure/call_format.hpp"
#include "apps/structure/tool_grammar.hpp"
#include "core/text/chat_template.hpp"
#include "tests/structure/walking.hpp"

#include <boost/json/serialize.hpp>

#include <algorithm>
#include <utility>

namespace tessera::structure {
namespace {

namespace json = boost::json;
using enum text::ToolSyntax;

std::vector<text::ToolSyntax> all_syntaxes() {
    std::vector<text::ToolSyntax> all;
    for (int i = 0; i <= static_cast<int>(kLast); ++i)
        if (call_format(static_cast<text::ToolSyntax>(i))) all.push_back(static_cast<text::ToolSyntax>(i));
    return all;
}

constexpr const char* kControl[] = {"<tool_call>",
                                    "</tool_call>",
                                    "<｜tool▁calls▁begin｜>",
                                    "<｜tool▁calls▁end｜>",
                                    "<｜tool▁call▁begin｜>",
                                    "<｜tool▁call▁end｜>",
                                    "<｜tool▁sep｜>",
                                    "｜DSML｜",
                                    "<|tool_calls_section_begin|>",
                                    "<|tool_calls_section_end|>",
                                    "<|tool_call_begin|>",
                                    "<|tool_call_end|>",
                                    "<|tool_call_argument_begin|>",
                                    "<arg_key>",
                                    "</arg_key>",
                                    "<arg_value>",
                                    "</arg_value>",
                                    "<seed:tool_call>",
                                    "</seed:tool_call>",
                                    "<minimax:tool_call>",
                                    "</minimax:tool_call>",
                                    "]<]minimax[>[",
                                    "[TOOL_CALLS]",
                                    "[ARGS]",
                                    "<|tool_call|>",
                                    "<|tool_call>",
                                    "<tool_call|>",
                                    "<|\"|>",
                                    "<|tool_call_start|>",
                                    "<|START_ACTION|>",
                                    "<|END_ACTION|>",
                                    "<|message_sep|>",
                                    "<|role_sep|>",
                                    "<|channel|>",
                                    "<|message|>",
                                    "<|constrain|>",
                                    "<|start|>",
                                    "<|end|>",
                                    "<|call|>",
                                    "<|return|>",
                                    "<|tools_prefix|>",
                                    "<|tools_suffix|>",
                                    "<|function_call|>",
                                    "<|open|>",
                                    "<|close|>",
                                    "<|sep|>",
                                    "<|eom|>",
                                    "<|eot|>",
                                    "<|tool_calls|>",
                                    "<|tool_call:begin|>",
                                    "<|tool_call:name|>",
                                    "<|tool_call:args|>",
                                    "<|tool_call:end|>",
                                    "<|calls|>",
                                    "<|begin|>",
                                    "<tool_call:opensource>",
                                    "</tool_call:opensource>",
                                    "<arg_key:opensource>",
                                    "<arg_value:opensource>",
                                    "<think>",
                                    "</think>"};

std::vector<std::string> hints_for(const CallFormat& format, bool calling) {
    std::vector<std::string> hints = {"\"", "]", "}", "\"}", ", ", ")"};
    const auto add = [&](std::string_view text) {
        // Up to what stands for several texts.
        std::string one(text);
        std::erase(one, kOptionalBreak);
        one.resize(std::min(one.find_first_of(kStandIns), one.size()));
        if (!one.empty()) hints.push_back(std::move(one));
    };
    add(format.call_end);
    add(format.section_end);
    add("<|\"|>");
    add("</think>");
    add("<think>");
    if (format.syntax == kChannels) add("<|end|><|start|>assistant");
    if (format.syntax == kMuse) add("<|eom|><|start|>assistant");
    if (format.tags) add(format.tags->value_end);
    // Llama's call begins with nothing.
    std::string begin = std::string(format.section) + std::string(format.call);
    // Both begin with what content begins with, too.
    if (format.syntax == kMuse) begin = " to=f<|message|>";
    if (format.syntax == kRecipient) begin = "f\n";
    const size_t others = hints.size();
    for (size_t i = 0; calling && i < others; ++i) add(begin.empty() ? "{\"name\": \"" : begin);
    return hints;
}

json::object read_back(const text::ReplySyntax& syntax, const Walked& walked) {
    text::ReplyParser parser(syntax);
    std::vector<text::ReplyEvent> events;
    parser.push(walked.text, events);
    parser.finish(events);
    std::string content, reasoning;
    std::vector<std::pair<std::string, std::string>> calls;
    for (const text::ReplyEvent& event : events) {
        switch (event.kind) {
            case text::ReplyKind::kContent:
                content += event.text;
                break;
            case text::ReplyKind::kReasoning:
                reasoning += event.text;
                break;
            case text::ReplyKind::kToolCall:
                calls.emplace_back(event.text, "");
                break;
            case text::ReplyKind::kToolArguments:
                calls.at(event.call).second += event.text;
                break;
        }
    }
    json::array list;
    for (const auto& [name, arguments] : calls) list.push_back(json::array{json::value(name), json::value(arguments)});
    return {{"text", walked.text},
            {"ended", walked.ended},
            {"content", content},
            {"reasoning", reasoning},
            {"calls", std::move(list)}};
}

// "ok", or what of the text the grammar does not allow.
std::string held_to(const Grammar& grammar, const text::Tokenizer& tokenizer, std::string_view text) {
    const auto constraint = grammar.begin();
    for (const text::Token token : longest_tokens(text, tokenizer)) {
        wait_for_mask(*constraint);
        if (!is_allowed(*constraint, token)) return std::string(text);
        constraint->accept(std::span(&token, 1));
        text.remove_prefix(tokenizer.bytes(token).size());
    }
    wait_for_mask(*constraint);
    return is_allowed(*constraint, tokenizer.generation_ends().front()) ? "ok" : "not over";
}

bool is_set(const json::object& asked, std::string_view name) {
    const json::value* const found = asked.if_contains(name);
    return found && found->as_bool();
}

}  // namespace

CallsWalker::CallsWalker(const text::VocabularyData& vocabulary) {
    const auto make = [](text::VocabularyData data) {
        Model made;
        made.tokenizer = std::make_unique<text::Tokenizer>(std::move(data));
        made.helper = std::make_unique<Helper>(*made.tokenizer);
        return made;
    };
    plain_ = make(vocabulary);
    text::VocabularyData more = vocabulary;
    if (more.types.empty()) more.types.assign(more.tokens.size(), text::TokenType::kNormal);
    for (const char* const one : kControl) {
        if (std::ranges::find(more.tokens, one) != more.tokens.end()) continue;
        more.tokens.emplace_back(one);
        more.types.push_back(text::TokenType::kControl);
        if (!more.scores.empty()) more.scores.push_back(0);
    }
    special_ = make(std::move(more));
}

CallsWalker::~CallsWalker() = default;

json::object CallsWalker::answer(const json::object& asked) const {
    if (asked.contains("syntaxes")) {
        json::array names;
        for (const text::ToolSyntax one : all_syntaxes()) names.push_back(json::value(name_of(one)));
        return {{"syntaxes", std::move(names)}};
    }
    const std::string_view name = asked.at("syntax").as_string();
    text::ReplySyntax syntax;
    for (const text::ToolSyntax one : all_syntaxes())
        if (name == name_of(one)) syntax.tools = one;
    if (syntax.tools == kChannels) syntax.framing = text::ReplyFraming::kChannels;
    if (syntax.tools == kMuse) syntax.framing = text::ReplyFraming::kRecipients;
    syntax.reasoning = is_set(asked, "reasoning") || syntax.framing != text::ReplyFraming::kMarkers;
    syntax.exact = true;
    // As the templates of these models have it.
    if (syntax.tools == kKimiK3) {
        syntax.content_open = "<|open|>response<|sep|>";
        syntax.content_marks = {syntax.content_open, "<|close|>response<|sep|>"};
    }
    if (syntax.tools == kRecipient) syntax.content_begin = "all\n";
    std::vector<CallableTool> tools;
    std::vector<text::ChatTool> described;
    for (const json::value& one : asked.at("tools").as_array()) {
        const json::object& tool = one.as_object();
        const std::string parameters = json::serialize(tool.at("parameters"));
        const bool held = !tool.contains("held") || tool.at("held").as_bool();
        tools.push_back({std::string(tool.at("name").as_string()), parameters, held, is_set(tool, "allow")});
        described.push_back({tools.back().name, "", parameters, ""});
    }
    syntax.texts = text_parameters(syntax.tools, described);
    auto tool_names = std::make_shared<text::ToolNames>();
    for (const CallableTool& tool : tools) tool_names->insert(tool.name);
    syntax.names = tool_names;
    const Model& model = is_set(asked, "special") ? special_ : plain_;
    std::shared_ptr<const Grammar> grammar;
    json::array unenforced;
    try {
        const json::value* const otherwise = asked.if_contains("otherwise");
        const Body form = otherwise ? schema_body(*otherwise) : Body();
        syntax.content_or_calls = otherwise != nullptr;
        const Body body = calls_body(syntax, tools, {.any = is_set(asked, "any"), .several = is_set(asked, "several")},
                                     *model.tokenizer, otherwise ? &form : nullptr);
        for (const std::string& place : body.unenforced) unenforced.push_back(json::value(place));
        grammar = model.helper->compile(answer_grammar(body, syntax, *model.tokenizer));
    } catch (const Error& error) {
        return {{"refused", error.what()}};
    }
    if (const json::value* const said = asked.if_contains("said")) {
        json::array held;
        for (const json::value& text : said->as_array())
            held.push_back(json::value(held_to(*grammar, *model.tokenizer, text.as_string())));
        return {{"held", std::move(held)}, {"unenforced", std::move(unenforced)}};
    }
    const std::vector<std::string> hints = hints_for(*call_format(syntax.tools), is_set(asked, "calling"));
    std::mt19937 random(static_cast<unsigned>(asked.at("seed").to_number<int64_t>()));
    json::array texts;
    for (int64_t i = 0; i < asked.at("walks").to_number<int64_t>(); ++i) {
        try {
            texts.push_back(read_back(syntax, walk(*grammar, *model.tokenizer, hints, 200, random)));
        } catch (const Error& error) {
            texts.push_back(json::object{{"error", error.what()}, {"ended", false}, {"calls", json::array()}});
        }
    }
    return {{"texts", std::move(texts)}, {"unenforced", std::move(unenforced)}};
}

}  // namespace tessera::structure
