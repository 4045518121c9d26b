// Calls as models write them between two markers, in whole.
#pragma once

#include "core/text/reply_parser.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::text {

struct ReadCall {
    std::string name;
    std::string arguments;  // JSON text
};

// Appends the calls in `text`, without the markers around it. False: it is not one of this kind. `texts` may be null.
using CallBlockReader = bool (*)(std::string_view text, const TextParameters* texts, std::vector<ReadCall>& calls);

// {"name": ..., "arguments": ...}, or a list of them; "parameters" and "tool_name" are taken, too.
bool read_json_calls(std::string_view text, const TextParameters* texts, std::vector<ReadCall>& calls);
// functions.NAME:0<|tool_call_argument_begin|>JSON
bool read_kimi_call(std::string_view text, const TextParameters* texts, std::vector<ReadCall>& calls);
// NAME>JSON
bool read_functionary_call(std::string_view text, const TextParameters* texts, std::vector<ReadCall>& calls);
// NAME[ARGS]JSON, NAME[CALL_ID]ID[ARGS]JSON
bool read_mistral_call(std::string_view text, const TextParameters* texts, std::vector<ReadCall>& calls);
// NAME <arg_key>KEY</arg_key><arg_value>VALUE</arg_value>...
bool read_glm_call(std::string_view text, const TextParameters* texts, std::vector<ReadCall>& calls);
// <function=NAME><parameter=KEY>VALUE</parameter>...</function>
bool read_function_tags(std::string_view text, const TextParameters* texts, std::vector<ReadCall>& calls);
// <invoke name="NAME"><parameter name="KEY">VALUE</parameter>...</invoke>...
bool read_invoke_tags(std::string_view text, const TextParameters* texts, std::vector<ReadCall>& calls);
// call:NAME{key:<|"|>text<|"|>,n:1,l:[...],o:{...}}
bool read_gemma_call(std::string_view text, const TextParameters* texts, std::vector<ReadCall>& calls);
// [NAME(key="text", n=1), ...]
bool read_python_calls(std::string_view text, const TextParameters* texts, std::vector<ReadCall>& calls);

// Where the first JSON value of a text ends that grows: behind the bracket that closes the first one.
class JsonEnd {
  public:
    // `text` begins with what was given before.
    std::optional<size_t> find(std::string_view text);

  private:
    size_t at_ = 0;
    size_t depth_ = 0;
    bool quoted_ = false, escaped_ = false;
};

}  // namespace tessera::text
