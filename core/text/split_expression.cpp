#include "core/text/split_expression.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/text/utf8.hpp"

#include <utility>

namespace tessera::text {
namespace {

constexpr int kMostRepeats = 1024;
constexpr int kDeepest = 64;

class Parser {
  public:
    explicit Parser(std::string_view text) : text_(text) {}

    SplitNode parse() {
        SplitNode node = alternatives(0);
        if (at_ != text_.size()) refuse("a ')' that closes nothing");
        return node;
    }

  private:
    using Kind = SplitNode::Kind;

    [[noreturn]] void refuse(std::string_view why) const {
        fail(TSR_INVALID_ARGUMENT, "pre-tokenizer expression, byte {}: {} in `{}`", at_, why, printable(text_, 200));
    }

    bool take(std::string_view part) {
        if (!text_.substr(at_).starts_with(part)) return false;
        at_ += part.size();
        return true;
    }

    void expect(std::string_view part) {
        if (!take(part)) refuse(fmt::format("expected '{}'", part));
    }

    bool at_end() const { return at_ >= text_.size(); }

    uint32_t character() {
        if (at_end()) refuse("the expression ends too early");
        const Utf8Step step = utf8_step(text_.substr(at_));
        if (step.kind != Utf8Kind::kValid) refuse("not UTF-8");
        const uint32_t code = utf8_decode(text_.substr(at_), step.length);
        at_ += step.length;
        return code;
    }

    SplitNode alternatives(int depth) {
        if (depth > kDeepest) refuse("groups are nested too deeply");
        SplitNode all{Kind::kAlternative};
        do all.parts.push_back(sequence(depth));
        while (take("|"));
        return all.parts.size() == 1 ? std::move(all.parts.front()) : all;
    }

    SplitNode sequence(int depth) {
        SplitNode all{Kind::kSequence};
        while (!at_end() && text_[at_] != '|' && text_[at_] != ')') all.parts.push_back(repeated(item(depth)));
        return all;
    }

    int number() {
        int value = 0;
        const size_t from = at_;
        for (; !at_end() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
            value = value * 10 + (text_[at_] - '0');
            if (value > kMostRepeats) refuse("too many repetitions");
        }
        if (at_ == from) refuse("expected a number");
        return value;
    }

    SplitNode repeated(SplitNode node) {
        int least = 0, most = SplitNode::kUnbounded;
        if (take("?")) {
            most = 1;
        } else if (take("+")) {
            least = 1;
        } else if (take("{")) {
            least = most = number();
            if (take(",")) most = !at_end() && text_[at_] == '}' ? SplitNode::kUnbounded : number();
            expect("}");
            if (most != SplitNode::kUnbounded && most < least) refuse("a range of repetitions from more to fewer");
        } else if (!take("*")) {
            return node;
        }
        if (!at_end() && (text_[at_] == '+' || text_[at_] == '?' || text_[at_] == '*' || text_[at_] == '{'))
            refuse("possessive, lazy and repeated repetitions are not understood");
        SplitNode out{Kind::kRepeat};
        out.parts.push_back(std::move(node));
        out.least = least;
        out.most = most;
        return out;
    }

    SplitNode look(Kind kind, int depth) {
        const SplitNode inside = alternatives(depth + 1);
        expect(")");
        const bool one = inside.kind == Kind::kSequence && inside.parts.size() == 1;
        const SplitNode& set = one ? inside.parts.front() : inside;
        if (set.kind != Kind::kSet) refuse("only one character can be looked at");
        return {kind, set.set};
    }

    SplitNode item(int depth) {
        if (take("(?=")) return look(Kind::kNext, depth);
        if (take("(?!")) return look(Kind::kNotNext, depth);
        if (take("(?<=")) return look(Kind::kBefore, depth);
        if (take("(?<!")) return look(Kind::kNotBefore, depth);
        const bool any_case = take("(?i:");
        if (any_case || take("(?:") || take("(")) {
            if (!any_case && !at_end() && text_[at_] == '?') refuse("this kind of group is not understood");
            const bool before = std::exchange(any_case_, any_case_ || any_case);
            SplitNode inside = alternatives(depth + 1);
            any_case_ = before;
            expect(")");
            return inside;
        }
        if (take("$")) return {Kind::kNotNext, CharSet(0, CharSet::kLast)};
        if (take("[")) return {Kind::kSet, char_class(depth)};
        for (const char special : std::string_view("*+?{}]^."))
            if (text_[at_] == special) refuse(fmt::format("'{}' is not understood here", special));
        return {Kind::kSet, with_case(character_or_escape())};
    }

    // Letters of ASCII, and what folds to them.
    CharSet with_case(CharSet set) const {
        if (!any_case_ || set.ranges().size() != 1) return set;
        const auto [first, last] = set.ranges().front();
        const uint32_t lower = first | 0x20;
        if (first != last || lower < 'a' || lower > 'z' || first > 'z') return set;
        set.add({lower, lower});
        set.add({lower & ~0x20u, lower & ~0x20u});
        if (lower == 's') set.add({0x17F, 0x17F});
        if (lower == 'k') set.add({0x212A, 0x212A});
        return set;
    }

    CharSet character_or_escape() {
        if (!take("\\")) {
            const uint32_t code = character();
            return {code, code};
        }
        if (take("p{")) return property();
        if (take("P{")) return property().complement();
        if (take("s")) return CharSet::white_space();
        if (take("S")) return CharSet::white_space().complement();
        if (take("d")) return CharSet::of_property("Nd");
        const auto one = [](uint32_t code) { return CharSet(code, code); };
        if (take("r")) return one('\r');
        if (take("n")) return one('\n');
        if (take("t")) return one('\t');
        if (take("x{")) {
            uint32_t code = 0;
            while (!take("}")) {
                const uint32_t c = character();
                const uint32_t digit = c >= '0' && c <= '9'   ? c - '0'
                                       : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                       : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                              : 16;
                code = code * 16 + digit;
                if (digit > 15 || code > CharSet::kLast) refuse("not the number of a character");
            }
            return one(code);
        }
        const uint32_t code = character();
        if ((code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') || (code >= 'a' && code <= 'z'))
            refuse("this escape is not understood");
        return one(code);
    }

    CharSet property() {
        const size_t close = text_.find('}', at_);
        if (close == std::string_view::npos) refuse("expected '}'");
        const std::string_view name = text_.substr(at_, close - at_);
        at_ = close + 1;
        return CharSet::of_property(name);
    }

    // After its '['.
    CharSet char_class(int depth) {
        if (depth > kDeepest) refuse("classes are nested too deeply");
        const bool negative = take("^");
        CharSet set;
        while (!take("]")) {
            if (take("&&")) {
                set = set.intersection(rest_of_class(depth));
                break;
            }
            if (take("[")) {
                set.add(char_class(depth + 1));
                continue;
            }
            set.add(range());
        }
        return negative ? set.complement() : set;
    }

    // After "&&", as far as the ']' that closes the class.
    CharSet rest_of_class(int depth) {
        CharSet set;
        while (!take("]")) {
            if (text_.substr(at_).starts_with("&&")) refuse("one && in a class is the most");
            if (take("[")) {
                set.add(char_class(depth + 1));
            } else {
                set.add(range());
            }
        }
        return set;
    }

    CharSet range() {
        CharSet first = character_or_escape();
        const bool single = first.ranges().size() == 1 && first.ranges()[0].first == first.ranges()[0].last;
        const std::string_view rest = text_.substr(at_);
        if (!single || rest.size() < 2 || rest[0] != '-' || rest[1] == ']') return with_case(std::move(first));
        if (any_case_) refuse("a range in (?i:...) is not understood");
        at_ += 1;
        const CharSet last = character_or_escape();
        if (last.ranges().size() != 1 || last.ranges()[0].first != last.ranges()[0].last ||
            last.ranges()[0].first < first.ranges()[0].first)
            refuse("a range that does not go up");
        return {first.ranges()[0].first, last.ranges()[0].first};
    }

    std::string_view text_;
    size_t at_ = 0;
    bool any_case_ = false;
};

}  // namespace

SplitNode parse_split_expression(std::string_view expression) {
    return Parser(expression).parse();
}

}  // namespace tessera::text
