#include "tests/fuzz/structure_target.hpp"

#include "apps/structure/answer_grammar.hpp"
#include "apps/structure/ecma_pattern.hpp"
#include "apps/structure/tool_grammar.hpp"
#include "core/text/chat_template.hpp"
#include "tests/fuzz/promises.hpp"

#include <spdlog/fmt/fmt.h>

#include <memory>
#include <string>
#include <vector>

namespace tessera::fuzz {
namespace {

using namespace structure;

constexpr size_t kMostGrammar = 16 << 20;

// Of bytes, some marks of calls among them that are no text.
const text::Tokenizer& tokenizer() {
    static const std::unique_ptr<const text::Tokenizer> made = [] {
        text::VocabularyData data;
        data.model = "llama";
        const auto add = [&](std::string text, text::TokenType type) {
            data.tokens.push_back(std::move(text));
            data.types.push_back(type);
            data.scores.push_back(0);
        };
        add("<unk>", text::TokenType::kUnknown);
        add("<s>", text::TokenType::kControl);
        add("</s>", text::TokenType::kControl);
        for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte), text::TokenType::kByte);
        for (const char* const mark : {"<tool_call>", "</arg_value>", "<|\"|>", "\uff5cDSML\uff5c", "<|channel|>"})
            add(mark, text::TokenType::kControl);
        data.unk = 0;
        data.bos = 1;
        data.eos = 2;
        return std::make_unique<const text::Tokenizer>(std::move(data));
    }();
    return *made;
}

void check(const std::string& grammar) {
    expect(!grammar.empty() && grammar.size() <= kMostGrammar, "size of a grammar");
    expect(grammar.find('\0') == std::string::npos && is_utf8(grammar), "text of a grammar");
}

template <typename Make>
void check_body(const Make& make) {
    const auto first = attempt([&] { return answer_grammar(make()).text; });
    if (first) check(*first);
    expect(attempt([&] { return answer_grammar(make()).text; }) == first, "the same again");
}

void check_calls(uint8_t choice, std::string_view schema) {
    constexpr int syntaxes = static_cast<int>(text::ToolSyntax::kLast) + 1;
    text::ReplySyntax reply;
    reply.tools = static_cast<text::ToolSyntax>(choice % syntaxes);
    if (reply.tools == text::ToolSyntax::kChannels) reply.framing = text::ReplyFraming::kChannels;
    reply.reasoning = choice % 3 == 0;
    const std::string text(schema);
    const std::vector<text::ChatTool> described = {{"look_up", "", text, ""}};
    reply.texts = text::text_parameters(reply.tools, described);
    const std::vector<CallableTool> tools = {{"look_up", text}, {"other", text, false}};
    for (const bool any : {false, true}) {
        const auto made = attempt([&] {
            return answer_grammar(calls_body(reply, tools, {.any = any}, tokenizer()), reply, tokenizer()).text;
        });
        if (made) check(*made);
    }
}

}  // namespace

void run_structure(std::string_view input) {
    if (input.empty()) return;
    const auto choice = static_cast<uint8_t>(input[0]);
    const std::string_view rest = input.substr(1);
    switch (choice % 4) {
        case 0:
            return check_body([&] { return schema_body(rest); });
        case 1:
            return check_body([&] { return gbnf_body(rest, tokenizer()); });
        case 2:
            check_body([&] { return regex_body(rest); });
            if (const auto translated = attempt([&] { return translate_pattern(rest); }))
                attempt([&] { return whole_pattern(*translated); });
            return;
        default:
            return check_calls(choice / 4, rest);
    }
}

}  // namespace tessera::fuzz
