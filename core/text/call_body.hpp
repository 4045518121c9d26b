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
    // From now on calls of other functions are none; null: any is one. `names` must outlive the body.
    virtual void restrict_to(const ToolNames* names) { names_ = names; }
    // As ToolReader::read(); kEnd: the body is complete, and its end mark, which is not read, may follow.
    virtual Progress read(std::string_view text, bool over, CallSink& sink) = 0;

  protected:
    bool may_call(std::string_view name) const { return !names_ || names_->contains(name); }
    const ToolNames* names_ = nullptr;
};

// Finds the end of an object or a list: brackets are counted, not matched.
class JsonEnd {
  public:
    void begin() { *this = JsonEnd(); }
    // Bytes of `text` up to the end; all of them, unless closed().
    size_t read(std::string_view text);
    bool closed() const { return closed_; }
    bool in_string() const { return quoted_; }

  private:
    size_t depth_ = 0;
    bool quoted_ = false, escaped_ = false, closed_ = false;
};

// Finds the end of arguments of which a model may forget brackets, a quote around an object among them.
class ArgumentsEnd {
  public:
    enum class Status : uint8_t { kOpen, kMaybeMark, kMark, kClosed };
    struct Progress {
        Status status;
        size_t bytes = 0;  // of the arguments
    };

    void begin() { *this = ArgumentsEnd(); }
    // Reads to the end, or to `mark` outside of strings; kMaybeMark: what follows may be the mark. `mark`: empty: none.
    Progress read(std::string_view text, std::string_view mark, bool over);

  private:
    JsonEnd value_;
    JsonQuotes text_;  // of arguments that are a string
    bool begun_ = false, is_text_ = false;
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

// One object, several, or a list of them.
class JsonListBody final : public CallBody {
  public:
    explicit JsonListBody(std::string_view end) : object_(false, end) {}

    void begin() override;
    void restrict_to(const ToolNames* names) override { object_.restrict_to(names); }
    // The same behind the bracket that opens a list.
    void begin_in_list();
    Progress read(std::string_view text, bool over, CallSink& sink) override;

  private:
    enum class State : uint8_t { kOpen, kOne, kAfterOne, kItem, kAfter };
    Progress after_one(std::string_view text, bool over);

    JsonObjectBody object_;
    State state_ = State::kOpen;
    bool object_open_ = false;  // of a list
    bool any_ = false;
};

// What stands between the marks is JSON or tags, whichever it begins as: models of the one write the other now and
// then.
class EitherBody final : public CallBody {
  public:
    EitherBody(std::string_view end, std::unique_ptr<CallBody> tags) : json_(end), tags_(std::move(tags)) {}

    void begin() override { chosen_ = nullptr; }
    void restrict_to(const ToolNames* names) override {
        json_.restrict_to(names);
        tags_->restrict_to(names);
    }
    Progress read(std::string_view text, bool over, CallSink& sink) override;

  private:
    JsonListBody json_;
    const std::unique_ptr<CallBody> tags_;
    CallBody* chosen_ = nullptr;
};

// NAME<|tool_call_argument_begin|>JSON, the name with "functions." before and the call's number behind it
std::unique_ptr<CallBody> make_kimi_body(std::string_view end);
// NAME>JSON
std::unique_ptr<CallBody> make_functionary_body(std::string_view end);
// ID<|tool_call:name|>NAME<|tool_call:args|>JSON
std::unique_ptr<CallBody> make_solar_body(std::string_view end);
// [{NAME: OBJECT}, ...]
std::unique_ptr<CallBody> make_keyed_body(std::string_view end);
// NAME[ARGS]JSON, NAME[CALL_ID]ID[ARGS]JSON, or a list of JSON
std::unique_ptr<CallBody> make_mistral_body();

// Names and values between tags. Values have no quotes: one that the schema calls a text, and one that cannot be
// anything else, is passed on while it arrives; others when they are complete. `texts` may be null.
//   NAME <arg_key>KEY</arg_key><arg_value>VALUE</arg_value>...
std::unique_ptr<CallBody> make_glm_body(std::string_view end, std::shared_ptr<const TextParameters> texts);
//   NAME<tool_sep:opensource><arg_key:opensource>KEY</arg_key:opensource>..., the marks as `open` has them
// `section_end` ends it, too.
std::unique_ptr<CallBody> make_hunyuan_body(bool open, std::string_view end, std::string_view section_end,
                                            std::shared_ptr<const TextParameters> texts);
//   <function=NAME><parameter=KEY>VALUE</parameter>...</function>
std::unique_ptr<CallBody> make_function_tags_body(std::string_view end, std::shared_ptr<const TextParameters> texts);
//   <invoke name="NAME"><parameter name="KEY">VALUE</parameter>...</invoke>...
std::unique_ptr<CallBody> make_invoke_tags_body(std::string_view end, std::shared_ptr<const TextParameters> texts);
//   <|DSML|invoke name="NAME">
//   <|DSML|parameter name="KEY" string="true">TEXT</|DSML|parameter>
//   <|DSML|parameter name="KEY" string="false">JSON</|DSML|parameter>
//   </|DSML|invoke>...
std::unique_ptr<CallBody> make_dsml_body(std::string_view end);
//   <atem:invoke name="NAME"><atem:parameter name="KEY">VALUE</atem:parameter>...</atem:invoke>...
std::unique_ptr<CallBody> make_atem_body(std::string_view end, std::shared_ptr<const TextParameters> texts);
//   <function name="NAME"><param name="KEY">VALUE</param>...</function>..., values also within <![CDATA[...]]>
std::unique_ptr<CallBody> make_param_tags_body(std::shared_ptr<const TextParameters> texts);
//   <|open|>call tool="NAME" index="1"<|sep|>
//   <|open|>argument key="KEY" type="string"<|sep|>VALUE<|close|>argument<|sep|>...<|close|>call<|sep|>...
// or the arguments as JSON in <|open|>json type="object"<|sep|>...<|close|>json<|sep|>
std::unique_ptr<CallBody> make_kimi_k3_body(std::string_view end);
// Tags named like keys, with MiniMax-M3's mark before each, and <item> for those of lists:
//   <invoke name="NAME"><KEY>VALUE</KEY><KEY><item>VALUE</item>...</KEY>...</invoke>...
std::unique_ptr<CallBody> make_nested_tags_body(std::string_view mark, std::shared_ptr<const TextParameters> texts);

// What such a value is as JSON if the schema does not say: what is neither JSON nor one of Python's values is a text,
// and so is a text of JSON, quotes and all.
std::string bare_value_as_json(std::string_view raw);

// call:NAME{key:<|"|>text<|"|>,n:1,l:[...],o:{...}}
std::unique_ptr<CallBody> make_gemma_body();
// [NAME(key="text", n=1), ...], or a list of JSON
std::unique_ptr<CallBody> make_python_body(std::string_view end);

}  // namespace tessera::text
