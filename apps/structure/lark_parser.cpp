#include "apps/structure/lark_parser.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tessera::structure {
namespace {

using Kind = GbnfNode::Kind;

constexpr size_t kMostLarkBytes = 256 << 10, kMostLarkDepth = 64;
constexpr uint32_t kMostLarkTimes = 100'000;

constexpr std::pair<std::string_view, std::string_view> kCommon[] = {
    {"DIGIT", R"([0-9])"},
    {"HEXDIGIT", R"([0-9a-fA-F])"},
    {"INT", R"([0-9]+)"},
    {"SIGNED_INT", R"([+-]?[0-9]+)"},
    {"DECIMAL", R"([0-9]+\.[0-9]*|\.[0-9]+)"},
    {"FLOAT", R"([0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"},
    {"SIGNED_FLOAT", R"([+-]?(?:[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))"},
    {"NUMBER", R"((?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"},
    {"SIGNED_NUMBER", R"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"},
    {"ESCAPED_STRING", R"("(?:[^"\\\n]|\\.)*")"},
    {"LCASE_LETTER", R"([a-z])"},
    {"UCASE_LETTER", R"([A-Z])"},
    {"LETTER", R"([a-zA-Z])"},
    {"WORD", R"([a-zA-Z]+)"},
    {"CNAME", R"([_a-zA-Z][_a-zA-Z0-9]*)"},
    {"WS_INLINE", R"([ \t]+)"},
    {"WS", R"([ \t\f\r\n]+)"},
    {"CR", R"(\r)"},
    {"LF", R"(\n)"},
    {"NEWLINE", R"((?:\r?\n)+)"},
};

GbnfNode repetition_of(GbnfNode node, uint32_t least, uint32_t most) {
    if (most == 0) return {};
    GbnfNode made{.kind = Kind::kRepetition, .least = least, .most = most};
    made.parts.push_back(std::move(node));
    return made;
}

GbnfNode joined_nodes(Kind kind, std::vector<GbnfNode> parts) {
    if (parts.size() == 1) return std::move(parts.front());
    return {.kind = kind, .parts = std::move(parts)};
}

GbnfNode class_of(CodePoints ranges) {
    return {.kind = Kind::kClass, .ranges = without_surrogates(joined(std::move(ranges)))};
}

CodePoints both_cases(CodePoints ranges) {
    CodePoints made = ranges;
    for (const auto& [first, last] : ranges) {
        for (uint32_t c = 'a'; c <= 'z'; ++c) {
            if (c >= first && c <= last) made.emplace_back(c - 32, c - 32);
            if (c - 32 >= first && c - 32 <= last) made.emplace_back(c, c);
        }
    }
    return made;
}

// Reads characters, and says where something is wrong.
class LarkReader {
  public:
    LarkReader(std::string_view text, size_t line) : text_(text), line_(line) {}

    [[noreturn]] void refuse(const std::string& what) const {
        const auto line = line_ + std::ranges::count(text_.substr(0, std::min(at_, text_.size())), '\n');
        fail(TSR_INVALID_ARGUMENT, "line {} of the Lark grammar: {}", line, what);
    }
    bool done() const { return at_ >= text_.size(); }
    bool sees(std::string_view text) const { return text_.substr(at_).starts_with(text); }
    bool takes(std::string_view text) {
        if (!sees(text)) return false;
        at_ += text.size();
        return true;
    }
    char next() {
        if (done()) refuse("it ends too early");
        return text_[at_++];
    }
    uint32_t code_point() {
        const auto c = static_cast<unsigned char>(next());
        const int more = c < 0x80 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
        uint32_t value = c < 0x80 ? c : c & (0x3fu >> more);
        for (int i = 0; i < more; ++i) value = value << 6 | (static_cast<unsigned char>(next()) & 0x3fu);
        return value;
    }
    uint32_t hexadecimal(size_t digits) {
        uint32_t value = 0;
        for (size_t i = 0; i < digits; ++i) {
            const char c = next(), low = static_cast<char>(c | 0x20);
            if (c >= '0' && c <= '9')
                value = value * 16 + static_cast<uint32_t>(c - '0');
            else if (low >= 'a' && low <= 'f')
                value = value * 16 + static_cast<uint32_t>(low - 'a' + 10);
            else
                refuse(fmt::format("expected {} hexadecimal digits", digits));
        }
        if (value > kLastCodePoint || (value >= 0xd800 && value < 0xe000)) refuse("an escape is no character");
        return value;
    }
    std::optional<uint32_t> number() {
        const size_t begin = at_;
        uint32_t value = 0;
        for (; !done() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
            value = value * 10 + static_cast<uint32_t>(text_[at_] - '0');
            if (value > kMostLarkTimes) refuse(fmt::format("more than {} repetitions", kMostLarkTimes));
        }
        return at_ > begin ? std::optional(value) : std::nullopt;
    }
    // `count`: of those that follow one another. Each is a node around the one before.
    void check_repetitions(size_t count) const {
        if (count > kMostLarkDepth)
            refuse(fmt::format("more than {} repetitions follow one another; put them into one", kMostLarkDepth));
    }
    // Reads "*", "+" or "?" and repeats the node by it. Returns false if none of them follows.
    bool repeats(GbnfNode& node) {
        if (takes("*")) {
            node = repetition_of(std::move(node), 0, GbnfNode::kUnbounded);
        } else if (takes("+")) {
            node = repetition_of(std::move(node), 1, GbnfNode::kUnbounded);
        } else if (takes("?")) {
            node = repetition_of(std::move(node), 0, 1);
        } else {
            return false;
        }
        return true;
    }
    // After a backslash; nothing: it is no escape of one character.
    std::optional<uint32_t> escape(char c) {
        switch (c) {
            case 'n':
                return '\n';
            case 'r':
                return '\r';
            case 't':
                return '\t';
            case 'f':
                return '\f';
            case 'v':
                return '\v';
            case '0':
                return 0;
            case 'x':
                return hexadecimal(2);
            case 'u':
                return hexadecimal(4);
            case 'U':
                return hexadecimal(8);
            default:
                break;
        }
        const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (word || (c & 0x80)) return std::nullopt;
        return static_cast<unsigned char>(c);
    }

  protected:
    const std::string_view text_;
    const size_t line_;
    size_t at_ = 0;
};

class RegexReader : public LarkReader {
  public:
    RegexReader(std::string_view text, std::string_view flags, size_t line) : LarkReader(text, line) {
        for (const char flag : flags) {
            if (flag == 'i')
                any_case_ = true;
            else if (flag == 's')
                any_dot_ = true;
            else if (flag != 'u' && flag != 'm')
                refuse(fmt::format("the flag '{}' of a regular expression is not supported", flag));
        }
    }

    GbnfNode run() {
        takes("^");
        GbnfNode made = choice(0);
        if (!done()) refuse("a regular expression has a ) too many");
        return made;
    }

  private:
    GbnfNode choice(size_t depth) {
        if (depth > kMostLarkDepth) refuse(fmt::format("groups are nested deeper than {}", kMostLarkDepth));
        std::vector<GbnfNode> parts;
        do {
            std::vector<GbnfNode> sequence;
            while (!done() && !sees("|") && !sees(")")) {
                if (depth == 0 && at_ + 1 == text_.size() && takes("$")) break;
                sequence.push_back(repetition(atom(depth)));
            }
            parts.push_back(joined_nodes(Kind::kSequence, std::move(sequence)));
        } while (takes("|"));
        return joined_nodes(Kind::kChoice, std::move(parts));
    }

    GbnfNode repetition(GbnfNode node) {
        for (size_t count = 0;; ++count) {
            check_repetitions(count);
            if (repeats(node)) {
                takes("?");  // matches the same texts
                continue;
            }
            if (takes("{")) {
                const auto least = number();
                auto most = least;
                if (takes(",")) {
                    most = number();
                    if (!most) most = GbnfNode::kUnbounded;
                }
                if (!takes("}") || !most || least.value_or(0) > *most) refuse("a repetition {...} is invalid");
                node = repetition_of(std::move(node), least.value_or(0), *most);
            } else {
                return node;
            }
            takes("?");  // matches the same texts
        }
    }

    GbnfNode atom(size_t depth) {
        if (takes("(")) {
            for (const std::string_view look : {"?=", "?!", "?<=", "?<!"})
                if (sees(look)) refuse("look-around in a regular expression is not supported");
            if (takes("?P<") || takes("?<")) {
                while (next() != '>') {
                }
            } else if (!takes("?:") && sees("?")) {
                refuse("a group (?...) of this kind is not supported");
            }
            GbnfNode made = choice(depth + 1);
            if (!takes(")")) refuse("expected ) in a regular expression");
            return made;
        }
        if (takes("[")) return char_class();
        if (takes(".")) return class_of(any_dot_ ? CodePoints{{0, kLastCodePoint}} : others_than({{'\n', '\n'}}));
        if (sees("^") || sees("$")) refuse("^ and $ within a regular expression are not supported");
        if (sees("*") || sees("+") || sees("?")) refuse("a regular expression repeats nothing");
        CodePoints ranges;
        if (takes("\\"))
            ranges = escaped().first;
        else
            ranges = {one(code_point())};
        return class_of(any_case_ ? both_cases(std::move(ranges)) : std::move(ranges));
    }

    static std::pair<uint32_t, uint32_t> one(uint32_t value) { return {value, value}; }

    // A class like \d, or one character with true.
    std::pair<CodePoints, bool> escaped() {
        const char c = next();
        const CodePoints digits{{'0', '9'}}, words{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}},
            spaces{{'\t', '\r'}, {' ', ' '}};
        switch (c) {
            case 'd':
                return {digits, false};
            case 'D':
                return {others_than(digits), false};
            case 'w':
                return {words, false};
            case 'W':
                return {others_than(words), false};
            case 's':
                return {spaces, false};
            case 'S':
                return {others_than(spaces), false};
            default:
                break;
        }
        const auto value = escape(c);
        if (!value) refuse(fmt::format("the escape \\{} is not supported", printable(std::string_view(&c, 1), 4)));
        return {{one(*value)}, true};
    }

    GbnfNode char_class() {
        const bool negated = takes("^");
        CodePoints ranges;
        for (bool first = true; first || !sees("]"); first = false) {
            const auto [item, single] = class_item();
            if (single && sees("-") && !sees("-]")) {
                next();
                const auto [last, is_one] = class_item();
                if (!is_one || last[0].first < item[0].first) refuse("a range of characters is invalid");
                ranges.emplace_back(item[0].first, last[0].first);
            } else {
                ranges.insert(ranges.end(), item.begin(), item.end());
            }
        }
        next();
        if (any_case_) ranges = both_cases(std::move(ranges));
        ranges = joined(std::move(ranges));
        GbnfNode made = class_of(negated ? others_than(ranges) : ranges);
        if (made.ranges.empty()) refuse("a class of no characters");
        return made;
    }

    std::pair<CodePoints, bool> class_item() {
        if (takes("\\")) return escaped();
        return {{one(code_point())}, true};
    }

    bool any_case_ = false, any_dot_ = false;
};

class LarkParser : public LarkReader {
  public:
    explicit LarkParser(std::string_view text) : LarkReader(text, 1) {}

    Gbnf run() {
        for (skip(true); !done(); skip(true)) {
            if (takes("%"))
                directive();
            else
                rule();
        }
        for (const auto& [name, index] : numbers_)
            if (!defined_[index]) refuse(fmt::format("'{}' is used and not defined", name));
        const auto start = numbers_.find("start");
        if (start == numbers_.end()) refuse("there is no rule 'start'");
        made_.root = start->second;
        if (ignored_.empty()) return std::move(made_);
        // Between any two terminals, and at both ends.
        const size_t between = number_of(" ignored");
        made_.rules[between].node =
            repetition_of(joined_nodes(Kind::kChoice, std::move(ignored_)), 0, GbnfNode::kUnbounded);
        for (size_t i = 0; i < made_.rules.size(); ++i)
            if (is_rule(made_.rules[i].name)) put_between(made_.rules[i].node, between);
        const size_t root = number_of(" whole");
        GbnfNode whole;
        whole.parts = {{.kind = Kind::kReference, .rule = made_.root}, {.kind = Kind::kReference, .rule = between}};
        made_.rules[root].node = std::move(whole);
        made_.root = root;
        return std::move(made_);
    }

  private:
    static bool is_letter(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    }
    static bool is_rule(std::string_view name) {
        const size_t at = name.find_first_not_of('_');
        return at != name.npos && name[at] >= 'a' && name[at] <= 'z';
    }

    // Terminals in a rule get what is ignored before them.
    void put_between(GbnfNode& node, size_t between) const {
        const bool terminal = node.kind == Kind::kText || node.kind == Kind::kClass || node.regular ||
                              (node.kind == Kind::kReference && !is_rule(made_.rules[node.rule].name));
        if (!terminal) {
            for (GbnfNode& part : node.parts) put_between(part, between);
            return;
        }
        GbnfNode both;
        both.parts = {{.kind = Kind::kReference, .rule = between}, std::move(node)};
        node = std::move(both);
    }

    void skip(bool lines) {
        while (!done()) {
            if (sees("//") || sees("#")) {
                while (!done() && !sees("\n")) ++at_;
            } else if (sees(" ") || sees("\t") || sees("\r") || (lines && sees("\n")) || sees("\\\n")) {
                ++at_;
            } else {
                return;
            }
        }
    }

    // A line that goes on with | belongs to the same rule.
    bool takes_or() {
        const size_t before = at_;
        skip(true);
        if (takes("|")) return true;
        at_ = before;
        return false;
    }

    std::string name() {
        const size_t begin = at_;
        while (!done() && is_letter(text_[at_])) ++at_;
        if (at_ == begin) refuse(fmt::format("expected a name, found '{}'", printable(text_.substr(at_), 20)));
        return std::string(text_.substr(begin, at_ - begin));
    }

    size_t number_of(const std::string& name) {
        const auto [found, added] = numbers_.emplace(name, made_.rules.size());
        if (added) {
            made_.rules.push_back({name, {}});
            defined_.push_back(false);
        }
        return found->second;
    }

    void define(const std::string& name, GbnfNode node) {
        const size_t index = number_of(name);
        if (defined_[index]) refuse(fmt::format("'{}' is defined twice", name));
        made_.rules[index].node = std::move(node);
        defined_[index] = true;
    }

    void directive() {
        const std::string word = name();
        skip(false);
        if (word == "ignore") {
            ignored_.push_back(choice(0));
        } else if (word == "import") {
            const std::string module = name();
            if (module != "common") refuse(fmt::format("only %import common.NAME is supported, found '{}'", module));
            skip(false);
            if (takes(".")) {
                const std::string from = name();
                skip(false);
                std::string as = from;
                if (takes("->")) {
                    skip(false);
                    as = name();
                }
                import(from, as);
            } else if (takes("(")) {
                do {
                    skip(true);
                    const std::string from = name();
                    import(from, from);
                    skip(true);
                } while (takes(","));
                if (!takes(")")) refuse("expected ) after names");
            } else {
                refuse("expected %import common.NAME");
            }
        } else {
            refuse(fmt::format("%{} is not supported", word));
        }
        end_line();
    }

    void import(const std::string& from, const std::string& as) {
        const auto* const found =
            std::ranges::find(kCommon, from, &std::pair<std::string_view, std::string_view>::first);
        if (found == std::end(kCommon)) refuse(fmt::format("common has no terminal '{}'", printable(from, 40)));
        define(as, RegexReader(found->second, "", 1).run());
    }

    void rule() {
        while (takes("?") || takes("!")) {
        }
        const std::string its = name();
        if (sees("{")) refuse("templates are not supported");
        if (takes(".")) {
            takes("-");
            number();
        }
        skip(false);
        if (!takes(":")) refuse(fmt::format("expected : after '{}'", its));
        skip(true);
        define(its, choice(0));
        end_line();
    }

    void end_line() {
        skip(false);
        if (!done() && !sees("\n"))
            refuse(fmt::format("expected the end of the line, found '{}'", printable(text_.substr(at_), 20)));
    }

    GbnfNode choice(size_t depth) {
        if (depth > kMostLarkDepth) refuse(fmt::format("groups are nested deeper than {}", kMostLarkDepth));
        std::vector<GbnfNode> parts;
        do {
            skip(false);
            parts.push_back(sequence(depth));
        } while (takes_or());
        return joined_nodes(Kind::kChoice, std::move(parts));
    }

    GbnfNode sequence(size_t depth) {
        std::vector<GbnfNode> parts;
        for (;;) {
            skip(depth > 0);
            if (takes("->")) {
                skip(false);
                name();
                skip(depth > 0);
                break;
            }
            auto item = atom(depth);
            if (!item) break;
            parts.push_back(repetition(std::move(*item)));
        }
        return joined_nodes(Kind::kSequence, std::move(parts));
    }

    GbnfNode repetition(GbnfNode node) {
        for (size_t count = 0;; ++count) {
            check_repetitions(count);
            if (repeats(node)) continue;
            const size_t before = at_;
            skip(false);
            const bool braces = takes("{");
            if (!braces && !takes("~")) {
                at_ = before;
                return node;
            }
            skip(false);
            const auto least = number();
            auto most = least;
            if (takes(braces ? "," : "..")) {
                most = number();
                if (!most && braces) most = GbnfNode::kUnbounded;
            }
            if (!least || !most || *least > *most || (braces && !takes("}"))) refuse("a repetition is invalid");
            node = repetition_of(std::move(node), *least, *most);
        }
    }

    std::optional<GbnfNode> atom(size_t depth) {
        if (done()) return std::nullopt;
        if (takes("(")) {
            GbnfNode made = choice(depth + 1);
            skip(true);
            if (!takes(")")) refuse("expected )");
            return made;
        }
        if (takes("[")) {
            GbnfNode made = choice(depth + 1);
            skip(true);
            if (!takes("]")) refuse("expected ]");
            return repetition_of(std::move(made), 0, 1);
        }
        if (takes("\"")) return literal();
        if (takes("/")) return regex();
        if (sees("<")) refuse("tokens <...> are not supported");
        if (sees("%")) refuse("%json and its like within a rule are not supported");
        if (sees("?") || sees("*") || sees("+")) refuse("nothing is there to be repeated");
        if (!is_letter(text_[at_])) return std::nullopt;
        const std::string referred = name();
        if (sees("{")) refuse("templates are not supported; write NAME {m,n} with a space");
        return GbnfNode{.kind = Kind::kReference, .rule = number_of(referred)};
    }

    std::u32string quoted() {
        std::u32string made;
        while (!takes("\"")) {
            if (done() || sees("\n")) refuse("a string does not end");
            if (!takes("\\")) {
                made += static_cast<char32_t>(code_point());
                continue;
            }
            const char c = next();
            const auto value = escape(c);
            if (!value) refuse(fmt::format("the escape \\{} is not known", printable(std::string_view(&c, 1), 4)));
            made += static_cast<char32_t>(*value);
        }
        return made;
    }

    GbnfNode literal() {
        const std::u32string text = quoted();
        if (takes("..")) {
            if (!takes("\"")) refuse("expected a string after ..");
            const std::u32string last = quoted();
            if (text.size() != 1 || last.size() != 1 || last[0] < text[0]) refuse("a range of characters is invalid");
            return class_of({{text[0], last[0]}});
        }
        if (!takes("i")) return {.kind = Kind::kText, .text = text};
        std::vector<GbnfNode> parts;
        for (const char32_t c : text) parts.push_back(class_of(both_cases({{c, c}})));
        GbnfNode made = joined_nodes(Kind::kSequence, std::move(parts));
        made.regular = true;
        return made;
    }

    GbnfNode regex() {
        const size_t begin = at_;
        const auto line = line_ + static_cast<size_t>(std::ranges::count(text_.substr(0, begin), '\n'));
        std::string pattern;
        while (!takes("/")) {
            if (done() || sees("\n")) refuse("a regular expression does not end");
            const char c = next();
            if (c == '\\' && sees("/")) continue;
            pattern += c;
            if (c == '\\') pattern += next();
        }
        const size_t flags = at_;
        while (!done() && text_[at_] >= 'a' && text_[at_] <= 'z') ++at_;
        GbnfNode made = RegexReader(pattern, text_.substr(flags, at_ - flags), line).run();
        made.regular = true;
        return made;
    }

    Gbnf made_;
    std::vector<bool> defined_;
    std::map<std::string, size_t> numbers_;
    std::vector<GbnfNode> ignored_;
};

constexpr std::pair<uint32_t, char32_t> kEscapes[] = {{'\n', U'n'}, {'\r', U'r'}, {'\t', U't'}, {'\b', U'b'},
                                                      {'\f', U'f'}, {'"', U'"'},  {'\\', U'\\'}};

GbnfNode text_node(std::u32string text) {
    return {.kind = Kind::kText, .text = std::move(text)};
}

void escape_node(GbnfNode& node) {
    if (node.kind == Kind::kText) {
        std::u32string made;
        for (const char32_t c : node.text) {
            const auto* const escape = std::ranges::find(kEscapes, c, &std::pair<uint32_t, char32_t>::first);
            if (escape != std::end(kEscapes))
                made += {U'\\', escape->second};
            else if (c < 0x20)
                fail(TSR_INVALID_ARGUMENT, "the grammar has a control character U+{:04X} that cannot be written",
                     static_cast<uint32_t>(c));
            else
                made += c;
        }
        node.text = std::move(made);
    } else if (node.kind == Kind::kClass) {
        const auto has = [&](uint32_t c) {
            return std::ranges::any_of(node.ranges, [&](const auto& one) { return one.first <= c && c <= one.second; });
        };
        std::vector<GbnfNode> parts;
        for (const auto& [c, escape] : kEscapes)
            if (has(c)) parts.push_back(text_node({U'\\', escape}));
        // Those that stand for themselves.
        CodePoints plain;
        for (const auto& [first, last] : node.ranges) {
            uint32_t begin = std::max<uint32_t>(first, 0x20);
            for (const uint32_t c : {uint32_t{'"'}, uint32_t{'\\'}}) {
                if (c < begin || c > last) continue;
                if (c > begin) plain.emplace_back(begin, c - 1);
                begin = c + 1;
            }
            if (begin <= last) plain.emplace_back(begin, last);
        }
        if (!plain.empty()) parts.push_back({.kind = Kind::kClass, .ranges = std::move(plain)});
        if (parts.empty()) fail(TSR_INVALID_ARGUMENT, "the grammar has a class of characters that cannot be written");
        node = joined_nodes(Kind::kChoice, std::move(parts));
        return;
    }
    for (GbnfNode& part : node.parts) escape_node(part);
}

}  // namespace

Gbnf parse_lark(std::string_view text) {
    if (text.size() > kMostLarkBytes)
        fail(TSR_INVALID_ARGUMENT, "the Lark grammar has {} bytes; at most {} are accepted", text.size(),
             kMostLarkBytes);
    if (!is_utf8(text)) fail(TSR_INVALID_ARGUMENT, "the Lark grammar is not UTF-8");
    return LarkParser(text).run();
}

void write_in_json(Gbnf& grammar) {
    for (GbnfRule& rule : grammar.rules) escape_node(rule.node);
}

}  // namespace tessera::structure
