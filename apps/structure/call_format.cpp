#include "apps/structure/call_format.hpp"

#include <algorithm>
#include <iterator>

namespace tessera::structure {
namespace {

using enum text::ToolSyntax;

#define TSR_DSML "\uff5cDSML\uff5c"
#define TSR_MINIMAX "]<]minimax[>["
#define TSR_PARAMETER_END "</" TSR_DSML "parameter>"

constexpr TagFormat kGlmTags = {
    "<arg_key>", "</arg_key>\v<arg_value>", "</arg_key>\v<arg_value>", "</arg_value>", "\v", "</arg_value>"};
constexpr TagFormat kQwenTags = {"<parameter=", ">\n", ">\n", "\n</parameter>", "\n", "</parameter>"};
constexpr TagFormat kSeedTags = {"<parameter=", ">", ">", "</parameter>", "\n", "</parameter>", true};
constexpr TagFormat kMiniMaxTags = {"<parameter name=\"", "\">", "\">", "</parameter>", "\n", "</parameter>"};
constexpr TagFormat kAtemTags = {"<atem:parameter name=\"", "\">", "\">",
                                 "</atem:parameter>",       "\n",  "</atem:parameter>"};
constexpr TagFormat kKimiK3Tags = {
    "<|open|>argument key=\"", "\" type=\"string\"<|sep|>", "\" type=\"\r\"<|sep|>", "<|close|>argument<|sep|>", "",
    "<|close|>argument<|sep|>"};
constexpr TagFormat kParamTags = {"<param name=\"", "\">", "\">", "</param>", "", "</param>"};
constexpr TagFormat kHunyuanTags = {
    "<arg_key>", "</arg_key>\v<arg_value>", "</arg_key>\v<arg_value>", "</arg_value>", "\v", "</arg_value>"};
constexpr TagFormat kHunyuanOpenTags = {"<arg_key:opensource>",
                                        "</arg_key:opensource>\v<arg_value:opensource>",
                                        "</arg_key:opensource>\v<arg_value:opensource>",
                                        "</arg_value:opensource>",
                                        "\v",
                                        "</arg_value:opensource>"};
constexpr TagFormat kNestedTags = {.key_begin = TSR_MINIMAX "<",
                                   .text_begin = ">",
                                   .json_begin = ">",
                                   .value_end = TSR_MINIMAX "</",
                                   .after_value = "",
                                   .forbidden = TSR_MINIMAX,
                                   .named_end = true};
constexpr TagFormat kDsmlTags = {"<" TSR_DSML "parameter name=\"",
                                 "\" string=\"true\">",
                                 "\" string=\"false\">",
                                 TSR_PARAMETER_END,
                                 "\n",
                                 TSR_PARAMETER_END};

constexpr CallFormat dsml(text::ToolSyntax syntax, std::string_view section, std::string_view section_end) {
    return {.syntax = syntax,
            .section = section,
            .call = "<" TSR_DSML "invoke name=\"",
            .after_name = "\">\n",
            .call_end = "</" TSR_DSML "invoke>\n",
            .between = "",
            .section_end = section_end,
            .arguments = ArgumentsSyntax::kTags,
            .tags = &kDsmlTags};
}

constexpr CallFormat kCallFormats[] = {
    {kHermes, "", "<tool_call>\n", "", "\n</tool_call>", "\v", ""},
    {kLlama3, "", "", "", "", "; ", "", "name", "parameters"},
    {kDeepSeekV3, "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>function<｜tool▁sep｜>", "\n```json\n",
     "\n```<｜tool▁call▁end｜>", "\v", "<｜tool▁calls▁end｜>"},
    {kDeepSeekV31, "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>", "",
     "<｜tool▁calls▁end｜>"},
    dsml(kDeepSeekV32, "<" TSR_DSML "function_calls>\n", "</" TSR_DSML "function_calls>"),
    dsml(kDeepSeekV4, "<" TSR_DSML "tool_calls>\n", "</" TSR_DSML "tool_calls>"),
    {kKimi, "<|tool_calls_section_begin|>", "<|tool_call_begin|>functions.", ":\a<|tool_call_argument_begin|>",
     "<|tool_call_end|>", "", "<|tool_calls_section_end|>"},
    {kGlm, "", "<tool_call>", "\v", "</tool_call>", "\v", "", "", "", false, ArgumentsSyntax::kTags, &kGlmTags},
    {kQwenXml, "", "<tool_call>\n<function=", ">\n", "</function>\n</tool_call>", "\v", "", "", "", false,
     ArgumentsSyntax::kTags, &kQwenTags},
    {kSeedXml, "", "<seed:tool_call>\n<function=", ">\n", "</function>\n</seed:tool_call>", "\v", "", "", "", false,
     ArgumentsSyntax::kTags, &kSeedTags},
    {kMiniMax, "<minimax:tool_call>\n", "<invoke name=\"", "\">\n", "</invoke>\n", "", "</minimax:tool_call>", "", "",
     false, ArgumentsSyntax::kTags, &kMiniMaxTags},
    {kFunctionary, "", "<function=", ">", "</function>", "", ""},
    {.syntax = kMistral,
     .section = "[TOOL_CALLS][",
     .between = ", ",
     .section_end = "]",
     .id = {CallId::Place::kAfterArguments, ", \"id\": \"", "\""}},
    {.syntax = kMistralNamed,
     .call = "[TOOL_CALLS]",
     .after_name = "[ARGS]",
     .id = {CallId::Place::kAfterName, "[CALL_ID]", ""}},
    {kGranite, "<|tool_call|>[", "", "", "", ", ", "]"},
    {kGemma, "", "<|tool_call>call:", "{", "}<tool_call|>", "", "", "", "", false, ArgumentsSyntax::kGemma},
    {kLfm2, "<|tool_call_start|>[", "", "(", ")", ", ", "]<|tool_call_end|>", "", "", false, ArgumentsSyntax::kPython},
    {kNemotron, "<TOOLCALL>[", "", "", "", ", ", "]</TOOLCALL>"},
    {kApriel, "<tool_calls>[", "", "", "", ", ", "]</tool_calls>"},
    {.syntax = kCommandR,
     .section = "<|START_ACTION|>[\f",
     .between = ",\f",
     .section_end = "\f]<|END_ACTION|>",
     .name_key = "tool_name",
     .arguments_key = "parameters",
     .id = {CallId::Place::kBeforeName, "\"tool_call_id\": \"", "\", "}},
    {kGigaChat, "<|message_sep|>\n\nfunction call<|role_sep|>\n", "", "", "", "", "", "name", "arguments", true},
    {kFireFunction, "functools[", "", "", "", ", ", "]"},
    {kActions, "Action:\n```json\n[\f", "", "", "", ",\f", "\f]```", "tool_name", "parameters"},
    {kApertus, "<|tools_prefix|>[", "{\"", "\": ", "}", ", ", "]<|tools_suffix|>"},
    {kGigaChat31, "<|function_call|>", "", "", "", "", "", "name", "arguments", true},
    {kRecipient, "", "", "\n", "", ">>>", ""},
    {kMiniMaxM1, "<tool_calls>\n", "", "", "\n", "", "</tool_calls>"},
    {kMiniMaxM3, TSR_MINIMAX "<tool_call>\n", TSR_MINIMAX "<invoke name=\"", "\">", TSR_MINIMAX "</invoke>\n", "",
     TSR_MINIMAX "</tool_call>", "", "", false, ArgumentsSyntax::kTags, &kNestedTags},
    {.syntax = kMuse,
     .section = "",
     .call = " to=",
     .after_name = "\">\n",
     .call_end = "</atem:invoke>\n</atem:function_calls>",
     .between = "",
     .section_end = "",
     .one_alone = true,
     .arguments = ArgumentsSyntax::kTags,
     .tags = &kAtemTags,
     .name_again = "<|message|><atem:function_calls>\n<atem:invoke name=\""},
    {kMiniCpm, "", "<function name=\"", "\">", "</function>", "\v", "", "", "", false, ArgumentsSyntax::kTags,
     &kParamTags},
    {kHunyuan, "<tool_calls>\n", "<tool_call>", "<tool_sep>\v", "</tool_call>", "\v", "\n</tool_calls>", "", "", false,
     ArgumentsSyntax::kTags, &kHunyuanTags},
    {kHunyuanOpen, "<tool_calls:opensource>\n", "<tool_call:opensource>", "<tool_sep:opensource>\v",
     "</tool_call:opensource>", "\v", "\n</tool_calls:opensource>", "", "", false, ArgumentsSyntax::kTags,
     &kHunyuanOpenTags},
    {.syntax = kKimiK3,
     .section = "<|open|>tools<|sep|>",
     .call = "<|open|>call tool=\"",
     .after_name = "\" index=\"\a\"<|sep|>",
     .call_end = "<|close|>call<|sep|>",
     .between = "",
     .section_end = "<|close|>tools<|sep|>",
     .arguments = ArgumentsSyntax::kTags,
     .tags = &kKimiK3Tags,
     .maybe_before = "<|open|>response<|sep|>",
     .maybe_before_2 = "<|close|>response<|sep|>"},
    {.syntax = kSolar,
     .section = "<|tool_calls|>",
     .call = "<|tool_call:begin|>\b<|tool_call:name|>",
     .after_name = "<|tool_call:args|>",
     .call_end = "<|tool_call:end|>",
     .between = "",
     .section_end = "<|calls|>",
     .maybe_before = "<|begin|>assistant"},
    {kChannels, "", "<|channel|>commentary to=functions.", " <|constrain|>json<|message|>", "", "", "", "name",
     "arguments", true},
};

}  // namespace

const CallFormat* call_format(text::ToolSyntax syntax) {
    const auto* const found = std::ranges::find(kCallFormats, syntax, &CallFormat::syntax);
    return found == std::end(kCallFormats) ? nullptr : found;
}

}  // namespace tessera::structure
