#include "apps/structure/gbnf_parser.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <algorithm>
#include <map>
#include <optional>

namespace tessera::structure {
namespace {

constexpr size_t kMostGbnfBytes = 256 << 10, kMostDepth = 64;
constexpr uint32_t kMostTimes = 100'000;

using Kind = GbnfNode::Kind;

class GbnfParser {
  public:
    explicit GbnfParser(std::string_view text) : text_(text) {}

    Gbnf run() {
        skip(true);
        while (at_ < text_.size()) rule();
        for (const auto& [name, index] : numbers_) {
            if (!defined_[index]) refuse(fmt::format("the rule '{}' is used and not defined", name));
        }
        const auto root = numbers_.find("root");
        if (root == numbers_.end()) refuse("there is no rule 'root', which is the whole");
        made_.root = root->second;
        return std::move(made_);
    }

  private:
    [[noreturn]] void refuse(const std::string& what) const {
        const auto line = 1 + std::ranges::count(text_.substr(0, std::min(at_, text_.size())), '\n');
        fail(TSR_INVALID_ARGUMENT, "line {} of the grammar: {}", line, what);
    }

    bool sees(std::string_view text) const { return text_.substr(at_).starts_with(text); }
    bool takes(std::string_view text) {
        if (!sees(text)) return false;
        at_ += text.size();
        return true;
    }
    char next() {
        if (at_ == text_.size()) refuse("it ends too early");
        return text_[at_++];
    }

    // Blanks and comments, line breaks too where they end nothing.
    void skip(bool lines) {
        while (at_ < text_.size()) {
            const char c = text_[at_];
            if (c == '#') {
                while (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != '\r') ++at_;
            } else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) {
                ++at_;
            } else {
                return;
            }
        }
    }

    static bool is_word(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    }

    std::string name() {
        const size_t begin = at_;
        while (at_ < text_.size() && is_word(text_[at_])) ++at_;
        if (at_ == begin)
            refuse(fmt::format("expected the name of a rule, found '{}'", printable(text_.substr(at_), 20)));
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

    void rule() {
        const std::string its_name = name();
        const size_t index = number_of(its_name);
        if (defined_[index]) refuse(fmt::format("the rule '{}' is defined twice", its_name));
        skip(false);
        if (!takes("::=")) refuse(fmt::format("expected ::= after '{}'", its_name));
        skip(true);
        GbnfNode node = choice(0);
        made_.rules[index].node = std::move(node);
        defined_[index] = true;
        if (at_ < text_.size() && text_[at_] != '\n' && text_[at_] != '\r')
            refuse(fmt::format("expected the end of the line, found '{}'", printable(text_.substr(at_), 20)));
        skip(true);
    }

    GbnfNode choice(size_t depth) {
        if (depth > kMostDepth) refuse(fmt::format("groups are nested deeper than {}", kMostDepth));
        GbnfNode made{.kind = Kind::kChoice};
        do {
            if (!made.parts.empty()) skip(true);
            made.parts.push_back(sequence(depth));
        } while (takes("|"));
        return made.parts.size() == 1 ? std::move(made.parts.front()) : std::move(made);
    }

    GbnfNode sequence(size_t depth) {
        GbnfNode made;
        for (;;) {
            std::optional<GbnfNode> item = term(depth);
            if (!item) break;
            skip(depth > 0);
            size_t repetitions = 0;
            while (auto times = repetition()) {
                // Each is a node around the one before.
                if (++repetitions > kMostDepth)
                    refuse(fmt::format("more than {} repetitions follow one another; put them into one", kMostDepth));
                GbnfNode repeated{.kind = Kind::kRepetition, .least = times->first, .most = times->second};
                repeated.parts.push_back(std::move(*item));
                // No times: nothing, which machine-written grammars have.
                item = times->second == 0 ? GbnfNode{} : std::move(repeated);
                skip(depth > 0);
            }
            made.parts.push_back(std::move(*item));
        }
        return made.parts.size() == 1 ? std::move(made.parts.front()) : std::move(made);
    }

    std::optional<GbnfNode> term(size_t depth) {
        if (at_ == text_.size()) return std::nullopt;
        if (takes("\"")) return literal();
        if (takes("[")) return char_class();
        if (takes(".")) return GbnfNode{.kind = Kind::kClass, .ranges = without_surrogates({{0, kLastCodePoint}})};
        if (takes("(")) {
            skip(true);
            GbnfNode made = choice(depth + 1);
            if (!takes(")")) refuse("expected )");
            return made;
        }
        if (sees("!<")) refuse("!<...>, all tokens but one, is not offered");
        if (takes("<")) {
            const size_t end = text_.find_first_of(">\n", at_);
            if (end == text_.npos || text_[end] != '>') refuse("expected > behind a token");
            GbnfNode made{.kind = Kind::kToken, .token = std::string(text_.substr(at_, end - at_))};
            at_ = end + 1;
            return made;
        }
        if (!is_word(text_[at_])) return std::nullopt;
        const std::string referred = name();
        return GbnfNode{.kind = Kind::kReference, .rule = number_of(referred)};
    }

    std::optional<std::pair<uint32_t, uint32_t>> repetition() {
        if (takes("*")) return std::pair(0u, GbnfNode::kUnbounded);
        if (takes("+")) return std::pair(1u, GbnfNode::kUnbounded);
        if (takes("?")) return std::pair(0u, 1u);
        if (!takes("{")) return std::nullopt;
        const auto number = [&] {
            skip(false);
            const size_t begin = at_;
            uint32_t value = 0;
            for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
                value = value * 10 + static_cast<uint32_t>(text_[at_] - '0');
                if (value > kMostTimes) refuse(fmt::format("more than {} repetitions", kMostTimes));
            }
            const bool any = at_ > begin;
            skip(false);
            return any ? std::optional(value) : std::nullopt;
        };
        const auto least = number();
        auto most = least;
        if (takes(",")) {
            most = number();
            if (!most) most = GbnfNode::kUnbounded;
        } else if (!least) {
            refuse("expected a number after {");
        }
        if (!takes("}")) refuse("expected }");
        if (least.value_or(0) > *most) refuse("the repetitions have no number between their bounds");
        return std::pair(least.value_or(0), *most);
    }

    uint32_t hexadecimal(size_t count) {
        uint32_t value = 0;
        for (size_t i = 0; i < count; ++i) {
            const char c = next();
            const char low = static_cast<char>(c | 0x20);
            if (c >= '0' && c <= '9')
                value = value * 16 + static_cast<uint32_t>(c - '0');
            else if (low >= 'a' && low <= 'f')
                value = value * 16 + static_cast<uint32_t>(low - 'a' + 10);
            else
                refuse(fmt::format("expected {} hexadecimal digits", count));
        }
        return value;
    }

    uint32_t character() {
        const auto c = static_cast<unsigned char>(next());
        if (c == '\\') {
            const char kind = next();
            switch (kind) {
                case 'n':
                    return '\n';
                case 'r':
                    return '\r';
                case 't':
                    return '\t';
                case 'x':
                    return hexadecimal(2);
                case 'u':
                    return checked(hexadecimal(4));
                case 'U':
                    return checked(hexadecimal(8));
                case '\\':
                case '"':
                case '[':
                case ']':
                case '-':
                case '^':
                    return static_cast<unsigned char>(kind);
                default:
                    refuse(fmt::format("the escape \\{} is not known", printable(std::string_view(&kind, 1), 4)));
            }
        }
        const int more = c < 0x80 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
        uint32_t value = c < 0x80 ? c : c & (0x3fu >> more);
        for (int i = 0; i < more; ++i) value = value << 6 | (static_cast<unsigned char>(next()) & 0x3fu);
        return value;
    }

    uint32_t checked(uint32_t value) const {
        if (value > kLastCodePoint || (value >= 0xd800 && value < 0xe000)) refuse("an escape is no character");
        return value;
    }

    GbnfNode literal() {
        GbnfNode made{.kind = Kind::kText};
        while (!takes("\"")) {
            if (sees("\n")) refuse("a text does not end");
            made.text += static_cast<char32_t>(character());
        }
        return made;
    }

    GbnfNode char_class() {
        const bool negated = takes("^");
        CodePoints ranges;
        while (!takes("]")) {
            if (sees("\n")) refuse("a class does not end");
            const uint32_t first = character();
            uint32_t last = first;
            if (sees("-") && !sees("-]")) {
                ++at_;
                last = character();
                if (last < first) refuse("a range of characters goes backwards");
            }
            ranges.emplace_back(first, last);
        }
        CodePoints set = joined(std::move(ranges));
        GbnfNode made{.kind = Kind::kClass, .ranges = without_surrogates(negated ? others_than(set) : set)};
        if (made.ranges.empty()) refuse("a class of no characters");
        return made;
    }

    const std::string_view text_;
    size_t at_ = 0;
    Gbnf made_;
    std::vector<bool> defined_;
    std::map<std::string, size_t> numbers_;
};

}  // namespace

Gbnf parse_gbnf(std::string_view text) {
    if (text.size() > kMostGbnfBytes)
        fail(TSR_INVALID_ARGUMENT, "the grammar has {} bytes; at most {} are accepted", text.size(), kMostGbnfBytes);
    if (!is_utf8(text)) fail(TSR_INVALID_ARGUMENT, "the grammar is not UTF-8");
    return GbnfParser(text).run();
}

}  // namespace tessera::structure
