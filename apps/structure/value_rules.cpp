#include "apps/structure/value_rules.hpp"

#include "apps/structure/ecma_pattern.hpp"
#include "apps/structure/json_schema.hpp"
#include "apps/structure/lark.hpp"
#include "apps/structure/number_pattern.hpp"
#include "apps/structure/schema_formats.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/text/json_writer.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

namespace tessera::structure {
namespace {

namespace json = boost::json;

constexpr std::string_view kGemmaQuote = "<|\"|>";
constexpr size_t kMostRules = 50'000, kMostRuleBytes = 3 << 20;

std::optional<double> number_at(const SchemaKind& kind, std::string_view keyword) {
    const json::value* const found = kind.keywords.if_contains(keyword);
    if (!found) return std::nullopt;
    if (!found->is_number()) refuse_keyword(kind.place, keyword, "expected a number");
    return found->to_number<double>();
}

// Of keywords that count, which are checked to be whole.
std::optional<size_t> count_at(const SchemaKind& kind, std::string_view keyword) {
    const auto number = number_at(kind, keyword);
    if (!number) return std::nullopt;
    return static_cast<size_t>(*number);
}

std::string repeated(size_t least, std::optional<size_t> most) {
    return most ? fmt::format("{{{},{}}}", least, *most) : fmt::format("{{{},}}", least);
}

void check_order(const SchemaKind& kind, std::optional<size_t> least, std::optional<size_t> most,
                 std::string_view keyword) {
    if (least && most && *least > *most) refuse_keyword(kind.place, keyword, "is less than the least");
}

// What all of a text matches; the first says how many characters it has, if that is said.
std::vector<std::string> conditions_of(const SchemaKind& kind) {
    std::vector<std::string> made;
    const auto least = count_at(kind, "minLength"), most = count_at(kind, "maxLength");
    check_order(kind, least, most, "maxLength");
    if (least || most) made.push_back("(?s:." + repeated(least.value_or(0), most) + ")");
    if (const json::value* const pattern = kind.keywords.if_contains("pattern")) {
        try {
            made.push_back(whole_pattern(std::string_view(pattern->get_string())));
        } catch (const Error& error) {
            refuse_keyword(kind.place, "pattern", error.what());
        }
    }
    if (const json::value* const format = kind.keywords.if_contains("format")) {
        const std::string_view name = format->get_string();
        const auto known = text_format_pattern(name);
        if (!known)
            refuse_keyword(
                kind.place, "format",
                fmt::format("values in the model's format of calls are not held to '{}'", printable(name, 40)));
        made.emplace_back(*known);
    }
    return made;
}

int64_t whole_number(double value) {
    constexpr double most = static_cast<double>(kMostNumber) + 1;
    return static_cast<int64_t>(std::clamp(value, -most, most));
}

}  // namespace

std::string ValueRules::new_rule(std::string_view body) {
    std::string name = fmt::format("{}v{}", prefix_, count_++);
    rules_ += fmt::format("{}: {}\n", name, body);
    if (count_ > kMostRules || rules_.size() > kMostRuleBytes)
        fail(TSR_INVALID_ARGUMENT, "the schema is too large for the model's format of calls");
    return name;
}

std::string ValueRules::delimited(std::string_view open, std::vector<std::string> conditions, std::string_view close) {
    std::string terminal;
    for (const std::string& one : conditions) terminal += (terminal.empty() ? "" : " & ") + one;
    std::string name = prefix_;
    std::ranges::transform(name, name.begin(),
                           [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
    name += fmt::format("T{}", count_++);
    const std::string_view plain = plain_begin(open, tokenizer_);
    if (plain.size() == open.size() && !plain.empty()) terminal = fmt::format("{} ({})", lark_text(plain), terminal);
    Expression made = lark_until(terminal, close, name, tokenizer_);
    rules_ += made.rules;
    return plain.size() == open.size() ? made.text : fmt::format("{} {}", lark_markers(open, tokenizer_), made.text);
}

std::string ValueRules::value(const json::value& schema, const std::string& place) {
    const json::object* const object = schema.if_object();
    const std::vector<SchemaKind> kinds = kinds_of(schema, root_, place);
    if (kinds.empty()) refuse_keyword(place, "", "is false, which no value is");
    if (const json::value* const reference = object ? object->if_contains("$ref") : nullptr) {
        const std::string_view target = reference->get_string();
        if (const auto known = references_.find(target); known != references_.end()) return known->second;
        const std::string name = fmt::format("{}r{}", prefix_, references_.size());
        references_.emplace(target, name);
        const std::string body = value(*referred(target, root_), std::string(target.substr(1)));
        rules_ += fmt::format("{}: {}\n", name, body);
        return name;
    }
    std::string made;
    const auto add = [&](const std::string& one) { made += (made.empty() ? "" : " | ") + one; };
    for (const std::string_view several : {"anyOf", "oneOf"}) {
        const json::value* const list = object ? object->if_contains(several) : nullptr;
        if (!list) continue;
        for (size_t i = 0; i < list->get_array().size(); ++i)
            if (const json::value& one = list->get_array()[i]; !one.is_bool() || one.get_bool())
                add(value(one, fmt::format("{}/{}/{}", place, several, i)));
        return new_rule(made);
    }
    if (object && object->empty()) return any_value();
    if (kinds.size() == 1) return value(kinds.front());
    for (const SchemaKind& kind : kinds) add(value(kind));
    return new_rule(made);
}

std::string ValueRules::value(const SchemaKind& kind) {
    switch (kind.kind) {
        case ValueKind::kText:
            return text_of(kind);
        case ValueKind::kInteger:
        case ValueKind::kNumber:
            return number_of(kind);
        case ValueKind::kBoolean:
            return fmt::format("({} | {})", constant_of(true, kind.place), constant_of(false, kind.place));
        case ValueKind::kNull:
            return constant_of(nullptr, kind.place);
        case ValueKind::kList:
            return list_of(kind);
        case ValueKind::kObject:
            return object_of(kind);
        case ValueKind::kConstant:
            break;
    }
    return constant_of(kind.constant, kind.place);
}

std::string ValueRules::any_value() {
    if (!any_.empty()) return any_;
    any_ = prefix_ + "any";
    std::string body;
    for (const SchemaKind& kind : kinds_of(json::object(), root_, "")) {
        // Lists and objects of any values refer to this rule.
        body += (body.empty() ? "" : " | ") + value(kind);
    }
    rules_ += fmt::format("{}: {}\n", any_, body);
    return any_;
}

std::string ValueRules::text_of(const SchemaKind& kind) {
    const std::vector<std::string> asked = conditions_of(kind);
    std::vector<std::string> conditions;
    if (syntax_ == ValueSyntax::kGemma) return bare_text(kind, {}, kGemmaQuote);
    constexpr std::string_view kPlain = R"([^"\\\x00-\x1f\x7f])";
    if (kind.keywords.contains("pattern") || kind.keywords.contains("format")) {
        // Of its characters only those that are written as they are.
        conditions.push_back(lark_regex(fmt::format("{}*", kPlain)));
        for (const std::string& one : asked) conditions.push_back(lark_regex(one));
    } else {
        conditions.push_back(
            lark_regex(fmt::format(R"((?:{}|\\["\\nrbtf]){})", kPlain,
                                   repeated(count_at(kind, "minLength").value_or(0), count_at(kind, "maxLength")))));
    }
    if (!forbidden_.empty()) conditions.push_back(lark_without({&forbidden_, 1}));
    return delimited("\"", std::move(conditions), "\"");
}

std::string ValueRules::bare_text(const SchemaKind& text, std::span<const std::string> more, std::string_view close) {
    std::vector<std::string> conditions;
    conditions.push_back(lark_without(std::span(&forbidden_, forbidden_.empty() ? 0 : 1)));
    for (const std::string& one : conditions_of(text)) conditions.push_back(lark_regex(one));
    conditions.insert(conditions.end(), more.begin(), more.end());
    return delimited(syntax_ == ValueSyntax::kGemma ? kGemmaQuote : "", std::move(conditions), close);
}

std::string ValueRules::bare_constant(std::string_view text, std::string_view close, const std::string& place) const {
    if (!forbidden_.empty() && text.find(forbidden_) != text.npos)
        refuse_keyword(place, "", fmt::format("has {}, which ends a value in the model's format of calls", forbidden_));
    const std::string_view plain = plain_begin(close, tokenizer_);
    const std::string begin = std::string(text) + std::string(plain);
    return (begin.empty() ? "" : lark_text(begin) + " ") + lark_markers(close.substr(plain.size()), tokenizer_);
}

std::string ValueRules::number_of(const SchemaKind& kind) const {
    if (const auto step = number_at(kind, "multipleOf"); step && !(*step == 1 && kind.kind == ValueKind::kInteger))
        refuse_keyword(kind.place, "multipleOf", "values in the model's format of calls are not held to it");
    NumberRange whole = kAllNumbers, all = kAllNumbers;
    if (const auto least = number_at(kind, "minimum")) whole.least = all.least = whole_number(std::ceil(*least));
    if (const auto most = number_at(kind, "maximum")) whole.most = all.most = whole_number(std::floor(*most));
    if (const auto above = number_at(kind, "exclusiveMinimum")) {
        whole.least = std::max(whole.least, whole_number(std::floor(*above)) + 1);
        all.least = std::max(all.least, whole_number(std::ceil(*above)));
    }
    if (const auto below = number_at(kind, "exclusiveMaximum")) {
        whole.most = std::min(whole.most, whole_number(std::ceil(*below)) - 1);
        all.most = std::min(all.most, whole_number(std::floor(*below)));
    }
    const std::string pattern = kind.kind == ValueKind::kInteger ? integer_pattern(whole) : number_pattern(whole, all);
    if (pattern.empty()) refuse_keyword(kind.place, "", "no number that can be written is within its bounds");
    return lark_regex(pattern);
}

std::string ValueRules::list_of(const SchemaKind& kind) {
    for (const std::string_view keyword : {"prefixItems", "additionalItems"}) {
        if (kind.keywords.contains(keyword))
            refuse_keyword(kind.place, keyword, "values in the model's format of calls are not held to it");
    }
    const json::value* const items = kind.keywords.if_contains("items");
    if (items && items->is_array())
        refuse_keyword(kind.place, "items", "values in the model's format of calls are not held to a list of them");
    const size_t least = count_at(kind, "minItems").value_or(0);
    const auto most = count_at(kind, "maxItems");
    check_order(kind, least, most, "maxItems");
    if (most == size_t{0} || (items && items->is_bool() && !items->get_bool())) {
        if (least > 0) refuse_keyword(kind.place, "items", "is false, which no value is");
        return "\"[]\"";
    }
    const std::string item = new_rule(items ? value(*items, kind.place + "/items") : any_value());
    const std::string all = several(item, std::max<size_t>(least, 1), most);
    return new_rule(fmt::format("\"[\" {} \"]\"", least > 0 ? all : "(" + all + ")?"));
}

// With commas between them; `least` is not 0.
std::string ValueRules::several(const std::string& rule, size_t least, std::optional<size_t> most) const {
    if (most == size_t{1}) return rule;
    std::optional<size_t> more;
    if (most) more = *most - 1;
    return fmt::format("{} ({} {}){}", rule, lark_text(comma()), rule, repeated(least - 1, more));
}

std::string ValueRules::object_of(const SchemaKind& kind) {
    if (kind.keywords.contains("patternProperties"))
        refuse_keyword(kind.place, "patternProperties", "values in the model's format of calls are not held to it");
    const json::value* const properties = kind.keywords.if_contains("properties");
    const json::value* const required = kind.keywords.if_contains("required");
    const json::value* const additional = kind.keywords.if_contains("additionalProperties");
    const bool none = additional && additional->is_bool() && !additional->get_bool();
    const bool declared = properties && !properties->get_object().empty();
    const bool demanded = required && required->is_array() && !required->get_array().empty();
    if (!declared && !demanded) return none ? "\"{}\"" : map_of(kind);
    const auto is_required = [&](std::string_view name) {
        return demanded && std::ranges::any_of(required->get_array(), [&](const json::value& one) {
                   return one.is_string() && std::string_view(one.get_string()) == name;
               });
    };
    std::vector<Member> list;
    size_t needed = 0;
    const auto add = [&](std::string_view name, const json::value& schema, const std::string& place) {
        list.push_back({fmt::format("{} {}", key_of(name, place), new_rule(value(schema, place))), is_required(name)});
        needed += list.back().required ? 1 : 0;
    };
    if (declared) {
        for (const auto& [key, schema] : properties->get_object()) {
            const std::string_view name(key.data(), key.size());
            const bool never = schema.is_bool() && !schema.get_bool();
            if (!never || is_required(name)) add(name, schema, fmt::format("{}/properties/{}", kind.place, name));
        }
    }
    for (size_t i = 0; demanded && i < required->get_array().size(); ++i) {
        const json::value& name = required->get_array()[i];
        if (!name.is_string()) refuse_keyword(kind.place, "required", "expected a list of names");
        if (declared && properties->get_object().contains(name.get_string())) continue;
        if (none) refuse_keyword(kind.place, "required", "names a property that is not declared");
        add(std::string_view(name.get_string()), additional ? *additional : json::value(true),
            kind.place + "/additionalProperties");
    }
    if (const auto least = count_at(kind, "minProperties"); least && *least > needed)
        refuse_keyword(kind.place, "minProperties", "values in the model's format of calls are not held to it");
    if (const auto most = count_at(kind, "maxProperties"); most && *most < list.size())
        refuse_keyword(kind.place, "maxProperties", "values in the model's format of calls are not held to it");
    return new_rule(fmt::format("\"{{\" {} \"}}\"", members(list, comma())));
}

std::string ValueRules::map_of(const SchemaKind& kind) {
    const json::value* const additional = kind.keywords.if_contains("additionalProperties");
    const size_t least = count_at(kind, "minProperties").value_or(0);
    const auto most = count_at(kind, "maxProperties");
    check_order(kind, least, most, "maxProperties");
    // Names may come twice.
    if (least > 1) refuse_keyword(kind.place, "minProperties", "values are not held to more than one");
    if (most == size_t{0}) return "\"{}\"";
    const std::string value_rule = additional ? value(*additional, kind.place + "/additionalProperties") : any_value();
    const std::string pair = new_rule(fmt::format("{} {} ({})", any_key(), lark_text(colon()), value_rule));
    const std::string all = several(pair, 1, most);
    return new_rule(fmt::format("\"{{\" {} \"}}\"", least > 0 ? all : "(" + all + ")?"));
}

std::string ValueRules::members(std::span<const Member> list, std::string_view separator) {
    std::string first, more;  // what follows the member, if none stood before it and if one did
    bool may_be_none = true;
    for (const Member& member : list) may_be_none &= !member.required;
    for (size_t i = list.size(); i-- > 0;) {
        const std::string one = new_rule(list[i].expression);
        const std::string here = new_rule(fmt::format("{} {}", one, more));
        if (list[i].required) {
            first = here;
            more = new_rule(fmt::format("{} {}", lark_text(separator), here));
        } else {
            first = first.empty() ? here : new_rule(fmt::format("{} | {}", here, first));
            more = new_rule(more.empty() ? fmt::format("({} {})?", lark_text(separator), one)
                                         : fmt::format("({} {})? {}", lark_text(separator), one, more));
        }
    }
    if (first.empty()) return "";
    return may_be_none ? "(" + first + ")?" : first;
}

std::string ValueRules::bare_key(std::string_view name, const std::string& place) const {
    const bool good = !name.empty() && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
               c == '-';
    });
    if (!good)
        refuse_keyword(place, "", "in the model's format of calls names have letters, digits, '_', '.' and '-' alone");
    return std::string(name);
}

std::string ValueRules::key_of(std::string_view name, const std::string& place) const {
    if (syntax_ == ValueSyntax::kGemma) return lark_text(bare_key(name, place) + std::string(colon()));
    const std::string written = text::json_string(name) + std::string(colon());
    if (!forbidden_.empty() && written.find(forbidden_) != written.npos)
        refuse_keyword(place, "", fmt::format("has {}, which ends a value in the model's format of calls", forbidden_));
    return lark_text(written);
}

std::string ValueRules::any_key() {
    if (syntax_ == ValueSyntax::kGemma) return "/[A-Za-z0-9_.-]{1,64}/";
    return text_of({ValueKind::kText, {}, {}, ""});
}

std::string ValueRules::constant_of(const json::value& value, const std::string& place) const {
    const bool python = syntax_ == ValueSyntax::kPython;
    if (value.is_null()) return python ? "\"None\"" : "\"null\"";
    if (value.is_bool())
        return value.get_bool() ? (python ? "\"True\"" : "\"true\"") : (python ? "\"False\"" : "\"false\"");
    if (value.is_double()) return lark_text(fmt::format("{}", value.get_double()));
    if (value.is_int64()) return lark_text(fmt::format("{}", value.get_int64()));
    if (value.is_uint64()) return lark_text(fmt::format("{}", value.get_uint64()));
    if (value.is_string()) {
        const std::string_view text = value.get_string();
        if (syntax_ == ValueSyntax::kGemma) {
            if (text.find(kGemmaQuote) != text.npos) refuse_keyword(place, "", "has a quote of the format");
            return fmt::format("{} {}", lark_markers(kGemmaQuote, tokenizer_), bare_constant(text, kGemmaQuote, place));
        }
        const std::string written = text::json_string(text);
        if (!forbidden_.empty() && written.find(forbidden_) != written.npos)
            refuse_keyword(place, "", fmt::format("has {}, which ends a value in the model's format", forbidden_));
        return lark_text(written);
    }
    std::string made;
    if (value.is_array()) {
        for (const json::value& one : value.get_array())
            made += fmt::format("{}{} ", made.empty() ? "" : lark_text(comma()) + " ", constant_of(one, place));
        return fmt::format("\"[\" {}\"]\"", made);
    }
    for (const auto& [key, one] : value.get_object())
        made += fmt::format("{}{} {} ", made.empty() ? "" : lark_text(comma()) + " ",
                            key_of(std::string_view(key.data(), key.size()), place), constant_of(one, place));
    return fmt::format("\"{{\" {}\"}}\"", made);
}

}  // namespace tessera::structure
