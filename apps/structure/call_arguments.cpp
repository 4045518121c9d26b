#include "apps/structure/call_arguments.hpp"

#include "apps/structure/json_schema.hpp"
#include "apps/structure/lark.hpp"
#include "apps/structure/schema_references.hpp"
#include "apps/structure/value_rules.hpp"
#include "core/base/error.hpp"
#include "core/text/call_body.hpp"
#include "core/text/json_writer.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace tessera::structure {
namespace {

namespace json = boost::json;

// Keywords of the arguments' own schema; what else it may say of members is said of none of them.
constexpr std::string_view kKnown[] = {"type",        "properties", "required",      "additionalProperties", "$defs",
                                       "definitions", "$schema",    "minProperties", "maxProperties"};

// Of values without quotes: texts that are read as something else, and their beginnings. core/text/call_body.hpp
constexpr std::string_view kWords = "true|false|null|True|False|None|-?Infinity|-?NaN";
constexpr std::string_view kBlank = "[ \\t\\r\\n]*";

bool is_text(const SchemaKind& kind) {
    return kind.kind == ValueKind::kText || (kind.kind == ValueKind::kConstant && kind.constant.is_string());
}

bool is_word(const SchemaKind& kind) {
    return kind.kind == ValueKind::kBoolean || kind.kind == ValueKind::kNull ||
           (kind.kind == ValueKind::kConstant && (kind.constant.is_bool() || kind.constant.is_null()));
}

std::vector<std::string> words_of(const SchemaKind& kind) {
    if (kind.kind == ValueKind::kBoolean) return {"true", "false"};
    if (kind.kind == ValueKind::kNull || kind.constant.is_null()) return {"null"};
    return {kind.constant.get_bool() ? "true" : "false"};
}

struct Parameter {
    std::string name;
    json::value schema;
    std::string place;
    bool required = false;
};

// What to do with a part of a schema that arguments in the model's format are not held to.
class PartsLeftOut {
  public:
    PartsLeftOut(bool allowed, std::vector<std::string>& places) : allowed_(allowed), places_(places) {}

    // Throws unless that is allowed. `place`: a JSON pointer.
    void keyword(const std::string& place, std::string_view keyword, std::string_view why) {
        if (!allowed_) refuse_keyword(place, keyword, why);
        places_.push_back(fmt::format("{}/{}", place, keyword).substr(1));
    }

    // Calls `make` with the parameter; where that throws with one of any value, and where that throws, too, since its
    // name cannot be written, the arguments are without it.
    template <typename Make>
    auto parameter(const Parameter& one, ValueRules& rules, const Make& make) {
        using Made = decltype(make(one));
        const auto made_of = [&](const Parameter& each) -> std::optional<Made> {
            try {
                return rules.attempt([&] { return make(each); });
            } catch (const Error& error) {
                if (!allowed_ || error.code() != TSR_INVALID_ARGUMENT) throw;
                return std::nullopt;
            }
        };
        if (auto made = made_of(one)) return std::move(*made);
        places_.push_back(one.place.substr(1));
        Parameter any = one;
        any.schema = json::object();
        return made_of(any).value_or(Made());
    }

  private:
    const bool allowed_;
    std::vector<std::string>& places_;
};

std::vector<Parameter> parameters_in(const json::object& schema, PartsLeftOut& left_out) {
    for (const auto& [key, value] : schema) {
        const std::string_view name(key.data(), key.size());
        if (std::ranges::find(kKnown, name) == std::end(kKnown))
            left_out.keyword("", name, "is a keyword that arguments in the model's format of calls are not held to");
    }
    std::vector<Parameter> found;
    if (const json::value* const properties = schema.if_contains("properties")) {
        for (const auto& [key, value] : properties->get_object()) {
            const std::string name(key.data(), key.size());
            found.push_back({name, value, "/properties/" + pointer_part(name)});
        }
    }
    const json::value* const additional = schema.if_contains("additionalProperties");
    const bool none = additional && additional->is_bool() && !additional->get_bool();
    if (found.empty() && additional && !none)
        left_out.keyword("", "additionalProperties",
                         "arguments in the model's format of calls are those of properties");
    if (const json::value* const required = schema.if_contains("required")) {
        for (const json::value& one : required->get_array()) {
            const auto declared = std::ranges::find(found, std::string_view(one.get_string()), &Parameter::name);
            if (declared == found.end())
                left_out.keyword("", "required", "names a property that is not declared");
            else
                declared->required = true;
        }
    }
    const auto needed = std::ranges::count(found, true, &Parameter::required);
    if (const json::value* const least = schema.if_contains("minProperties"))
        if (least->to_number<double>() > static_cast<double>(needed))
            left_out.keyword("", "minProperties", "arguments are not held to more than those that are required");
    if (const json::value* const most = schema.if_contains("maxProperties"))
        if (most->to_number<double>() < static_cast<double>(found.size()))
            left_out.keyword("", "maxProperties", "arguments are not held to fewer than there are properties");
    return found;
}

// Values between tags.
class TagArguments {
  public:
    TagArguments(const TagFormat& tags, const std::string& tool, const json::value& root, const std::string& prefix,
                 const text::ReplySyntax& reply, const text::Tokenizer& tokenizer)
        : tags_(tags),
          tool_(tool),
          root_(root),
          reply_(reply),
          tokenizer_(tokenizer),
          rules_(root, ValueSyntax::kJson, tags.forbidden, prefix, tokenizer) {}

    CallArguments of(std::span<const Parameter> parameters, PartsLeftOut& left_out) {
        std::string expression;
        for (const Parameter& one : parameters) {
            const std::string written =
                left_out.parameter(one, rules_, [&](const Parameter& each) { return parameter(each); });
            if (written.empty()) continue;
            expression += fmt::format("({}){} ", written, one.required ? "" : "?");
        }
        return {expression, rules_.take_rules()};
    }

    // Any names, and any texts.
    CallArguments any() {
        const std::string text = rules_.bare_text({ValueKind::kText, {}, {}, ""}, {}, tags_.value_end);
        std::string values = fmt::format("{} {}", format_text(tags_.text_begin, tokenizer_), text);
        if (tags_.named_end) {
            // A grammar cannot repeat a name: the reader takes any for the end of the innermost tag.
            const std::array<std::string, 2> names = {"/[^<>\"{}\\n\\r\\t \\/]{1,100}/", "~/invoke/"};
            values += " " + rules_.bare_text({ValueKind::kText, {}, {}, ""}, names, ">");
        }
        if (has_marks())
            values +=
                fmt::format(" | {} {} {}", format_text(tags_.json_begin, tokenizer_), rules_.any_value(), end(""));
        return {fmt::format("({} /[^<>\"{{}}\\n\\r\\t ]{{1,100}}/ ({}) {})*", format_text(tags_.key_begin, tokenizer_),
                            values, format_text(tags_.after_value, tokenizer_)),
                rules_.take_rules()};
    }

  private:
    // Whether marks say which values are texts.
    bool has_marks() const { return tags_.text_begin != tags_.json_begin; }

    std::string parameter(const Parameter& one) {
        if (one.name.empty() || one.name.find_first_of("<>\"{}\n\r\t\a\b\v\f ") != one.name.npos)
            refuse_keyword(one.place, "", "has a character that ends names in the model's format of calls");
        const std::vector<SchemaKind> kinds = kinds_of(one.schema, root_, one.place);
        if (kinds.empty()) {
            if (one.required) refuse_keyword(one.place, "", "is false, which no value is");
            return {};
        }
        const bool known = reply_.texts && reply_.texts->contains({tool_, one.name});
        const bool any_text = std::ranges::any_of(kinds, is_text), all_text = std::ranges::all_of(kinds, is_text);
        std::string texts, others;
        for (const SchemaKind& kind : kinds)
            if (is_text(kind)) add(texts, text(kind, known || has_marks(), kinds, one.name));
        if (!any_text) {
            add(others, fmt::format("({}) {}", rules_.value(one.schema, one.place), end(one.name)));
        } else if (!all_text) {
            for (const SchemaKind& kind : kinds)
                if (!is_text(kind)) add(others, other(kind, one.name));
        }
        const std::string key = std::string(tags_.key_begin) + one.name;
        std::string made;
        if (has_marks()) {
            if (!texts.empty()) add(made, begun(key, tags_.text_begin, texts));
            if (!others.empty()) add(made, begun(key, tags_.json_begin, others));
        } else {
            add(texts, others);
            made = begun(key, tags_.text_begin, texts);
        }
        return made;
    }

    static void add(std::string& all, const std::string& one) {
        if (!one.empty()) all += (all.empty() ? "" : " | ") + one;
    }
    std::string end_of(const std::string& name) const {
        return std::string(tags_.value_end) + (tags_.named_end ? name + ">" : "");
    }
    std::string end(const std::string& name) const { return lark_markers(end_of(name), tokenizer_); }
    std::string begun(const std::string& key, std::string_view mark, const std::string& values) const {
        return fmt::format("{} ({}) {}", format_text(key + std::string(mark), tokenizer_), values,
                           format_text(tags_.after_value, tokenizer_));
    }

    // `known`: the reader knows that it is one. `name`: of the parameter.
    std::string text(const SchemaKind& kind, bool known, std::span<const SchemaKind> all, const std::string& name) {
        if (kind.kind == ValueKind::kConstant) {
            const std::string_view value = kind.constant.get_string();
            const bool kept = known || text::bare_value_as_json(value) == text::json_string(value);
            if (!kept || (tags_.drops_breaks && (value.starts_with('\n') || value.ends_with('\n'))))
                refuse_keyword(kind.place, "",
                               fmt::format("'{}' would be read as another value in the model's format of calls; "
                                           "\"type\": \"string\" says that it is a text",
                                           value));
            return rules_.bare_constant(value, end_of(name), kind.place);
        }
        std::vector<std::string> conditions;
        if (tags_.drops_breaks) conditions = {"~/\\n(?s:.*)/", "~/(?s:.*)\\n/"};
        if (!known) {
            const bool words_alone =
                std::ranges::all_of(all, [](const SchemaKind& one) { return is_text(one) || is_word(one); });
            conditions.push_back(fmt::format("~/{0}(?:{1}){0}/", kBlank, kWords));
            // Beside numbers, lists and objects a text begins as none of them does: which it is, is known at once.
            conditions.push_back(words_alone ? fmt::format("~/{0}(?:[\\[{{](?s:.*)|[-+0-9.eE]+{0})/", kBlank)
                                             : fmt::format("~/{}[-+0-9.\\[{{](?s:.*)/", kBlank));
            if (!words_alone) conditions.push_back("~/[ \\t\\r\\n](?s:.*)/");
        }
        return rules_.bare_text(kind, conditions, end_of(name));
    }

    // Beside texts.
    std::string other(const SchemaKind& kind, const std::string& name) {
        if (!is_word(kind) || has_marks()) return fmt::format("{} {}", rules_.value(kind), end(name));
        std::string made;
        for (const std::string& word : words_of(kind)) add(made, rules_.bare_constant(word, end_of(name), kind.place));
        return made;
    }

    const TagFormat& tags_;
    const std::string& tool_;
    const json::value& root_;
    const text::ReplySyntax& reply_;
    const text::Tokenizer& tokenizer_;
    ValueRules rules_;
};

CallArguments literal_arguments(ArgumentsSyntax syntax, const json::value& root, bool held, const std::string& prefix,
                                const text::Tokenizer& tokenizer, PartsLeftOut& left_out) {
    const bool gemma = syntax == ArgumentsSyntax::kGemma;
    ValueRules rules(root, gemma ? ValueSyntax::kGemma : ValueSyntax::kPython, gemma ? "<|\"|>" : "", prefix,
                     tokenizer);
    const std::string_view mark = gemma ? ":" : "=", separator = gemma ? "," : ", ";
    if (!held) {
        const std::string one = fmt::format("/[A-Za-z0-9_.-]{{1,64}}/ {} {}", lark_text(mark), rules.any_value());
        return {fmt::format("({} ({} {})*)?", one, lark_text(separator), one), rules.take_rules()};
    }
    std::vector<ValueRules::Member> members;
    const auto member = [&](const Parameter& one) -> std::string {
        if (kinds_of(one.schema, root, one.place).empty() && !one.required) return {};
        return fmt::format("{} ({})", lark_text(rules.bare_key(one.name, one.place) + std::string(mark)),
                           rules.value(one.schema, one.place));
    };
    for (const Parameter& one : parameters_in(root.get_object(), left_out))
        if (std::string made = left_out.parameter(one, rules, member); !made.empty())
            members.push_back({std::move(made), one.required});
    std::string expression = rules.members(members, separator);
    return {std::move(expression), rules.take_rules()};
}

}  // namespace

CallArguments call_arguments(const CallFormat& format, const CallableTool& tool, const json::value& parameters,
                             const std::string& prefix, const text::ReplySyntax& reply,
                             const text::Tokenizer& tokenizer, std::vector<std::string>& unenforced) {
    PartsLeftOut left_out(tool.allow_unenforced, unenforced);
    if (format.arguments != ArgumentsSyntax::kTags)
        return literal_arguments(format.arguments, parameters, tool.held, prefix, tokenizer, left_out);
    TagArguments arguments(*format.tags, tool.name, parameters, prefix, reply, tokenizer);
    return tool.held ? arguments.of(parameters_in(parameters.get_object(), left_out), left_out) : arguments.any();
}

std::string format_text(std::string_view text, const text::Tokenizer& tokenizer) {
    constexpr std::pair<char, std::string_view> kExpressions[] = {
        {kOptionalBreak, "\"\\n\"?"},
        {kOptionalBlanks, "(/[ \\n]{1,16}/)?"},
        {kIndexNumber, "/[0-9]{1,4}/"},
        {kAnyId, "/[A-Za-z0-9_-]{1,64}/"},
        {kJsonType, "/number|integer|boolean|null|array|object/"}};
    std::string made;
    for (;;) {
        const size_t at = text.find_first_of(kStandIns);
        made += (made.empty() ? "" : " ") + lark_markers(text.substr(0, at), tokenizer);
        if (at == text.npos) return made;
        made += fmt::format(
            " {}", std::ranges::find(kExpressions, text[at], &std::pair<char, std::string_view>::first)->second);
        text.remove_prefix(at + 1);
    }
}

}  // namespace tessera::structure
