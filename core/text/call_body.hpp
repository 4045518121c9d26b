// What stands between the marks of calls: one body a way to write it, for tool_reader_marked.cpp.
#pragma once

#include "core/text/json_call.hpp"
#include "core/text/tool_reader.hpp"

#include <memory>
#include <string_view>

// Between the bars of DeepSeek's models.
#define TSR_DSML "\uff5cDSML\uff5c"

namespace tessera::text {

class CallBody {
  public:
    using Progress = ToolReader::Progress;
    using Result = ToolReader::Result;

    virtual ~CallBody() = default;
    virtual void begin() = 0;
    // As ToolReader::read(); kEnd: the body is complete, and its end mark, which is not read, may follow.
    virtual Progress read(std::string_view text, bool over, CallSink& sink) = 0;
};

// One object, {"name": ..., "arguments": ...}.
class JsonObjectBody final : public CallBody {
  public:
    // strict: as of JsonCall. `end`, unless empty: what ends the body although the object is not closed, once it is
    // known to be a call.
    JsonObjectBody(bool strict, std::string_view end) : strict_(strict), end_(end), call_(strict) {}

    void begin() override;
    Progress read(std::string_view text, bool over, CallSink& sink) override;

  private:
    const bool strict_;
    const std::string_view end_;
    JsonCall call_;
    bool told_ = false;
};

// One object, or a list of them.
class JsonListBody final : public CallBody {
  public:
    explicit JsonListBody(std::string_view end) : object_(false, end) {}

    void begin() override;
    // The same behind the bracket that opens a list.
    void begin_in_list();
    Progress read(std::string_view text, bool over, CallSink& sink) override;

  private:
    enum class State : uint8_t { kOpen, kOne, kItem, kAfter };

    JsonObjectBody object_;
    State state_ = State::kOpen;
    bool object_open_ = false;  // of a list
    bool any_ = false;
};

// NAME<|tool_call_argument_begin|>JSON, the name with "functions." before and the call's number behind it
std::unique_ptr<CallBody> make_kimi_body(std::string_view end);
// NAME>JSON
std::unique_ptr<CallBody> make_functionary_body(std::string_view end);
// NAME[ARGS]JSON, NAME[CALL_ID]ID[ARGS]JSON, or a list of JSON
std::unique_ptr<CallBody> make_mistral_body();

// Names and values between tags. Values have no quotes: one that the schema calls a text, and one that cannot be
// anything else, is passed on while it arrives; others when they are complete. `texts` may be null.
//   NAME <arg_key>KEY</arg_key><arg_value>VALUE</arg_value>...
std::unique_ptr<CallBody> make_glm_body(std::string_view end, std::shared_ptr<const TextParameters> texts);
//   <function=NAME><parameter=KEY>VALUE</parameter>...</function>
std::unique_ptr<CallBody> make_function_tags_body(std::string_view end, std::shared_ptr<const TextParameters> texts);
//   <invoke name="NAME"><parameter name="KEY">VALUE</parameter>...</invoke>...
std::unique_ptr<CallBody> make_invoke_tags_body(std::string_view end, std::shared_ptr<const TextParameters> texts);
//   <|DSML|invoke name="NAME">
//   <|DSML|parameter name="KEY" string="true">TEXT</|DSML|parameter>
//   <|DSML|parameter name="KEY" string="false">JSON</|DSML|parameter>
//   </|DSML|invoke>...
std::unique_ptr<CallBody> make_dsml_body(std::string_view end);

// What such a value is as JSON if the schema does not say: what is neither JSON nor one of Python's values is a text,
// and so is a text of JSON, quotes and all.
std::string bare_value_as_json(std::string_view raw);

// call:NAME{key:<|"|>text<|"|>,n:1,l:[...],o:{...}}
std::unique_ptr<CallBody> make_gemma_body();
// [NAME(key="text", n=1), ...], or a list of JSON
std::unique_ptr<CallBody> make_python_body(std::string_view end);

}  // namespace tessera::text
