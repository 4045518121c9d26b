#include "core/text/chat_history.hpp"

#include "core/text/json_text.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace tessera::text {
namespace {

bool is_answer(const ChatMessage& message) noexcept {
    return message.role == "assistant";
}

bool has_calls(const ChatMessage& message) noexcept {
    return is_answer(message) && !message.tool_calls.empty();
}

// Calls f(call) for each call, in order.
template <typename F>
void each_call(std::vector<ChatMessage>& messages, F&& f) {
    for (ChatMessage& message : messages)
        for (ToolCall& call : message.tool_calls) f(call);
}

// Gives calls without an id one of their place, and results without one that of the first call before them which has no
// result. True: some had none.
bool fill_ids(std::vector<ChatMessage>& messages) {
    bool filled = false;
    size_t number = 0;
    // Calls of the last message that has any, their places by id, and whether each has a result.
    std::vector<std::string> calls;
    std::multimap<std::string, size_t> places;
    std::vector<bool> answered;
    size_t first = 0;  // without a result
    for (ChatMessage& message : messages) {
        if (has_calls(message)) {
            calls.clear();
            places.clear();
            first = 0;
            for (ToolCall& call : message.tool_calls) {
                if (call.id.empty()) {
                    call.id = fmt::format("call_{}", number);
                    filled = true;
                }
                ++number;
                places.emplace(call.id, calls.size());
                calls.push_back(call.id);
            }
            answered.assign(calls.size(), false);
        }
        if (message.role != "tool") continue;
        while (first < calls.size() && answered[first]) ++first;
        if (message.tool_call_id.empty()) {
            if (first == calls.size()) continue;
            message.tool_call_id = calls[first];
            filled = true;
        }
        const auto place = places.find(message.tool_call_id);
        if (place == places.end()) continue;
        answered[place->second] = true;
        places.erase(place);
    }
    return filled;
}

// Replaces each id of a call, and of the results after it, by `id_of(call, index)`, and that of a result whose call is
// not in the conversation by `id_of_unknown(id)`. True: one changed.
template <typename IdOf, typename IdOfUnknown>
bool replace_ids(ChatHistory& history, IdOf&& id_of, IdOfUnknown&& id_of_unknown) {
    bool changed = fill_ids(history.messages);
    std::map<std::string, std::string> replaced;
    size_t index = 0;
    for (ChatMessage& message : history.messages) {
        for (ToolCall& call : message.tool_calls) {
            std::string id = id_of(call, index++);
            changed |= id != call.id;
            replaced[call.id] = id;
            call.id = std::move(id);
        }
        if (message.tool_call_id.empty()) continue;
        const auto found = replaced.find(message.tool_call_id);
        std::string id = found != replaced.end() ? found->second : id_of_unknown(message.tool_call_id);
        changed |= id != message.tool_call_id;
        message.tool_call_id = std::move(id);
    }
    return changed;
}

constexpr size_t kShortId = 9;

bool is_short_id(std::string_view id) noexcept {
    return id.size() == kShortId && std::ranges::all_of(id, [](char c) {
               return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
           });
}

// Of the text and the number of ids that were taken already (FNV-1a, 64 bits).
std::string short_id(std::string_view text, uint64_t attempt) {
    uint64_t hash = 14695981039346656037u + attempt;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    std::string id;
    for (size_t i = 0; i < kShortId; ++i) {
        id += "0123456789abcdefghijklmnopqrstuvwxyz"[hash % 36];
        hash /= 36;
    }
    return id;
}

bool is_object(std::string_view json) {
    const auto value = parse_python_json(json);
    return value && value->kind == PythonJson::Kind::kObject;
}

PythonJson* find_member(PythonJson& object, std::string_view key) {
    const auto found = std::ranges::find(object.members, key, &PythonMember::key);
    return found == object.members.end() ? nullptr : &found->value;
}

bool is_null(const PythonJson* value) {
    return !value || (value->kind == PythonJson::Kind::kPlain && value->text == "null");
}

// Sets a member that is missing or null.
bool set_missing(PythonJson& object, std::string_view key, PythonJson value) {
    PythonJson* const found = find_member(object, key);
    if (!is_null(found)) return false;
    if (found) {
        *found = std::move(value);
    } else {
        object.members.push_back({std::string(key), std::move(value)});
    }
    return true;
}

PythonJson empty_object() {
    return {PythonJson::Kind::kObject, {}, {}};
}

// The type of a property that does not say one: that of its first alternative, or what its members tell, else a string,
// since templates know no word for any type.
std::string property_type(const PythonJson& property) {
    for (const char* const key : {"anyOf", "oneOf", "allOf"}) {
        const PythonJson* const list = property.find(key);
        if (!list || list->kind != PythonJson::Kind::kList || list->members.empty()) continue;
        const PythonJson* const type = list->members.front().value.find("type");
        if (type && type->kind == PythonJson::Kind::kText) return type->text;
    }
    return property.find("properties") ? "object" : property.find("items") ? "array" : "string";
}

bool complete_function(PythonJson& function) {
    bool changed = set_missing(function, "description", PythonJson::of_text(""));
    changed |= set_missing(function, "parameters", empty_object());
    PythonJson& parameters = *find_member(function, "parameters");
    if (parameters.kind != PythonJson::Kind::kObject) return changed;
    changed |= set_missing(parameters, "type", PythonJson::of_text("object"));
    changed |= set_missing(parameters, "properties", empty_object());
    return changed;
}

bool complete_properties_of(PythonJson& function) {
    bool changed = false;
    PythonJson* const parameters = find_member(function, "parameters");
    PythonJson* const properties = parameters ? find_member(*parameters, "properties") : nullptr;
    if (!properties) return false;
    for (auto& [name, property] : properties->members) {
        if (property.kind != PythonJson::Kind::kObject) continue;
        changed |= set_missing(property, "type", PythonJson::of_text(property_type(property)));
        changed |= set_missing(property, "description", PythonJson::of_text(""));
    }
    return changed;
}

// `complete` adds to the function's object, and returns whether it did.
bool complete_tool(ChatTool& tool, bool (*complete)(PythonJson& function)) {
    std::optional<PythonJson> whole;
    if (!tool.whole.empty()) {
        whole = parse_python_json(tool.whole);
    } else {
        PythonJson function = empty_object();
        function.members.push_back({"name", PythonJson::of_text(tool.name)});
        if (!tool.description.empty())
            function.members.push_back({"description", PythonJson::of_text(tool.description)});
        if (auto parameters = parse_python_json(tool.parameters))
            function.members.push_back({"parameters", std::move(*parameters)});
        whole = empty_object();
        whole->members.push_back({"type", PythonJson::of_text("function")});
        whole->members.push_back({"function", std::move(function)});
    }
    if (!whole || whole->kind != PythonJson::Kind::kObject) return false;
    PythonJson* const function = find_member(*whole, "function");
    if (!function || function->kind != PythonJson::Kind::kObject) return false;
    const bool changed = complete(*function);
    if (changed) tool.whole = whole->dumps();
    return changed;
}

void join(std::string& text, std::string_view paragraph) {
    if (!text.empty() && !paragraph.empty()) text += "\n\n";
    text += paragraph;
}

}  // namespace

bool shorten_call_ids(ChatHistory& history) {
    std::set<std::string> used;
    for (const ChatMessage& message : history.messages) {
        if (is_short_id(message.tool_call_id)) used.insert(message.tool_call_id);
        for (const ToolCall& call : message.tool_calls)
            if (is_short_id(call.id)) used.insert(call.id);
    }
    std::map<std::string, std::string> known;
    const auto shortened = [&](const std::string& given) {
        if (is_short_id(given)) return given;
        std::string& id = known[given];
        for (uint64_t attempt = 0; id.empty(); ++attempt) {
            std::string tried = short_id(given, attempt);
            if (used.insert(tried).second) id = std::move(tried);
        }
        return id;
    };
    return replace_ids(
        history, [&](const ToolCall& call, size_t) { return shortened(call.id); }, shortened);
}

bool use_kimi_call_ids(ChatHistory& history) {
    const auto head_of = [](const ToolCall& call) { return "functions." + call.name + ":"; };
    const auto is_numbered = [&](const ToolCall& call) {
        const std::string head = head_of(call);
        return call.id.size() > head.size() && call.id.starts_with(head) &&
               std::all_of(call.id.begin() + static_cast<std::ptrdiff_t>(head.size()), call.id.end(),
                           [](char c) { return c >= '0' && c <= '9'; });
    };
    std::set<std::string> used;
    each_call(history.messages, [&](const ToolCall& call) {
        if (is_numbered(call)) used.insert(call.id);
    });
    size_t more = 0;  // numbers that given ids have taken
    return replace_ids(
        history,
        [&](const ToolCall& call, size_t index) {
            if (is_numbered(call)) return call.id;
            std::string id = head_of(call) + std::to_string(index + more);
            while (!used.insert(id).second) id = head_of(call) + std::to_string(index + ++more);
            return id;
        },
        [](const std::string& id) { return id; });
}

bool split_calls(ChatHistory& history) {
    const auto has_several = [](const ChatMessage& message) { return message.tool_calls.size() > 1; };
    if (std::ranges::none_of(history.messages, has_several)) return false;
    fill_ids(history.messages);
    std::vector<ChatMessage> split;
    for (size_t i = 0; i < history.messages.size();) {
        ChatMessage& message = history.messages[i++];
        if (!has_several(message)) {
            split.push_back(std::move(message));
            continue;
        }
        std::vector<ChatMessage> results;
        for (; i < history.messages.size() && history.messages[i].role == "tool"; ++i)
            results.push_back(std::move(history.messages[i]));
        std::multimap<std::string, size_t> by_id;  // of results that have not been written
        for (size_t r = 0; r < results.size(); ++r) by_id.emplace(results[r].tool_call_id, r);
        const std::vector<ToolCall> calls = std::exchange(message.tool_calls, {});
        for (size_t call = 0; call < calls.size(); ++call) {
            // Only the first has the content and the reasoning before the calls.
            ChatMessage one = call == 0 ? message : ChatMessage{"assistant", ""};
            one.tool_calls = {calls[call]};
            split.push_back(std::move(one));
            const auto result = by_id.find(calls[call].id);
            if (result == by_id.end()) continue;
            split.push_back(std::move(results[result->second]));
            by_id.erase(result);
        }
        std::vector<size_t> others;  // of no call
        for (const auto& [id, r] : by_id) others.push_back(r);
        std::ranges::sort(others);
        for (const size_t r : others) split.push_back(std::move(results[r]));
    }
    history.messages = std::move(split);
    return true;
}

bool wrap_arguments(ChatHistory& history) {
    bool changed = false;
    each_call(history.messages, [&](ToolCall& call) {
        if (call.arguments.empty() || is_object(call.arguments)) return;
        PythonJson wrapped = empty_object();
        wrapped.members.push_back({"arguments", PythonJson::of_text(call.arguments)});
        call.arguments = wrapped.dumps();
        changed = true;
    });
    return changed;
}

bool complete_tools(ChatHistory& history) {
    bool changed = false;
    for (ChatTool& tool : history.tools) changed |= complete_tool(tool, complete_function);
    return changed;
}

bool complete_properties(ChatHistory& history) {
    bool changed = false;
    for (ChatTool& tool : history.tools) changed |= complete_tool(tool, complete_properties_of);
    return changed;
}

bool move_content_to_reasoning(ChatHistory& history) {
    bool changed = false;
    for (ChatMessage& message : history.messages) {
        if (!has_calls(message) || message.content.empty() || message.reasoning.empty()) continue;
        join(message.reasoning, std::exchange(message.content, {}));
        changed = true;
    }
    return changed;
}

bool move_reasoning_to_content(ChatHistory& history) {
    bool changed = false;
    for (ChatMessage& message : history.messages) {
        if (!has_calls(message) || message.reasoning.empty()) continue;
        join(message.reasoning, message.content);
        message.content = std::exchange(message.reasoning, {});
        changed = true;
    }
    return changed;
}

bool leave_calls_only(ChatHistory& history) {
    bool changed = false;
    for (ChatMessage& message : history.messages) {
        if (!has_calls(message) || (message.content.empty() && message.reasoning.empty())) continue;
        message.content.clear();
        message.reasoning.clear();
        changed = true;
    }
    return changed;
}

bool drop_empty_answers(ChatHistory& history) {
    const auto is_empty = [](const ChatMessage& message) {
        return is_answer(message) && message.content.empty() && message.reasoning.empty() && message.tool_calls.empty();
    };
    const auto count = std::ranges::count_if(history.messages, is_empty);
    if (count == 0 || static_cast<size_t>(count) == history.messages.size()) return false;
    std::erase_if(history.messages, is_empty);
    return true;
}

std::span<const Rewriting> rewritings() noexcept {
    static constexpr std::array<Rewriting, 9> all = {shorten_call_ids,
                                                     split_calls,
                                                     wrap_arguments,
                                                     complete_tools,
                                                     complete_properties,
                                                     drop_empty_answers,
                                                     move_content_to_reasoning,
                                                     move_reasoning_to_content,
                                                     leave_calls_only};
    return all;
}

}  // namespace tessera::text
