#include "apps/structure/gbnf.hpp"

#include "apps/structure/answer_grammar.hpp"
#include "apps/structure/gbnf_parser.hpp"
#include "apps/structure/gbnf_terminals.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/text/utf8.hpp"

#include <spdlog/fmt/fmt.h>

#include <charconv>

namespace tessera::structure {
namespace {

using Kind = GbnfNode::Kind;

class LarkWriter {
  public:
    LarkWriter(const Gbnf& grammar, std::string_view root_name, const text::Tokenizer& tokenizer)
        : grammar_(grammar), root_name_(root_name), tokenizer_(tokenizer), is_terminal_(terminal_rules(grammar)) {}

    std::string run() {
        // The root is a rule in any case, as it is what others begin with.
        std::string out = fmt::format("{}: {}\n", root_name_, name_of(grammar_.root));
        for (size_t i = 0; i < grammar_.rules.size(); ++i) {
            const bool terminal = is_terminal_[i];
            out += fmt::format("{}: {}\n", name_of(i), written(grammar_.rules[i].node, terminal));
        }
        return out;
    }

  private:
    // Lark tells terminals from rules by their letters.
    std::string name_of(size_t rule) const { return fmt::format("{}{}", is_terminal_[rule] ? "G" : "g", rule); }

    static std::string code_point(uint32_t value) { return fmt::format("\\x{{{:x}}}", value); }

    static std::string class_of(const std::vector<GbnfNode::Range>& ranges) {
        std::string out = "/[";
        for (const auto& [first, last] : ranges) {
            // No text has half a character.
            out += code_point(first == 0xd800 ? 0xe000 : first);
            if (last != first) out += "-" + code_point(last);
        }
        return out + "]/";
    }

    // Of a terminal as a whole; else each character is a terminal of its own, since the longest text that a terminal
    // matches is taken, whatever follows.
    std::string text_of(const std::u32string& text, bool terminal) const {
        if (text.empty()) return "\"\"";
        std::string out = terminal ? "/" : "";
        for (const char32_t c : text) {
            if (terminal)
                out += code_point(c);
            else
                out += fmt::format("{}/{}/", out.empty() ? "" : " ", code_point(c));
        }
        return terminal ? out + "/" : text.size() == 1 ? out : "(" + out + ")";
    }

    std::string token_of(const std::string& name) const {
        text::Token token = text::kNoToken;
        if (name.starts_with('[') && name.ends_with(']')) {
            const char* const end = name.data() + name.size() - 1;
            const auto [last, error] = std::from_chars(name.data() + 1, end, token);
            if (last != end || error != std::errc() || token < 0 || static_cast<size_t>(token) >= tokenizer_.size())
                fail(TSR_INVALID_ARGUMENT, "the grammar's <{}>: the vocabulary has no such token", printable(name, 40));
        } else {
            token = tokenizer_.find("<" + name + ">");
            if (token == text::kNoToken)
                fail(TSR_INVALID_ARGUMENT, "the grammar's <{}>: the vocabulary has no such token", printable(name, 40));
        }
        return fmt::format("<[{}]>", token);
    }

    std::string written(const GbnfNode& node, bool terminal) const {
        switch (node.kind) {
            case Kind::kText:
                return text_of(node.text, terminal);
            case Kind::kClass:
                return class_of(node.ranges);
            case Kind::kReference:
                return name_of(node.rule);
            case Kind::kToken:
                return token_of(node.token);
            case Kind::kSequence: {
                if (node.parts.empty()) return "\"\"";
                std::string out;
                for (const GbnfNode& part : node.parts) out += (out.empty() ? "" : " ") + written(part, terminal);
                return "(" + out + ")";
            }
            case Kind::kChoice: {
                std::string out;
                for (const GbnfNode& part : node.parts) out += (out.empty() ? "" : " | ") + written(part, terminal);
                return "(" + out + ")";
            }
            case Kind::kRepetition:
                break;
        }
        const std::string inner = "(" + written(node.parts.front(), terminal) + ")";
        if (node.most == GbnfNode::kUnbounded)
            return node.least == 0   ? inner + "*"
                   : node.least == 1 ? inner + "+"
                                     : fmt::format("{}{{{},}}", inner, node.least);
        if (node.least == 0 && node.most == 1) return inner + "?";
        return fmt::format("{}{{{},{}}}", inner, node.least, node.most);
    }

    const Gbnf& grammar_;
    const std::string_view root_name_;
    const text::Tokenizer& tokenizer_;
    const std::vector<bool> is_terminal_;
};

}  // namespace

std::string translate_gbnf(std::string_view grammar, std::string_view root_name, const text::Tokenizer& tokenizer) {
    const Gbnf parsed = parse_gbnf(grammar);
    return LarkWriter(parsed, root_name, tokenizer).run();
}

Body gbnf_body(std::string_view grammar, const text::Tokenizer& tokenizer) {
    return {translate_gbnf(grammar, "body", tokenizer)};
}

}  // namespace tessera::structure
