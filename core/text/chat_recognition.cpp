// Recognises the Jinja programs of known families by what decides their output: the literals around each message, where
// system messages go, what happens to thoughts, and how an answer is opened. Each of these must be one that is known.
#include "core/text/chat_template.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>

namespace tessera::text {
namespace {

void replace(std::string& text, std::string_view from, std::string_view to) {
    std::string out;
    out.reserve(text.size());
    std::string_view rest = text;
    for (size_t hit; (hit = rest.find(from)) != std::string_view::npos; rest.remove_prefix(hit + from.size())) {
        out += rest.substr(0, hit);
        out += to;
    }
    out += rest;
    text = std::move(out);
}

bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// A canonical spelling of the program: no comments, the white space between tags that survives rendering
// (with trim_blocks and lstrip_blocks, as transformers renders), none in tags but inside literals, single quotes,
// newlines and quotes for their escapes, message['content'] for message.content and m['content'].
std::string normalized(std::string_view program) {
    std::string out;
    out.reserve(program.size());
    size_t text_begin = 0;  // where in `out` the text since the last tag begins
    const auto is_space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
    const auto strip_before = [&](bool dash, bool block) {
        if (dash) {
            while (out.size() > text_begin && is_space(out.back())) out.pop_back();
        } else if (block) {
            size_t at = out.size();
            while (at > text_begin && (out[at - 1] == ' ' || out[at - 1] == '\t')) --at;
            if (at == 0 || out[at - 1] == '\n') out.resize(at);
        }
    };
    const auto strip_after = [&](size_t i, bool dash, bool block) {
        if (dash) {
            while (i < program.size() && is_space(program[i])) ++i;
        } else if (block && i < program.size() && program[i] == '\n') {
            ++i;
        }
        return i;
    };
    const auto at = [&](size_t i) { return i < program.size() ? program[i] : '\0'; };
    for (size_t i = 0; i < program.size();) {
        const std::string_view two = program.substr(i, 2);
        if (two == "{#") {
            strip_before(at(i + 2) == '-', true);
            const size_t end = program.find("#}", i + 2);
            if (end == std::string_view::npos) break;
            i = strip_after(end + 2, program[end - 1] == '-', true);
            continue;
        }
        if (two != "{{" && two != "{%") {
            out += program[i++];
            continue;
        }
        const bool block = two == "{%";
        strip_before(at(i + 2) == '-', block);
        out += two;
        i += at(i + 2) == '-' ? 3 : 2;
        const std::string_view closing = block ? "%}" : "}}";
        for (char quote = 0; i < program.size(); ++i) {
            const char c = program[i];
            if (quote != 0) {
                if (c == '\\' && at(i + 1) == 'n') {
                    out += '\n';
                    ++i;
                } else if (c == '\\' && (at(i + 1) == '\'' || at(i + 1) == '"')) {
                    out += program[++i];
                } else if (c == quote) {
                    out += '\'';
                    quote = 0;
                } else {
                    out += c;
                }
            } else if (program.substr(i, 2) == closing) {
                const bool dash = out.ends_with('-');
                if (dash) out.pop_back();
                out += closing;
                i = strip_after(i + 2, dash, block);
                break;
            } else if (c == '\'' || c == '"') {
                out += '\'';
                quote = c;
            } else if (!is_space(c)) {
                out += c;
            }
        }
        text_begin = out.size();
    }
    replace(out, "message.role", "message['role']");
    replace(out, "message.content", "message['content']");
    std::string renamed;
    for (size_t i = 0; i < out.size(); ++i) {
        if (out.compare(i, 3, "m['") == 0 && (i == 0 || !is_word(out[i - 1]))) {
            renamed += "message['";
            i += 2;
        } else {
            renamed += out[i];
        }
    }
    return renamed;
}

// The program after normalized(), with queries.
struct Program {
    std::string text;

    bool has(std::string_view part) const { return text.find(part) != std::string::npos; }
    bool has_all(std::initializer_list<std::string_view> parts) const {
        return std::ranges::all_of(parts, [&](std::string_view part) { return has(part); });
    }

    // Whether there is such a name, or a text of that word.
    bool mentions(std::string_view word) const {
        for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) {
            const size_t end = at + word.size();
            // Without blanks between words, "in tools" is "intools".
            const bool begins = at == 0 || !is_word(text[at - 1]) ||
                                text.compare(at - std::min<size_t>(at, 2), 2, "in") == 0 ||
                                text.compare(at - std::min<size_t>(at, 2), 2, "if") == 0;
            if (begins && (end == text.size() || !is_word(text[end]))) return true;
        }
        return false;
    }

    // What follows the condition of the last `if add_generation_prompt`; empty if there is none.
    std::string_view opening() const {
        const std::string_view all = text;
        const size_t at = all.rfind("add_generation_prompt");
        if (at == std::string_view::npos) return {};
        const size_t end = all.find("%}", at);
        return end == std::string_view::npos ? std::string_view() : all.substr(end + 2);
    }
    std::string_view opening_condition() const {
        const std::string_view all = text;
        const size_t at = all.rfind("add_generation_prompt");
        return at == std::string_view::npos ? std::string_view() : all.substr(at, all.find("%}", at) - at);
    }
    // The text between `before` and `after`, if it has neither quotes nor tags in it.
    std::optional<std::string> literal_between(std::string_view before, std::string_view after) const {
        const std::string_view all = text;
        for (size_t at = 0; (at = all.find(before, at)) != std::string_view::npos; at += before.size()) {
            const size_t begin = at + before.size();
            const size_t end = all.find(after, begin);
            if (end == std::string_view::npos) return std::nullopt;
            const std::string_view found = all.substr(begin, end - begin);
            if (!found.empty() && found.find_first_of("'{}") == std::string_view::npos) return std::string(found);
        }
        return std::nullopt;
    }
};

const ChatFormat& known(std::string_view name) {
    for (const NamedChatFormat& one : known_chat_formats())
        if (one.names.front() == name) return one.format;
    return known_chat_formats().front().format;  // not reached: the names here are those there
}

std::optional<ChatFormat> recognize_deepseek2(const Program& p) {
    if (!p.has("{{'User: '+message['content']+'\n\n'}}") || !p.has("{{'Assistant: '+message['content']+eos_token}}") ||
        !p.has("{{message['content']+'\n\n'}}") || !p.has("{{bos_token}}") ||
        !p.opening().starts_with("{{'Assistant:'}}{%endif%}"))
        return std::nullopt;
    return known("deepseek2");
}

std::optional<ChatFormat> recognize_deepseek_coder(const Program& p) {
    if (!p.has("{{'### Instruction:\n'+message['content']+'\n'}}") ||
        !p.has("{{'### Response:\n'+message['content']+'\n<|EOT|>\n'}}") || !p.has("{{bos_token}}") ||
        !p.opening().starts_with("{{'### Response:'}}\n{%endif%}"))
        return std::nullopt;
    ChatFormat f = known("deepseek-coder");
    f.default_system = p.literal_between("{%ifnotns.found%}{{'", "'}}");
    if (!f.default_system) return std::nullopt;
    return f;
}

#define TSR_USER "<\uff5cUser\uff5c>"
#define TSR_ASSISTANT "<\uff5cAssistant\uff5c>"
#define TSR_END "<\uff5cend\u2581of\u2581sentence\uff5c>"
#define TSR_CALLS "<\uff5ctool\u2581calls\u2581begin\uff5c>"
#define TSR_CALLS_END "<\uff5ctool\u2581calls\u2581end\uff5c>"
#define TSR_CALL "<\uff5ctool\u2581call\u2581begin\uff5c>"
#define TSR_CALL_END "<\uff5ctool\u2581call\u2581end\uff5c>"
#define TSR_SEP "<\uff5ctool\u2581sep\uff5c>"
#define TSR_RESULTS "<\uff5ctool\u2581outputs\u2581begin\uff5c>"
#define TSR_RESULTS_END "<\uff5ctool\u2581outputs\u2581end\uff5c>"
#define TSR_RESULT "<\uff5ctool\u2581output\u2581begin\uff5c>"
#define TSR_RESULT_END "<\uff5ctool\u2581output\u2581end\uff5c>"

// Whether the program leaves tools to whoever asks for them: it does not name them, and writes no calls, or those of
// the first programs of V3 and R1, which leave a single call open.
bool leaves_tools(const Program& p) {
    const std::string call = TSR_CALL "'+tool['type']+'" TSR_SEP
                                      "'+tool['function']['name']+'\n'+'```json'+'\n'+tool['function']['arguments']";
    const bool first = p.has_all({"{{'" TSR_ASSISTANT TSR_CALLS + call, "{{'\n'+'" + call,
                                  "{{'" TSR_RESULTS TSR_RESULT "'+message['content']+'" TSR_RESULT_END "'}}"});
    return !p.mentions("tools") && (first || !p.has("\u2581call"));
}

// Calls and results of V3-0324 and R1-0528. None for a program that describes tools or writes calls in another way.
ChatFormat::Tools recognize_deepseek3_tools(const Program& p, const ChatFormat::Tools& tools) {
    const std::string call =
        "'+tool['type']+'" TSR_SEP
        "'+tool['function']['name']+'\n'+'```json'+'\n'+tool['function']['arguments']+'\n'+'```'+'" TSR_CALL_END "'}}";
    const auto results = [&](const std::string& content) {
        const std::string rest = TSR_RESULT "'+" + content + "+'" TSR_RESULT_END "'}}";
        return p.has_all({"{{'" TSR_RESULTS + rest, "{{'\n" + rest});
    };
    const bool known_calls =
        (results("content") || results("message['content']")) &&
        p.has_all({"{{'" TSR_CALLS TSR_CALL + call, "+'" TSR_CALLS TSR_CALL + call, "{{'\n'+'" TSR_CALL + call,
                   "{%endfor%}{{'" TSR_CALLS_END TSR_END "'}}", "{%ifns.is_tool%}{{'" TSR_RESULTS_END "'}}{%endif%}",
                   "{%setns.is_output_first=true%}"}) &&
        p.opening_condition().find("notns.is_tool") != std::string_view::npos;
    if (known_calls && !p.mentions("tools")) return tools;
    return leaves_tools(p) ? known("deepseek-v3").tools : ChatFormat::Tools();
}

ChatFormat::Tools recognize_deepseek31_tools(const Program& p, const ChatFormat::Tools& known_tools) {
    ChatFormat::Tools tools = known_tools;
    tools.arguments_as_given = !p.has("['arguments']|tojson");
    const std::string call = std::string("+tool['function']['name']+'" TSR_SEP "'+tool['function']['arguments']") +
                             (tools.arguments_as_given ? "" : "|tojson") + "+'" TSR_CALL_END "'}}";
    if (!p.has_all({"{{'" TSR_CALLS TSR_CALL "'" + call, "{{message['content']+'" TSR_CALLS TSR_CALL "'" + call,
                    "{{'" TSR_CALL "'" + call, "{%endfor%}{{'" TSR_CALLS_END TSR_END "'}}",
                    "{{'" TSR_RESULT "'+message['content']+'" TSR_RESULT_END "'}}",
                    "{%ifns.is_tool%}{{message['content']+'" TSR_END "'}}"}))
        return {};
    // The published program leaves descriptions to whoever calls it, the model card says how; others have their own.
    if (p.mentions("tools")) {
        tools.describe = ChatFormat::Tools::Describe::kNot;
        tools.all = tools.each = {};
    }
    return tools;
}

std::optional<ChatFormat> recognize_deepseek32(const Program& p) {
    ChatFormat f = known("deepseek-v3.2");
    std::string header = f.tools.all.before;
    for (const auto& [text, variable] :
         std::initializer_list<std::pair<std::string_view, std::string_view>>{{"\uff5cDSML\uff5c", "'+dsml_token+'"},
                                                                              {"<think>", "'+thinking_start_token+'"},
                                                                              {"</think>", "'+thinking_end_token+'"}})
        replace(header, text, variable);
    const bool direct = p.has("{{thinking_start_token+thinking_end_token}}");
    const std::string answer = direct ? "thinking_start_token+thinking_end_token" : "thinking_end_token";
    if (!p.has_all(
            {"{%setdsml_token='\uff5cDSML\uff5c'%}",
             "{%setthinking_start_token='<think>'%}",
             "{%setthinking_end_token='</think>'%}",
             "'" + header + "'",
             "'</functions>\n'",
             "{%setns.system_prompt=ns.system_prompt+'\n\n'+(message['content']or'')%}",
             "ts.schemas+(tool['function']|tojson)+'\n'",
             "{{bos_token}}{{ns.system_prompt}}",
             "{{'" TSR_USER "'+(message['content']or'')}}",
             "{{'\n\n<'+dsml_token+'function_calls>\n'}}",
             "{{'<'+dsml_token+'invoke name=\"'+func['name']+'\">\n'}}",
             "{{'<'+dsml_token+'parameter name=\"'+key+'\" string=\"true\">'+val+'</'+dsml_token+'parameter>\n'}}",
             "{{'<'+dsml_token+'parameter name=\"'+key+'\" "
             "string=\"false\">'+(val|tojson)+'</'+dsml_token+'parameter>\n'}}",
             "{{'</'+dsml_token+'invoke>\n'}}",
             "{{'</'+dsml_token+'function_calls>'}}{%endif%}{{'" TSR_END "'}}",
             "{{'\n\n<function_results>'}}",
             "{{'\n<result>'+(message['content']or'')+'</result>'}}",
             "{{'\n</function_results>'}}",
             "{%ifis_after_last_userandthinking%}{{thinking_start_token}}",
             "{%ifis_after_last_userandthinking%}{{'\n\n'+thinking_start_token}}"}) ||
        !p.opening().starts_with("{%ifstate.pending_asst_marker%}{{'" TSR_ASSISTANT
                                 "'}}{%ifthinking%}{{thinking_start_token}}{%else%}{{" +
                                 answer +
                                 "}}{%endif%}{%elifstate.pending_tool_marker%}{%ifthinking%}{{'\n\n'+thinking_start_"
                                 "token}}{%else%}{{'\n\n'+" +
                                 answer + "}}{%endif%}{%endif%}{%endif%}"))
        return std::nullopt;
    if (direct) f.generation_direct = "<think></think>";
    return f;
}

std::optional<ChatFormat> recognize_deepseek3(const Program& p) {
    using Thoughts = ChatFormat::Thoughts;
    if (!p.has(TSR_USER) || !p.has(TSR_ASSISTANT) || !p.has("{{bos_token}}")) return std::nullopt;
    const bool marker_after_user = p.has("{{'" TSR_USER "'+message['content']+'" TSR_ASSISTANT "'}}") ||
                                   (p.has("{%formessageinmessages%}{%setcontent=message['content']%}") &&
                                    p.has("{{'" TSR_USER "'+content+'" TSR_ASSISTANT "'}}"));
    if (!marker_after_user && !p.has("{{'" TSR_USER "'+message['content']}}")) return std::nullopt;

    ChatFormat f = known(marker_after_user ? "deepseek-v3-0324" : "deepseek3");
    if (p.has("ns.system_prompt")) {
        if (!p.has("{{bos_token}}{{ns.system_prompt}}")) return std::nullopt;
        if (p.has("{%setns.system_prompt=ns.system_prompt+'\n\n'+message['content']%}")) {
            f.system_place = ChatFormat::System::kJoined;
        } else if (p.has("{%setns.system_prompt=message['content']%}") && !p.has("ns.system_prompt+")) {
            f.system_place = ChatFormat::System::kLast;
        } else {
            return std::nullopt;
        }
    } else if (p.has("=='system'%}{{message['content']}}")) {
        f.system_place = ChatFormat::System::kInPlace;
    } else {
        return std::nullopt;
    }

    if (p.has(".split('</think>')[-1]")) {
        f.thoughts = Thoughts::kDropToLastEnd;
    } else if (p.has(".split('</think>',1)[1]")) {
        f.thoughts = Thoughts::kDropToFirstEnd;
    } else if (p.has("'</think>'in")) {
        return std::nullopt;
    } else {
        f.thoughts = Thoughts::kKeep;
    }

    const std::string_view opening = p.opening();
    const std::string_view condition = p.opening_condition();
    if (marker_after_user) {
        if (!p.has("{{content+'" TSR_END "'}}") || !opening.starts_with("{{'" TSR_ASSISTANT "'}}{%endif%}") ||
            condition.find("notns.is_last_user") == std::string_view::npos)
            return std::nullopt;
        f.tools = recognize_deepseek3_tools(p, f.tools);
        return f;
    }
    for (const char* direct : {"</think>", "<think></think>"}) {
        const std::string switched = std::string("{{'" TSR_ASSISTANT "'}}{%ifnotthinking%}{{'") + direct +
                                     "'}}{%else%}{{'<think>'}}{%endif%}{%endif%}";
        // V3.1-Terminus and V3.2-Exp also open an answer that does not follow a question.
        const bool always =
            opening.starts_with("{%ifns.is_last_userorns.is_only_sysornotns.is_prefix%}" + switched + "{%endif%}");
        if (!always && !opening.starts_with(switched)) continue;
        if (condition.find(always ? "andnotns.is_tool" : "andns.is_last_user") == std::string_view::npos ||
            !p.has(std::string("{%else%}{{'") + direct + "'}}{%endif%}{%endif%}") ||
            !p.has("{{content+'" TSR_END "'}}"))
            return std::nullopt;
        const ChatFormat::System place = f.system_place;
        f = known(always ? "deepseek-v3.1-terminus" : "deepseek-v3.1");
        f.system_place = place;
        f.assistant.before = std::string(TSR_ASSISTANT) + direct;
        f.generation_direct = direct;
        f.tools = recognize_deepseek31_tools(p, f.tools);
        if (!p.has(std::string("{{'" TSR_ASSISTANT) + direct + "'}}")) f.tools = {};
        return f;
    }
    if (!p.has("{{'" TSR_ASSISTANT "'+content+'" TSR_END "'}}") &&
        !p.has("{{'" TSR_ASSISTANT "'+message['content']+'" TSR_END "'}}"))
        return std::nullopt;
    if (opening.starts_with("{{'" TSR_ASSISTANT "'}}{%endif%}")) {
        f.generation = TSR_ASSISTANT;
    } else if (opening.starts_with("{{'" TSR_ASSISTANT "<think>\n'}}{%endif%}")) {
        f.generation = TSR_ASSISTANT "<think>\n";
    } else {
        return std::nullopt;
    }
    const bool v3_or_r1 = f.thoughts != Thoughts::kKeep || f.system_place == ChatFormat::System::kJoined;
    if (v3_or_r1 && leaves_tools(p)) {
        f.tools = known("deepseek-v3").tools;
        f.assistant_before = known("deepseek-v3").assistant_before;
    }
    return f;
}

// How Qwen 2.5 and 3 write them, whatever else a program of either does.
ChatFormat::Tools recognize_qwen_tools(const Program& p, bool default_system) {
    ChatFormat::Tools tools = known("qwen3").tools;
    const std::string beginning = default_system
                                      ? "{{messages[0]['content']}}{%else%}{{'"
                                      : "{%ifmessages[0].role=='system'%}{{messages[0].content+'\n\n'}}{%endif%}{{'";
    const std::string descriptions = tools.all.before + "'}}{%fortoolintools%}{{'\n'}}{{tool|tojson}}{%endfor%}{{'" +
                                     tools.all.after + "<|im_end|>\n'}}";
    const std::string call = "<tool_call>\n{\"name\": \"'}}{{tool_call.name}}{{'\", \"arguments\": '}}";
    const std::string end = "{{'}\n</tool_call>'}}";
    const std::string as_json = "{{tool_call.arguments|tojson}}";
    tools.arguments_as_given =
        p.has(call + "{%iftool_call.argumentsisstring%}{{tool_call.arguments}}{%else%}" + as_json + "{%endif%}" + end);
    if (!p.has(beginning) || !p.has((default_system ? "{%endif%}{{'\n\n" : "{%endif%}{{'") + descriptions) ||
        !(tools.arguments_as_given || p.has(call + as_json + end)) ||
        !p.has_all(
            {"{{'<|im_start|>user'}}{%endif%}{{'\n<tool_response>\n'}}", "{{'\n</tool_response>'}}{%ifloop.lastor"}))
        return {};
    // A line break before each call, but for the first without content; the name of the role ends with another one.
    const bool before_each =
        p.has("{{'<|im_start|>'+message['role']}}{%ifmessage['content']%}{{'\n'+message['content']}}{%endif%}") &&
        p.has("{{'\n<tool_call>\n{");
    const bool between = p.has("{%if(loop.firstandcontent)or(notloop.first)%}{{'\n'}}{%endif%}") &&
                         p.has("{{'<|im_start|>'+message['role']+'\n'+content}}");
    return before_each || between ? tools : ChatFormat::Tools();
}

std::optional<ChatFormat> recognize_chatml(const Program& p) {
    const bool qwen3 = p.has("last_query_index");
    const std::string start = "{{'<|im_start|>'+message['role']+'\n'+";
    bool plain = false;
    for (const char* content : {"message['content']", "content"})
        for (const char* end : {"+'<|im_end|>'+'\n'}}", "+'<|im_end|>\n'}}"}) plain |= p.has(start + content + end);
    if (!plain) return std::nullopt;
    ChatFormat f = known(qwen3 ? "qwen3" : "chatml");
    if (qwen3) {
        if (!p.has("split('</think>')[-1].lstrip('\n')")) return std::nullopt;
    } else if (p.has("</think>")) {
        return std::nullopt;
    }
    if (p.has("bos_token")) {
        if (!p.text.starts_with("{{bos_token}}")) return std::nullopt;
        f.bos = true;
    }
    f.default_system = p.literal_between("'<|im_start|>system\n", "<|im_end|>\n'");
    f.tools = recognize_qwen_tools(p, f.default_system.has_value());
    const std::string_view opening = p.opening();
    const std::string_view plain_opening = "{{'<|im_start|>assistant\n'}}";
    const std::string_view thinking_opening = "{{'<|im_start|>assistant\n<think>\n'}}";
    if (opening.starts_with(plain_opening)) {
        const std::string_view rest = opening.substr(plain_opening.size());
        if (qwen3 &&
            rest.starts_with(
                "{%ifenable_thinkingisdefinedandenable_thinkingisfalse%}{{'<think>\n\n</think>\n\n'}}{%endif%}"))
            return f;
        if (!rest.starts_with("{%endif%}")) return std::nullopt;
        f.can_think = false;
        f.generation_direct.clear();
        return f;
    }
    if (opening.starts_with(thinking_opening) && opening.substr(thinking_opening.size()).starts_with("{%endif%}")) {
        f.can_think = false;
        f.generation_direct.clear();
        f.generation += "<think>\n";
        return f;
    }
    return std::nullopt;
}

ChatFormat::Tools recognize_llama_tools(const Program& p, const ChatFormat::Tools& tools) {
    const bool all = p.has_all(
        {"{%settools_in_user_message=true%}", "{{'Environment: ipython\n'}}", "{%settools=none%}",
         "{{'Given the following functions, please respond with a JSON for a function call '}}{{'with its proper "
         "arguments that "
         "best answers the given prompt.\n\n'}}{{'Respond in the format {\"name\": function name, \"parameters\": "
         "dictionary of "
         "argument name and its value}.'}}{{'Do not use "
         "variables.\n\n'}}{%fortintools%}{{t|tojson(indent=4)}}{{'\n\n'}}"
         "{%endfor%}{{first_user_message+'<|eot_id|>'}}",
         "{{'{\"name\": \"'+tool_call.name+'\", '}}{{'\"parameters\": '}}{{tool_call.arguments|tojson}}{{'}'}}",
         "{{'<|start_header_id|>ipython<|end_header_id|>\n\n'}}",
         "{%ifmessage['content']ismappingormessage['content']isiterable%}{{message['content']|tojson}}"});
    return all ? tools : ChatFormat::Tools();
}

std::optional<ChatFormat> recognize_llama3(const Program& p) {
    const std::string message =
        "'<|start_header_id|>'+message['role']+'<|end_header_id|>\n\n'+message['content']|trim+'<|eot_id|>'";
    const std::string opening = "{{'<|start_header_id|>assistant<|end_header_id|>\n\n'}}";
    if (!p.has(message)) return std::nullopt;
    const bool asked = p.has("add_generation_prompt");
    if (asked ? !p.opening().starts_with(opening) : !p.text.ends_with(opening)) return std::nullopt;
    ChatFormat f = known("llama3");
    if (p.has("{{'Today Date: '+date_string+'\n\n'}}")) {
        const auto knowledge = p.literal_between("{{'Cutting Knowledge Date: ", "'}}");
        const auto today = p.literal_between("date_string='", "'");
        if (!knowledge || !today || !p.has("{{bos_token}}") || !p.has("{{system_message}}")) return std::nullopt;
        f = known("llama3.1");
        f.default_system = "Cutting Knowledge Date: " + *knowledge + "Today Date: " + *today + "\n\n";
        if (p.has("{%setdate_string=strftime_now('%d %b %Y')%}")) f.dated = *today;
        f.tools = recognize_llama_tools(p, f.tools);
    } else if (p.has("{%setcontent=bos_token+content%}")) {
        f.bos = true;
    } else if (p.has("bos_token")) {
        if (!p.text.starts_with("{{bos_token}}")) return std::nullopt;
    } else {
        f.bos = false;
    }
    f.generation_always = !asked;
    return f;
}

std::optional<ChatFormat> recognize_kimi(const Program& p) {
    if (!p.has("<|im_user|>") || !p.has("<|im_assistant|>assistant<|im_middle|>") || !p.has("<|im_middle|>") ||
        p.has("think>"))
        return std::nullopt;
    if (!p.opening().starts_with("<|im_assistant|>assistant<|im_middle|>{%endif%}")) return std::nullopt;
    ChatFormat f = known("kimi-k2");
    const auto block = p.literal_between("<|im_system|>system<|im_middle|>", "{%endif%}");
    const size_t end = block ? block->find(f.system.after) : std::string::npos;
    if (end == std::string::npos) return std::nullopt;
    f.default_system = block->substr(0, end);
    // One published program leaves a newline after this message.
    if (block->size() != end + f.system.after.size()) f.default_system_after = block->substr(end);
    if (p.has("{%setrole_name=message.get('name')ormessage['role']%}") &&
        p.has_all({"<|im_user|>{{role_name}}<|im_middle|>", "<|im_assistant|>{{role_name}}<|im_middle|>",
                   "<|im_system|>{{role_name}}<|im_middle|>"}))
        f.name_end = "<|im_middle|>";
    return f;
}

}  // namespace

void keep_known_tools(ChatFormat& format, std::string_view program) {
    const Program p{normalized(program)};
    const bool kept = format.tools.program == ChatFormat::Tools::Program::kAll     ? true
                      : format.tools.program == ChatFormat::Tools::Program::kCalls ? !p.mentions("tools")
                                                                                   : leaves_tools(p);
    if (!kept) format.tools = {};
}

std::optional<ChatFormat> recognize_chat_format(std::string_view program) {
    const Program p{normalized(program)};
    std::optional<ChatFormat> found;
    if (p.has("<|im_middle|>")) {
        found = recognize_kimi(p);
    } else if (p.has("<|im_start|>")) {
        found = recognize_chatml(p);
    } else if (p.has("<|start_header_id|>")) {
        found = recognize_llama3(p);
    } else if (p.has(TSR_USER)) {
        found = p.has("dsml_token") ? recognize_deepseek32(p) : recognize_deepseek3(p);
    } else if (p.has("### Instruction:")) {
        found = recognize_deepseek_coder(p);
    } else if (p.has("'User: '")) {
        found = recognize_deepseek2(p);
    }
    if (!found) return found;
    // The name of the known form that it equals, if need be but for tools; else it keeps the name of the one that it
    // varies.
    for (const bool with_tools : {true, false}) {
        for (const NamedChatFormat& one : known_chat_formats()) {
            ChatFormat renamed = *found;
            renamed.name = one.format.name;
            if (!with_tools) renamed.tools = one.format.tools;
            if (renamed != one.format) continue;
            found->name = one.format.name;
            return found;
        }
    }
    return found;
}

}  // namespace tessera::text
