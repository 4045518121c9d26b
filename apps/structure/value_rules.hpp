// Values of schemas as they stand in calls whose arguments are not JSON, as rules of a Lark grammar.
#pragma once

#include "apps/structure/schema_kinds.hpp"
#include "core/base/error.hpp"
#include "core/text/tokenizer.hpp"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::structure {

// kJson: as Python's json module writes it. kPython: True, False and None for true, false and null. kGemma: no blanks,
// keys without quotes, texts between <|"|>.
enum class ValueSyntax : uint8_t { kJson, kPython, kGemma };

// All but take_rules() give an expression. They throw Error(TSR_INVALID_ARGUMENT) that names the keyword and its place
// for what values cannot be held to. What they let through is valid, and not all of that: members stand in the order of
// "properties", those that are not declared are left out, and numbers have at most 15 digits before the point.
class ValueRules {
  public:
    // `root`: the whole schema, as read_schema() returns it, which references refer to; both outlive this.
    // `forbidden`: stands in no value; empty: anything may. `prefix`: small letters and digits, with which names of
    // rules begin.
    ValueRules(const boost::json::value& root, ValueSyntax syntax, std::string_view forbidden, std::string prefix,
               const text::Tokenizer& tokenizer)
        : root_(root), syntax_(syntax), forbidden_(forbidden), prefix_(std::move(prefix)), tokenizer_(tokenizer) {}

    std::string value(const boost::json::value& schema, const std::string& place);
    std::string value(const SchemaKind& kind);
    std::string any_value();

    // A text as it is and `close`, which ends it. `conditions`: of terminals, beside those of the schema.
    std::string bare_text(const SchemaKind& text, std::span<const std::string> conditions, std::string_view close);
    // A text that is given, and `close`.
    std::string bare_constant(std::string_view text, std::string_view close, const std::string& place) const;

    struct Member {
        std::string expression;
        bool required = true;
    };
    // The members in this order, those that are not required perhaps missing.
    std::string members(std::span<const Member> list, std::string_view separator);
    // A key without quotes, as kGemma has it. Throws for one with other characters than names have.
    std::string bare_key(std::string_view name, const std::string& place) const;

    // All rules that the expressions need.
    std::string take_rules() { return std::move(rules_); }

    // Calls `make`; where it throws an Error the rules that it has made are dropped.
    template <typename Make>
    auto attempt(const Make& make) {
        const auto references = references_;
        const std::string any = any_;
        const size_t bytes = rules_.size();
        try {
            return make();
        } catch (const Error&) {
            references_ = references;
            any_ = any;
            rules_.resize(bytes);
            throw;
        }
    }

  private:
    std::string new_rule(std::string_view body);
    std::string text_of(const SchemaKind& kind);
    std::string number_of(const SchemaKind& kind) const;
    std::string list_of(const SchemaKind& kind);
    std::string object_of(const SchemaKind& kind);
    std::string several(const std::string& rule, size_t least, std::optional<size_t> most) const;
    std::string map_of(const SchemaKind& kind);
    std::string key_of(std::string_view name, const std::string& place) const;
    std::string any_key();
    std::string constant_of(const boost::json::value& value, const std::string& place) const;
    std::string delimited(std::string_view open, std::vector<std::string> conditions, std::string_view close);
    std::string_view comma() const { return syntax_ == ValueSyntax::kGemma ? "," : ", "; }
    std::string_view colon() const { return syntax_ == ValueSyntax::kGemma ? ":" : ": "; }

    const boost::json::value& root_;
    const ValueSyntax syntax_;
    const std::string forbidden_, prefix_;
    const text::Tokenizer& tokenizer_;
    std::map<std::string, std::string, std::less<>> references_;  // names of their rules
    std::string any_;                                             // the rule of any value
    std::string rules_;
    size_t count_ = 0;
};

}  // namespace tessera::structure
