#include "apps/structure/gbnf.hpp"

#include "apps/structure/answer_grammar.hpp"
#include "apps/structure/gbnf_parser.hpp"
#include "apps/structure/gbnf_terminals.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <spdlog/fmt/fmt.h>

#include <charconv>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace tessera::structure {
namespace {

using Kind = GbnfNode::Kind;

class LarkWriter {
  public:
    LarkWriter(Gbnf grammar, std::string_view root_name, const text::Tokenizer& tokenizer, GbnfLexer lexer,
               std::string_view prefix = {})
        : terminals_(std::move(grammar), lexer), root_name_(root_name), tokenizer_(tokenizer), prefix_(prefix) {
        for (const char c : prefix) upper_ += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }

    std::string run() {
        for (const GbnfRule& rule : grammar().rules) check_tokens(rule.node);
        // The root is a rule in any case, as it is what others begin with.
        std::string out = fmt::format("{}: {}\n", root_name_, name_of(grammar().root, terminals_.is_one_terminal()));
        while (!left_.empty()) {
            const auto [rule, terminal] = left_.back();
            left_.pop_back();
            out += written(rule, terminal) + ": ";
            write(grammar().rules[rule].node, terminal, out);
            out += "\n";
        }
        for (const auto& [text, number] : named_) out += fmt::format("{}T{}: {}\n", upper_, number, text);
        return out;
    }

  private:
    const Gbnf& grammar() const noexcept { return terminals_.grammar(); }

    // Lark tells terminals from rules by their letters.
    std::string name_of(size_t rule, bool terminal) {
        if (used_.emplace(rule, terminal).second) left_.emplace_back(rule, terminal);
        return written(rule, terminal);
    }
    std::string written(size_t rule, bool terminal) const {
        return fmt::format("{}{}{}", terminal ? upper_ : prefix_, terminal ? "G" : "g", rule);
    }

    static std::string code_point(uint32_t value) { return fmt::format("\\x{{{:x}}}", value); }

    static std::string class_of(const CodePoints& ranges) {
        std::string out = "/[";
        for (const auto& [first, last] : ranges) {
            out += code_point(first);
            if (last != first) out += "-" + code_point(last);
        }
        return out + "]/";
    }

    // Of a terminal as a whole, or each character.
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

    // What stands in a rule for a terminal.
    void write_terminal(const GbnfNode& node, std::string& out) {
        if (node.kind == Kind::kClass || node.kind == Kind::kText) return write(node, true, out);
        std::string text;
        write(node, true, text);
        const bool may_be_empty = terminals_.may_be_empty(node);
        if (may_be_empty) text = fmt::format("({}) & /(?s:.+)/", text);
        const auto number = named_.try_emplace(std::move(text), named_.size()).first->second;
        out += fmt::format("{}T{}{}", upper_, number, may_be_empty ? "?" : "");
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

    // Also of rules that nothing leads to.
    void check_tokens(const GbnfNode& node) const {
        if (node.kind == Kind::kToken) token_of(node.token);
        for (const GbnfNode& part : node.parts) check_tokens(part);
    }

    // `terminal`: within one.
    void write(const GbnfNode& node, bool terminal, std::string& out) {
        if (!terminal && terminals_.is_terminal(node)) return write_terminal(node, out);
        switch (node.kind) {
            case Kind::kText:
                out += text_of(node.text, terminal);
                return;
            case Kind::kClass:
                out += class_of(node.ranges);
                return;
            case Kind::kReference:
                out += name_of(node.rule, terminal);
                return;
            case Kind::kToken:
                out += token_of(node.token);
                return;
            case Kind::kSequence:
                return write_parts(node, " ", terminal, out);
            case Kind::kChoice:
                return write_parts(node, " | ", terminal, out);
            case Kind::kRepetition:
                break;
        }
        write_parts(node, "", terminal, out);
        if (node.most == GbnfNode::kUnbounded) {
            out += node.least == 0 ? "*" : node.least == 1 ? "+" : fmt::format("{{{},}}", node.least);
        } else {
            out += node.least == 0 && node.most == 1 ? "?" : fmt::format("{{{},{}}}", node.least, node.most);
        }
    }

    void write_parts(const GbnfNode& node, std::string_view between, bool terminal, std::string& out) {
        if (node.parts.empty()) {
            out += "\"\"";
            return;
        }
        out += "(";
        for (const GbnfNode& part : node.parts) {
            if (&part != &node.parts.front()) out += between;
            write(part, terminal, out);
        }
        out += ")";
    }

    const GbnfTerminals terminals_;
    const std::string_view root_name_;
    const text::Tokenizer& tokenizer_;
    const std::string prefix_;
    std::string upper_;                       // the prefix of terminals
    std::set<std::pair<size_t, bool>> used_;  // rules, as terminals or not
    std::vector<std::pair<size_t, bool>> left_;
    std::map<std::string, size_t> named_;  // terminals that have no name of their own
};

}  // namespace

std::string translate_gbnf(std::string_view grammar, std::string_view root_name, const text::Tokenizer& tokenizer,
                           GbnfLexer lexer) {
    return LarkWriter(parse_gbnf(grammar), root_name, tokenizer, lexer).run();
}

std::string write_gbnf(Gbnf grammar, std::string_view root_name, const text::Tokenizer& tokenizer,
                       std::string_view prefix) {
    return LarkWriter(std::move(grammar), root_name, tokenizer, GbnfLexer::kTerminals, prefix).run();
}

Body gbnf_body(std::string_view grammar, const text::Tokenizer& tokenizer) {
    return {.rules = translate_gbnf(grammar, "body", tokenizer)};
}

}  // namespace tessera::structure
