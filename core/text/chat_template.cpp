#include "core/text/chat_template.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <array>

namespace tessera::text {

ChatTemplate ChatTemplate::by_name(std::string_view name) {
    for (const NamedChatFormat& one : known_chat_formats())
        if (std::ranges::find(one.names, name) != one.names.end()) return ChatTemplate(one.format);
    fail(TSR_NOT_FOUND, "chat template: expected one of {}, found '{}'", fmt::join(names(), ", "), printable(name, 60));
}

ChatTemplate ChatTemplate::recognize(std::string_view program) {
    if (auto format = recognize_chat_format(program)) return ChatTemplate(std::move(*format));
    fail(TSR_UNSUPPORTED,
         "tokenizer.chat_template: this template is not known ('{}'); name the form that the model was trained on with "
         "--chat-template, "
         "one of {}",
         printable(program, 80), fmt::join(names(), ", "));
}

std::vector<std::string> ChatTemplate::names() {
    std::vector<std::string> names;
    for (const NamedChatFormat& one : known_chat_formats()) names.emplace_back(one.names.front());
    return names;
}

ReplySyntax ChatTemplate::reply_syntax(const ChatOptions& options) const {
    const ChatFormat& f = format_;
    const bool thinking = f.can_think && options.thinking.value_or(f.thinks_by_default);
    std::string opening = f.generation;
    if (f.can_think) opening += thinking ? f.generation_thinking : f.generation_direct;
    ReplySyntax syntax;
    syntax.begins_in_reasoning =
        options.add_generation_prompt && (opening.ends_with("<think>") || opening.ends_with("<think>\n"));
    // A form that drops thoughts from earlier answers, or keeps some, has them.
    syntax.reasoning = syntax.begins_in_reasoning || thinking ||
                       (!f.can_think && (f.qwen3_thoughts || f.thoughts != ChatFormat::Thoughts::kKeep));
    if (!options.tools.empty()) syntax.tools = f.tools.syntax;
    return syntax;
}

std::string ChatTemplate::markers() const {
    const ChatFormat& f = format_;
    std::string all;
    for (const std::string& piece :
         {f.system.before, f.system.after, f.default_system_after.value_or(""), f.user.before, f.user.after,
          f.assistant.before, f.assistant.after, f.generation, f.generation_thinking, f.generation_direct,
          f.tools.calls.before, f.tools.calls.after, f.tools.call.before, f.tools.call.after, f.tools.name_after,
          f.tools.results.before, f.tools.results.after, f.tools.result.before, f.tools.result.after}) {
        all += piece + '\n';
    }
    if (f.tools.syntax == ToolSyntax::kDeepSeekV32) all += "<\uff5cDSML\uff5cparameter name=\n";
    return all;
}

bool acts_as_control(std::string_view spelling) noexcept {
    constexpr std::array<std::string_view, 10> tags = {
        "<think>",          "</think>", "<tool_call>", "</tool_call>", "<tool_response>",
        "</tool_response>", "<tools>",  "</tools>",    "<dsml:",       "</dsml:"};
    constexpr std::string_view bar = "\uff5c";
    if (spelling.size() > 2 * bar.size() && spelling.starts_with(bar) && spelling.ends_with(bar)) return true;
    return spelling.starts_with('<') && (spelling.find('|') != spelling.npos || spelling.find(bar) != spelling.npos ||
                                         std::ranges::find(tags, spelling) != tags.end());
}

}  // namespace tessera::text
