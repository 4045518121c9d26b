// Every field of a request is read, on the list of harmless ones, or refused by name; the documentation says which.
#include "apps/server/api_error.hpp"
#include "apps/server/chat_fields.hpp"
#include "apps/server/chat_messages.hpp"
#include "apps/server/dialects/anthropic/dialect.hpp"
#include "apps/server/dialects/anthropic/messages_request.hpp"
#include "apps/server/dialects/llama/dialect.hpp"
#include "apps/server/dialects/llama/embedding.hpp"
#include "apps/server/dialects/llama/requests.hpp"
#include "apps/server/dialects/llama/text_api.hpp"
#include "apps/server/dialects/ollama/dialect.hpp"
#include "apps/server/dialects/ollama/embed.hpp"
#include "apps/server/dialects/ollama/requests.hpp"
#include "apps/server/dialects/openai/dialect.hpp"
#include "apps/server/dialects/openai/embeddings.hpp"
#include "apps/server/dialects/openai/requests.hpp"
#include "apps/server/dialects/responses/dialect.hpp"
#include "apps/server/dialects/responses/request.hpp"
#include "apps/server/generation_fields.hpp"
#include "apps/server/query.hpp"
#include "apps/server/response_notes.hpp"
#include "apps/server/saved_slot.hpp"
#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "tests/server/received.hpp"
#include "tests/server/small_model.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace tessera::server {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

const ModelText& model() {
    static const ModelText text = [] {
        ModelText made = small_model();
        made.infill = {.prefix = 1, .suffix = 2, .middle = 3};
        return made;
    }();
    return text;
}

ByteBudget memory(1 << 20);

// An object of a request: its table, the least that an endpoint accepts, and where the object lies in that.
struct Place {
    const FieldTable* table;
    void (*read)(std::string_view body);
    std::string body;
    std::vector<std::string> path;  // keys, and indices as numbers
};

void chat(std::string_view body) {
    read_chat(body, model());
}
void completion(std::string_view body) {
    read_completion(body, model());
}
void plain(std::string_view body) {
    read_plain_completion(body, model());
}

void infill(std::string_view body) {
    read_infill(body, model());
}

void ollama_chat(std::string_view body) {
    ollama::read_chat(body, model());
}

void ollama_show(std::string_view body) {
    const json::object object = parse_object(body);
    Fields(object, ollama::show_table()).check_read();
}

void messages_chat(std::string_view body) {
    anthropic::read_messages(body, model());
}

void response(std::string_view body) {
    responses::read_response(body, model());
}

std::vector<Place> places() {
    const std::string blocks = R"({"max_tokens":1,"system":[{"type":"text","text":"s"}],"messages":[
        {"role":"user","content":[{"type":"text","text":"a"}]},
        {"role":"assistant","content":[{"type":"thinking","thinking":"b","signature":""},
                                       {"type":"redacted_thinking","data":""},{"type":"tool_use","id":"i","name":"f","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"i","content":"c"}]}],
        "tools":[{"name":"f","input_schema":{}}],"tool_choice":{"type":"auto"},"thinking":{"type":"disabled"},"output_config":{}})";
    const std::string changes = R"({"max_tokens":1,"messages":[{"role":"user","content":"a"},
        {"role":"assistant","content":[{"type":"tool_use","id":"i","name":"f","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"i","content":[{"type":"tool_reference","tool_name":"g"},{"type":"image"}]}]},
        {"role":"system","content":[{"type":"tool_removal","tool":{"type":"tool_reference","name":"g"}}]}],
        "tools":[{"name":"f","input_schema":{}},{"name":"g","input_schema":{},"defer_loading":true}]})";
    const std::string documents = R"({"max_tokens":1,"messages":[{"role":"user","content":[
        {"type":"document","source":{"type":"text","data":"a"},"citations":{}},
        {"type":"search_result","title":"a","source":"b","content":[{"type":"text","text":"c"}]}]}]})";
    const std::string ollama_calls = R"({"options":{},"messages":[{"role":"user","content":"a"},
        {"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{}}}]},{"role":"tool","content":"b"}]})";
    const std::string formatted = R"({"max_tokens":1,"messages":[{"role":"user","content":"a"}],
        "output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}})";
    const std::string items = R"({"input":[{"role":"user","content":[{"type":"input_text","text":"a"}]},
        {"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"b"}]},
        {"type":"function_call","call_id":"i","name":"f","arguments":"{}"},
        {"type":"function_call_output","call_id":"i","output":"c"}],
        "reasoning":{"effort":"none"},"text":{"format":{"type":"text"}},"tool_choice":"none",
        "tools":[{"type":"function","name":"f","parameters":{}}]})";
    const std::string held = R"({"input":"a","text":{"format":{"type":"json_schema","schema":{"type":"object"}}}})";
    const std::string one_of = R"({"input":"a","tools":[{"type":"function","name":"f"}],
        "tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"f"}]}})";
    const std::string grouped =
        R"({"input":"a","tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"}]}]})";
    const std::string custom = R"({"input":[{"type":"custom_tool_call","call_id":"i","name":"f","input":"a"},
        {"type":"custom_tool_call_output","call_id":"i","output":[{"type":"input_image"}]}],
        "tools":[{"type":"custom","name":"f","format":{"type":"grammar","syntax":"lark","definition":"start: \"a\""}}]})";
    const std::string gap = R"({"input_prefix":"a","input_suffix":"b","input_extra":[{"text":"c"}]})";
    const std::string question = R"({"role":"user","content":"hi"})";
    const std::string calls =
        R"({"messages":[)" + question +
        R"(,{"role":"assistant","tool_calls":[{"function":{"name":"f"}}]},{"role":"tool","content":"r"}]})";
    const std::string tools =
        R"({"messages":[)" + question + R"(],"tool_choice":"none","tools":[{"function":{"name":"f"}}]})";
    const std::string custom_calls =
        R"({"messages":[)" + question +
        R"(,{"role":"assistant","tool_calls":[{"type":"custom","custom":{"name":"f","input":"a"}}]},{"role":"tool","content":"r"}],
        "tool_choice":"none","tools":[{"type":"custom","custom":{"name":"f",
        "format":{"type":"grammar","grammar":{"syntax":"lark","definition":"start: \"a\""}}}}]})";
    const std::string messages = R"({"messages":[)" + question + "]}";
    const std::string named =
        R"({"messages":[)" + question +
        R"(],"tool_choice":{"type":"function","function":{"name":"f"}},"tools":[{"function":{"name":"f"}}]})";
    const std::string allowed =
        R"({"messages":[)" + question +
        R"(],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"f"}}]}},"tools":[{"function":{"name":"f"}}]})";
    return {
        {&chat_table(), chat, messages, {}},
        {&completion_table(), completion, R"({"prompt":"a"})", {}},
        {&plain_completion_table(), plain, R"({"prompt":"a"})", {}},
        {&prompt_object_table(), plain, R"({"prompt":{"prompt_string":"a"}})", {"prompt"}},
        {&infill_table(), infill, gap, {}},
        {&input_extra_table(), infill, gap, {"input_extra", "0"}},
        {&embeddings_table(), [](std::string_view body) { read_embeddings(body, model()); }, R"({"input":"a"})", {}},
        {&embedding_table(), [](std::string_view body) { read_embedding(body, model()); }, R"({"content":"a"})", {}},
        {&ollama::embed_table(),
         [](std::string_view body) { ollama::read_embed(body, model()); },
         R"({"input":["a","b"]})",
         {}},
        {&ollama::embeddings_table(),
         [](std::string_view body) { ollama::read_embeddings(body, model()); },
         R"({"prompt":"a"})",
         {}},
        {&template_table(),
         [](std::string_view body) { apply_template_response(body, model(), memory); },
         messages,
         {}},
        {&tokenize_table(),
         [](std::string_view body) { tokenize_response(body, model(), memory); },
         R"({"content":"a"})",
         {}},
        {&control_table(),
         [](std::string_view body) { read_control(body); },
         R"({"id":"a","action":"reasoning_end"})",
         {}},
        {&detokenize_table(),
         [](std::string_view body) { detokenize_response(body, model(), memory); },
         R"({"tokens":[5]})",
         {}},
        {&saved_slot_table(), [](std::string_view body) { read_slot_file(body); }, R"({"filename":"a"})", {}},
        {&stream_options_table(),
         completion,
         R"({"prompt":"a","stream":true,"stream_options":{}})",
         {"stream_options"}},
        {&cache_options_table(), completion, R"({"prompt":"a","prompt_cache_options":{}})", {"prompt_cache_options"}},
        {&response_format_table(),
         completion,
         R"({"prompt":"a","response_format":{"type":"text"}})",
         {"response_format"}},
        {&json_schema_table(),
         completion,
         R"({"prompt":"a","response_format":{"type":"json_schema","json_schema":{"schema":{"type":"null"}}}})",
         {"response_format", "json_schema"}},
        {&structured_outputs_table(), completion, R"({"prompt":"a","structured_outputs":{}})", {"structured_outputs"}},
        {&named_tool_table(), chat, named, {"tool_choice"}},
        {&named_function_table(), chat, named, {"tool_choice", "function"}},
        {&allowed_choice_table(), chat, allowed, {"tool_choice"}},
        {&allowed_tools_table(), chat, allowed, {"tool_choice", "allowed_tools"}},
        {&message_table(), chat, messages, {"messages", "0"}},
        {&part_table(),
         chat,
         R"({"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}]})",
         {"messages", "0", "content", "0"}},
        {&call_table(), chat, calls, {"messages", "1", "tool_calls", "0"}},
        {&called_function_table(), chat, calls, {"messages", "1", "tool_calls", "0", "function"}},
        {&custom_call_table(), chat, custom_calls, {"messages", "1", "tool_calls", "0"}},
        {&called_custom_table(), chat, custom_calls, {"messages", "1", "tool_calls", "0", "custom"}},
        {&tool_table(), chat, tools, {"tools", "0"}},
        {&tool_function_table(), chat, tools, {"tools", "0", "function"}},
        {&custom_tool_table(), chat, custom_calls, {"tools", "0"}},
        {&tool_custom_table(), chat, custom_calls, {"tools", "0", "custom"}},
        {&custom_format_table(), chat, custom_calls, {"tools", "0", "custom", "format"}},
        {&custom_grammar_table(), chat, custom_calls, {"tools", "0", "custom", "format", "grammar"}},
        {&ollama::chat_table(), ollama_chat, ollama_calls, {}},
        {&ollama::generate_table(),
         [](std::string_view body) { ollama::read_generate(body, model()); },
         R"({"prompt":"a"})",
         {}},
        {&ollama::show_table(), ollama_show, "{}", {}},
        {&ollama::options_table(), ollama_chat, ollama_calls, {"options"}},
        {&ollama::message_table(), ollama_chat, ollama_calls, {"messages", "0"}},
        {&ollama::call_table(), ollama_chat, ollama_calls, {"messages", "1", "tool_calls", "0"}},
        {&ollama::function_table(), ollama_chat, ollama_calls, {"messages", "1", "tool_calls", "0", "function"}},
        {&anthropic::messages_table(), messages_chat, blocks, {}},
        {&anthropic::count_table(),
         [](std::string_view body) { anthropic::count_tokens(body, model()); },
         messages,
         {}},
        {&anthropic::message_table(), messages_chat, blocks, {"messages", "0"}},
        {&anthropic::system_part_table(), messages_chat, blocks, {"system", "0"}},
        {&anthropic::text_table(), messages_chat, blocks, {"messages", "0", "content", "0"}},
        {&anthropic::thinking_table(), messages_chat, blocks, {"messages", "1", "content", "0"}},
        {&anthropic::redacted_thinking_table(), messages_chat, blocks, {"messages", "1", "content", "1"}},
        {&anthropic::tool_use_table(), messages_chat, blocks, {"messages", "1", "content", "2"}},
        {&anthropic::tool_result_table(), messages_chat, blocks, {"messages", "2", "content", "0"}},
        {&anthropic::tool_table(), messages_chat, blocks, {"tools", "0"}},
        {&anthropic::found_tool_table(), messages_chat, changes, {"messages", "2", "content", "0", "content", "0"}},
        {&anthropic::unread_table(), messages_chat, changes, {"messages", "2", "content", "0", "content", "1"}},
        {&anthropic::document_table(), messages_chat, documents, {"messages", "0", "content", "0"}},
        {&anthropic::document_source_table(), messages_chat, documents, {"messages", "0", "content", "0", "source"}},
        {&anthropic::search_result_table(), messages_chat, documents, {"messages", "0", "content", "1"}},
        {&anthropic::citations_table(), messages_chat, documents, {"messages", "0", "content", "0", "citations"}},
        {&anthropic::tool_change_table(), messages_chat, changes, {"messages", "3", "content", "0"}},
        {&anthropic::changed_tool_table(), messages_chat, changes, {"messages", "3", "content", "0", "tool"}},
        {&anthropic::tool_choice_table(), messages_chat, blocks, {"tool_choice"}},
        {&anthropic::thinking_option_table(), messages_chat, blocks, {"thinking"}},
        {&anthropic::output_config_table(), messages_chat, blocks, {"output_config"}},
        {&anthropic::format_table(), messages_chat, formatted, {"output_config", "format"}},
        {&responses::responses_table(), response, items, {}},
        {&responses::message_table(), response, items, {"input", "0"}},
        {&responses::part_table(), response, items, {"input", "0", "content", "0"}},
        {&responses::reasoning_item_table(), response, items, {"input", "1"}},
        {&responses::reasoning_part_table(), response, items, {"input", "1", "content", "0"}},
        {&responses::call_table(), response, items, {"input", "2"}},
        {&responses::call_output_table(), response, items, {"input", "3"}},
        {&responses::tool_table(), response, items, {"tools", "0"}},
        {&responses::namespace_table(), response, grouped, {"tools", "0"}},
        {&responses::custom_call_table(), response, custom, {"input", "0"}},
        {&responses::custom_call_output_table(), response, custom, {"input", "1"}},
        {&responses::custom_tool_table(), response, custom, {"tools", "0"}},
        {&responses::custom_format_table(), response, custom, {"tools", "0", "format"}},
        {&responses::unread_table(), response, custom, {"input", "1", "output", "0"}},
        {&responses::reasoning_table(), response, items, {"reasoning"}},
        {&responses::text_table(), response, items, {"text"}},
        {&responses::format_table(), response, held, {"text", "format"}},
        {&responses::allowed_tools_table(), response, one_of, {"tool_choice"}},
        {&responses::named_tool_table(), response, one_of, {"tool_choice", "tools", "0"}},
    };
}

std::string with(const Place& place, std::string_view field, const json::value& value) {
    json::value body = json::parse(place.body);
    json::value* at = &body;
    for (const std::string& step : place.path) {
        at = at->is_array() ? &at->as_array().at(static_cast<size_t>(std::stoi(step))) : &at->as_object().at(step);
    }
    at->as_object()[json::string_view(field.data(), field.size())] = value;
    return json::serialize(body);
}

std::string where(const Place& place, std::string_view field) {
    std::string path;
    for (const std::string& step : place.path) {
        const bool index = step.find_first_not_of("0123456789") == std::string::npos;
        path += index ? "[" + step + "]" : (path.empty() ? "" : ".") + step;
    }
    return path_of(path, field);
}

// The error of a request; nothing: it is accepted.
std::optional<ApiError> error_of(const Place& place, const std::string& body) {
    try {
        place.read(body);
        return std::nullopt;
    } catch (const ApiError& error) {
        // All of it was read where only llguidance is missing.
        if (error.code() == "not_installed") return std::nullopt;
        return error;
    } catch (const Error& error) {
        return ApiError(400, error.what());
    }
}

TEST(RequestFields, EveryTableIsUsed) {
    const std::vector<Place> all = places();
    EXPECT_EQ(all.size(), field_tables().size());
    for (const FieldTable* table : field_tables())
        EXPECT_TRUE(std::ranges::any_of(all, [&](const Place& place) { return place.table == table; }))
            << table->name();
}

// What is honoured in the table is read by code, and nothing else: else a std::logic_error comes. A name that the table
// lacks is never given.
TEST(RequestFields, TableAndCodeHonourTheSame) {
    for (const Place& place : places()) {
        SCOPED_TRACE(place.table->name());
        const auto error = error_of(place, place.body);
        EXPECT_FALSE(error) << error->what();
    }
    static constexpr FieldRow kRows[] = {{"read", Standing::kHonoured, ""}, {"known", Standing::kHarmless, ""}};
    const FieldTable table("test", {kRows});
    const json::object object = {{"read", 1}, {"known", 2}};
    const Fields fields(object, table);
    EXPECT_THROW(fields.check_read(), std::logic_error);
    EXPECT_THROW(fields.find("known"), std::logic_error);
    EXPECT_EQ(fields.find("other"), nullptr);
    fields.find("read");
    EXPECT_NO_THROW(fields.check_read());
}

TEST(RequestFields, UnknownOnesAreRefusedByName) {
    for (const Place& place : places()) {
        for (const char* name : {"no_such_field", "", "messages "}) {
            const auto error = error_of(place, with(place, name, 1));
            ASSERT_TRUE(error) << place.table->name();
            EXPECT_EQ(error->status(), 400u);
            EXPECT_EQ(error->parameter(), where(place, name));
            EXPECT_EQ(error->code(), "unknown_parameter");
        }
        const auto error = error_of(place, with(place, "no_such_field", nullptr));
        EXPECT_FALSE(error) << place.table->name() << ": " << error->what();
    }
    const Place chats = places().front();
    EXPECT_THAT(error_of(chats, with(chats, "temprature", 1))->what(), HasSubstr("'temperature'"));
}

TEST(RequestFields, RefusedOnesNameThemselvesUnlessTheyAskForNothing) {
    for (const Place& place : places()) {
        for (const FieldRow& row : place.table->rows()) {
            if (row.standing != Standing::kRefused) continue;
            SCOPED_TRACE(fmt::format("{} {}", place.table->name(), row.name));
            for (const json::value& value : {json::value(json::object{{"a", 1}}), json::value("on"), json::value(7)}) {
                const auto error = error_of(place, with(place, row.name, value));
                ASSERT_TRUE(error);
                EXPECT_EQ(error->status(), 400u);
                EXPECT_EQ(error->parameter(), where(place, row.name));
                EXPECT_EQ(error->code(), "not_supported");
            }
            const std::string_view neutral = row.neutral.empty() ? kOff : row.neutral;
            json::array values = neutral == kNotPositive
                                     ? json::array{0, -1, -0.5}
                                     : json::parse(json::string_view(neutral.data(), neutral.size())).as_array();
            values.push_back(nullptr);
            for (const json::value& value : values) EXPECT_FALSE(error_of(place, with(place, row.name, value)));
        }
    }
}

TEST(RequestFields, HarmlessOnesMaySayAnything) {
    const json::value all[] = {nullptr, true, 3, "a", json::array{1}, json::object{{"a", 1}}};
    for (const Place& place : places()) {
        for (const FieldRow& row : place.table->rows()) {
            if (row.standing != Standing::kHarmless) continue;
            for (const json::value& value : all)
                EXPECT_FALSE(error_of(place, with(place, row.name, value))) << place.table->name() << " " << row.name;
        }
    }
}

// Wishes without effect are accepted and named in the response's header; other values are errors.
TEST(RequestFields, HintsAreNamedInTheHeader) {
    size_t hints = 0;
    const auto list = [](std::string_view text) {
        return json::parse(json::string_view(text.data(), text.size())).as_array();
    };
    for (const Place& place : places()) {
        for (const FieldRow& row : place.table->rows()) {
            if (row.standing != Standing::kHint) continue;
            SCOPED_TRACE(fmt::format("{} {}", place.table->name(), row.name));
            ++hints;
            for (const json::value& value : {json::value(json::object{{"a", 1}}), json::value("on"), json::value(7)}) {
                const auto error = error_of(place, with(place, row.name, value));
                ASSERT_TRUE(error);
                EXPECT_EQ(error->status(), 400u);
                EXPECT_EQ(error->parameter(), where(place, row.name));
                EXPECT_THAT(error->what(), HasSubstr("expected "));
            }
            const auto noted = [&](const json::value& value) {
                Received exchange;
                const ResponseNotes notes(exchange);
                EXPECT_FALSE(error_of(place, with(place, row.name, value)));
                return exchange.headers;
            };
            for (const json::value& value : list(row.neutral.empty() ? kOff : row.neutral))
                EXPECT_EQ(noted(value), Headers());
            ASSERT_FALSE(list(row.wished).empty());
            for (const json::value& value : list(row.wished))
                EXPECT_EQ(noted(value), (Headers{{std::string(kNoEffectHeader), where(place, row.name)}}));
        }
    }
    EXPECT_GE(hints, 6u);
    // Without a reader of notes they are accepted as well.
    const Place chats = places().front();
    EXPECT_FALSE(error_of(chats, with(chats, "verbosity", "low")));
    EXPECT_THAT(error_of(chats, with(chats, "verbosity", "loud"))->what(),
                HasSubstr(R"(verbosity: expected "medium" or "low" or "high", found "loud")"));
}

TEST(ResponseHeaders, ValuesOfOneNameStandInOneLine) {
    Headers headers{{"Vary", "Origin"}};
    add_header_value(headers, "X-Tessera-No-Effect", "store");
    add_header_value(headers, "X-Tessera-No-Effect", "verbosity");
    add_header_value(headers, "X-Tessera-No-Effect", "store");
    add_header_value(headers, "X-Other", "a\r\nSet-Cookie: b,\xc3\xa9");
    EXPECT_EQ(
        headers,
        (Headers{{"Vary", "Origin"}, {"X-Tessera-No-Effect", "store, verbosity"}, {"X-Other", "a??Set-Cookie: b???"}}));
    for (int i = 0; i < 100; ++i) add_header_value(headers, "X-Many", std::to_string(i));
    EXPECT_THAT(headers.back().second, testing::EndsWith("31, ..."));
}

TEST(RequestFields, AllowedToolsOfModeAutoAreTheOnlyOnes) {
    const auto tools = [](std::string_view choice) {
        const std::string body = fmt::format(
            R"({{"messages":[{{"role":"user","content":"hi"}}],"tools":[{{"function":{{"name":"f"}}}},{{"function":{{"name":"g"}}}}],"tool_choice":{}}})",
            choice);
        const json::object object = parse_object(body);
        const Fields fields(object, template_table());
        std::vector<std::string> names;
        for (const text::ChatTool& tool : read_conversation(fields, model()).options.tools) names.push_back(tool.name);
        return names;
    };
    const auto allowed = [](std::string_view mode, std::string_view name) {
        return fmt::format(
            R"({{"type":"allowed_tools","allowed_tools":{{"mode":"{}","tools":[{{"type":"function","function":{{"name":"{}"}}}}]}}}})",
            mode, name);
    };
    EXPECT_EQ(tools(R"("auto")"), (std::vector<std::string>{"f", "g"}));
    EXPECT_EQ(tools(allowed("auto", "g")), std::vector<std::string>{"g"});
    EXPECT_THROW(tools(allowed("auto", "h")), ApiError);
    EXPECT_THROW(tools(allowed("never", "g")), ApiError);
}

// Some value of each honoured field is not accepted, whatever its kind.
TEST(RequestFields, HonouredOnesAreChecked) {
    const json::value wrong[] = {json::object{{"a", "b"}}, json::array{json::object{}}, json::value("\x01"),
                                 json::value(-1e300), json::value(true)};
    for (const Place& place : places()) {
        for (const FieldRow& row : place.table->rows()) {
            if (row.standing != Standing::kHonoured) continue;
            EXPECT_TRUE(std::ranges::any_of(
                wrong,
                [&](const json::value& value) { return error_of(place, with(place, row.name, value)).has_value(); }))
                << place.table->name() << " " << row.name;
        }
    }
}

TEST(RequestFields, NamesOfOneFieldMayNotContradict) {
    const Place chats = places().front();
    const auto two = [&](const char* fields) {
        return error_of(chats, R"({"messages":[{"role":"user","content":"hi"}],)" + std::string(fields) + "}");
    };
    EXPECT_FALSE(two(R"("max_tokens":5,"max_completion_tokens":5,"stop":["a"],"stopping_strings":"a")"));
    EXPECT_THAT(two(R"("max_tokens":5,"max_completion_tokens":6)")->what(), HasSubstr("max_tokens"));
    EXPECT_EQ(two(R"("stop":"a","stopping_strings":["b"])")->parameter(), "stopping_strings");
    EXPECT_EQ(two(R"("repeat_penalty":1.1,"rep_pen":1.2)")->parameter(), "rep_pen");
}

TEST(RequestQuery, ParametersAreKnownOrRefusedByName) {
    const auto fault = [](std::string_view path, std::string_view query) -> std::optional<ApiError> {
        try {
            check_query(path, query);
            return std::nullopt;
        } catch (const ApiError& error) {
            return error;
        }
    };
    for (const char* path : {"/slots", "/health", "/metrics", "/v1/models", "/props", "/completion"}) {
        for (const char* query : {"", "&", "_=1700000000", "t=1&v=2", "model=any", "api-version=2024-02-01", "nocache"})
            EXPECT_FALSE(fault(path, query)) << path << "?" << query;
        for (const char* query : {"x", "x=1", "_=1&x=1", "%78=1", "=1", "X=", "a b", "%ff", "_%3d1"}) {
            const auto error = fault(path, query);
            ASSERT_TRUE(error) << path << "?" << query;
            EXPECT_EQ(error->status(), 400u);
            EXPECT_EQ(error->code(), "unknown_parameter");
            EXPECT_THAT(error->what(), HasSubstr(fmt::format("in the query of {};", path)));
        }
        EXPECT_THAT(fault(path, "_=1&_=2")->what(), HasSubstr("twice"));
    }
    EXPECT_EQ(fault("/metrics", "%78%79=1")->parameter(), "xy");
    EXPECT_FALSE(fault("/slots", "fail_on_no_slot=1"));
    EXPECT_FALSE(fault("/models", "limit=20&order=desc"));
    EXPECT_TRUE(fault("/v1/models", "after=x"));
    EXPECT_TRUE(fault("/metrics", "fail_on_no_slot=1"));
    for (const char* off : {"include_slots", "include_slots=0", "include_slots=false", "fail_on_no_slot="})
        EXPECT_FALSE(fault("/health", off)) << off;
    EXPECT_EQ(fault("/health", "include_slots=1")->code(), "not_supported");
    EXPECT_EQ(fault("/v1/health", "fail_on_no_slot=1")->parameter(), "fail_on_no_slot");
    EXPECT_TRUE(fails_on_no_slot("fail_on_no_slot=1&_=5"));
    EXPECT_TRUE(fails_on_no_slot("fail_on_no_slot=true"));
    for (const char* off : {"", "fail_on_no_slot", "fail_on_no_slot=0", "fail_on_no_slot=false"})
        EXPECT_FALSE(fails_on_no_slot(off)) << off;
    EXPECT_THROW(fails_on_no_slot("fail_on_no_slot=2"), ApiError);
}

// The text of docs/request-fields.md between its two marks.
std::string documented() {
    struct Row {
        std::string tables, names;
        const FieldRow* row;
    };
    std::vector<Row> rows;
    std::vector<std::string> sections;
    const auto same = [](const FieldRow& a, const FieldRow& b) {
        return a.standing == b.standing && a.text == b.text && a.neutral == b.neutral && a.wished == b.wished;
    };
    std::vector<const FieldTable*> all = field_tables();
    all.insert(all.end(), query_tables().begin(), query_tables().end());
    const auto kind = [](const FieldTable* table) {
        return table->name().starts_with('/') ? 1 : table->name().starts_with("the query") ? 2 : 0;
    };
    for (const FieldTable* table : all) {
        for (const FieldRow& row : table->rows()) {
            // Endpoints share rows, and so do their queries; the first of them brings a row.
            std::vector<const FieldTable*> sharing;
            for (const FieldTable* other : all) {
                const auto at = other->index_of(row.name);
                if (other == table ||
                    (kind(table) != 0 && kind(table) == kind(other) && at && same(other->rows()[*at], row)))
                    sharing.push_back(other);
            }
            if (sharing.front() != table) continue;
            std::string tables;
            for (const FieldTable* one : sharing) tables += (tables.empty() ? "" : ", ") + one->name();
            if (std::ranges::find(sections, tables) == sections.end()) sections.push_back(tables);
            const auto found =
                std::ranges::find_if(rows, [&](const Row& one) { return one.tables == tables && same(*one.row, row); });
            const std::string name = fmt::format("`{}`", row.name);
            if (found != rows.end()) {
                found->names += ", " + name;
            } else {
                rows.push_back({tables, name, &row});
            }
        }
    }
    std::string text;
    for (const std::string& section : sections) {
        text += "\n" + section + ":\n\n| field | standing | |\n| --- | --- | --- |\n";
        for (const Row& one : rows) {
            if (one.tables != section) continue;
            const FieldRow& row = *one.row;
            std::string standing = row.standing == Standing::kHonoured ? "honoured" : "harmless";
            if (row.standing == Standing::kHint) {
                standing = fmt::format("hint: `{}`, without effect `{}`", row.neutral.empty() ? kOff : row.neutral,
                                       row.wished);
            }
            if (row.standing == Standing::kRefused) {
                standing = "refused";
                if (row.neutral == kNotPositive) standing += " above 0";
                if (!row.neutral.empty() && row.neutral != kNotPositive && row.neutral != "[]")
                    standing += fmt::format(" unless in `{}`", row.neutral);
            }
            text += fmt::format("| {} | {} | {} |\n", one.names, standing, row.text);
        }
    }
    return text + "\n";
}

// TSR_WRITE_DOCS=1 writes the table anew.
TEST(RequestFields, DocumentationHasTheTable) {
    static constexpr std::string_view kBegin = "<!-- fields: written by RequestFields.DocumentationHasTheTable -->\n";
    static constexpr std::string_view kEnd = "<!-- end of fields -->";
    const std::string path = std::string(TSR_SOURCE_DIR) + "/docs/request-fields.md";
    const File file(path);
    std::vector<std::byte> bytes(file.size());
    file.pread_exact(0, bytes);
    std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const size_t begin = text.find(kBegin), end = text.find(kEnd);
    ASSERT_NE(begin, std::string::npos);
    ASSERT_NE(end, std::string::npos);
    const size_t at = begin + kBegin.size();
    const std::string table = documented();
    if (std::getenv("TSR_WRITE_DOCS")) {
        text.replace(at, end - at, table);
        std::ofstream(path, std::ios::binary) << text;
        return;
    }
    EXPECT_EQ(text.substr(at, end - at), table) << "run this test with TSR_WRITE_DOCS=1";
}

}  // namespace
}  // namespace tessera::server
