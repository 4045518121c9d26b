#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/text/jinja/lexer.hpp"
#include "core/text/jinja/syntax.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <optional>

namespace tessera::text::jinja {
namespace {

using Kind = Lexeme::Kind;

// Of trees, so that nothing that walks them needs much stack.
constexpr uint32_t kMaximumNesting = 150;

constexpr std::array<std::string_view, 9> kReserved = {"and", "or",   "not",  "in",       "is",
                                                       "if",  "else", "elif", "recursive"};

class Parser {
  public:
    explicit Parser(std::string_view program) : lexemes_(lex(program)) {}

    Block parse_program() {
        Block block = parse_block({});
        if (peek().kind != Kind::kEnd) refuse("a statement that ends nothing");
        return block;
    }

  private:
    const Lexeme& peek(size_t ahead = 0) const { return lexemes_[std::min(at_ + ahead, lexemes_.size() - 1)]; }
    Lexeme take() {
        Lexeme lexeme = peek();
        if (at_ + 1 < lexemes_.size()) ++at_;
        return lexeme;
    }
    [[noreturn]] void refuse(const std::string& what) const {
        fail(TSR_UNSUPPORTED, "line {}: {}", peek().line, printable(what));
    }

    bool is_symbol(std::string_view symbol) const { return peek().kind == Kind::kSymbol && peek().text == symbol; }
    bool is_word(std::string_view word) const { return peek().kind == Kind::kName && peek().text == word; }
    bool take_symbol(std::string_view symbol) {
        if (!is_symbol(symbol)) return false;
        take();
        return true;
    }
    bool take_word(std::string_view word) {
        if (!is_word(word)) return false;
        take();
        return true;
    }
    void expect_symbol(std::string_view symbol) {
        if (!take_symbol(symbol)) refuse("expected '" + std::string(symbol) + "', found '" + peek().text + "'");
    }
    void expect_word(std::string_view word) {
        if (!take_word(word)) refuse("expected '" + std::string(word) + "', found '" + peek().text + "'");
    }
    void expect(Kind kind, const char* what) {
        if (peek().kind != kind) refuse(std::string("expected ") + what + ", found '" + peek().text + "'");
        take();
    }
    std::string expect_name() {
        if (peek().kind != Kind::kName || std::ranges::find(kReserved, peek().text) != kReserved.end())
            refuse("expected a name, found '" + peek().text + "'");
        return take().text;
    }

    // Counts what is being parsed within something else.
    class Nesting {
      public:
        explicit Nesting(Parser& parser) : parser_(parser) {
            if (++parser_.nesting_ > kMaximumNesting) parser_.refuse("nested too deeply");
        }
        ~Nesting() { --parser_.nesting_; }
        Nesting(const Nesting&) = delete;
        Nesting& operator=(const Nesting&) = delete;

      private:
        Parser& parser_;
    };

    ExpressionPtr make(Operation operation, std::string name = {}) const {
        auto made = std::make_unique<Expression>();
        made->operation = operation;
        made->line = peek().line;
        made->name = std::move(name);
        return made;
    }
    void add_operand(Expression& to, ExpressionPtr operand) const {
        if (operand) to.depth = std::max(to.depth, operand->depth + 1);
        if (to.depth > kMaximumNesting) refuse("an expression nested too deeply");
        to.operands.push_back(std::move(operand));
    }
    template <typename... Operands>
    ExpressionPtr combine(Operation operation, Operands... operands) const {
        ExpressionPtr made = make(operation);
        (add_operand(*made, std::move(operands)), ...);
        return made;
    }
    ExpressionPtr constant(Value value) const {
        ExpressionPtr made = make(Operation::kConstant);
        made->value = std::move(value);
        return made;
    }

    // --- statements: up to one whose word is in `ends`, which is left, with its beginning taken ---

    Block parse_block(std::initializer_list<std::string_view> ends) {
        const Nesting nesting(*this);
        Block block;
        while (peek().kind != Kind::kEnd) {
            const uint32_t line = peek().line;
            if (peek().kind == Kind::kText) {
                Statement& text = add(block, Statement::Kind::kText, line);
                text.text = take().text;
            } else if (peek().kind == Kind::kPrintBegin) {
                take();
                Statement print{.kind = Statement::Kind::kPrint, .line = line};
                print.expression = parse_list_or_expression();
                expect(Kind::kPrintEnd, "the end of an expression");
                block.push_back(std::move(print));
            } else {
                expect(Kind::kBlockBegin, "a statement");
                if (peek().kind == Kind::kName && std::ranges::find(ends, peek().text) != ends.end()) return block;
                parse_statement(block, line);
            }
        }
        if (ends.size() > 0) refuse("a block that does not end");
        return block;
    }
    static Statement& add(Block& block, Statement::Kind kind, uint32_t line) {
        block.push_back(Statement{.kind = kind, .line = line});
        return block.back();
    }
    void end_tag() { expect(Kind::kBlockEnd, "the end of a statement"); }

    void parse_statement(Block& block, uint32_t line) {
        const std::string word = peek().kind == Kind::kName ? take().text : "";
        if (word == "if") {
            parse_if(add(block, Statement::Kind::kIf, line));
        } else if (word == "for") {
            parse_for(add(block, Statement::Kind::kFor, line));
        } else if (word == "set") {
            parse_set(add(block, Statement::Kind::kSet, line));
        } else if (word == "macro") {
            parse_macro(add(block, Statement::Kind::kMacro, line));
        } else if (word == "break" || word == "continue") {
            if (loops_ == 0) refuse(word + " outside of a loop");
            add(block, word == "break" ? Statement::Kind::kBreak : Statement::Kind::kContinue, line);
            end_tag();
        } else if (word == "generation" || word == "endgeneration") {
            end_tag();  // transformers' marks of what is trained on; they write nothing
        } else {
            fail(TSR_UNSUPPORTED, "line {}: the statement '{}' is not known", line, word);
        }
    }

    void parse_if(Statement& made) {
        while (true) {
            ExpressionPtr condition = parse_list_or_expression();
            end_tag();
            Block body = parse_block({"elif", "else", "endif"});
            made.branches.emplace_back(std::move(condition), std::move(body));
            if (take_word("elif")) continue;
            if (take_word("else")) {
                end_tag();
                body = parse_block({"endif"});
                made.branches.emplace_back(nullptr, std::move(body));
            }
            expect_word("endif");
            return end_tag();
        }
    }

    void parse_for(Statement& made) {
        made.targets = parse_targets();
        expect_word("in");
        made.expression = parse_or();  // without a condition: "if" belongs to the loop
        if (take_word("if")) made.condition = parse_expression();
        if (is_word("recursive")) refuse("loops that call themselves");
        end_tag();
        ++loops_;
        made.body = parse_block({"else", "endfor"});
        --loops_;
        if (take_word("else")) {
            end_tag();
            made.otherwise = parse_block({"endfor"});
        }
        expect_word("endfor");
        end_tag();
    }

    std::vector<std::string> parse_targets() {
        std::vector<std::string> targets;
        const bool brackets = take_symbol("(");
        do targets.push_back(expect_name());
        while (take_symbol(","));
        if (brackets) expect_symbol(")");
        return targets;
    }

    void parse_set(Statement& made) {
        made.targets = parse_targets();
        if (made.targets.size() == 1 && take_symbol(".")) {
            made.kind = Statement::Kind::kSetMember;
            made.targets.push_back(expect_name());
        }
        if (take_symbol("=")) {
            made.expression = parse_list_or_expression();
            return end_tag();
        }
        if (made.kind != Statement::Kind::kSet || made.targets.size() != 1) refuse("a block set to other than a name");
        end_tag();
        made.kind = Statement::Kind::kSetBlock;
        made.body = parse_block({"endset"});
        expect_word("endset");
        end_tag();
    }

    void parse_macro(Statement& made) {
        made.macro = std::make_unique<Macro>();
        made.macro->name = expect_name();
        expect_symbol("(");
        while (!take_symbol(")")) {
            std::string name = expect_name();
            ExpressionPtr fallback = take_symbol("=") ? parse_expression() : nullptr;
            made.macro->parameters.emplace_back(std::move(name), std::move(fallback));
            if (!is_symbol(")")) expect_symbol(",");
        }
        end_tag();
        const uint32_t loops = std::exchange(loops_, 0);
        made.macro->body = parse_block({"endmacro"});
        loops_ = loops;
        expect_word("endmacro");
        end_tag();
    }

    // --- expressions, weakest first ---

    // Several with commas are a tuple.
    ExpressionPtr parse_list_or_expression() {
        ExpressionPtr first = parse_expression();
        if (!is_symbol(",")) return first;
        ExpressionPtr list = combine(Operation::kTuple, std::move(first));
        while (take_symbol(",")) {
            if (peek().kind == Kind::kPrintEnd || peek().kind == Kind::kBlockEnd) break;
            add_operand(*list, parse_expression());
        }
        return list;
    }

    ExpressionPtr parse_expression() {
        const Nesting nesting(*this);
        ExpressionPtr value = parse_or();
        while (take_word("if")) {
            ExpressionPtr condition = parse_or();
            ExpressionPtr otherwise = take_word("else") ? parse_expression() : nullptr;
            value = combine(Operation::kConditional, std::move(value), std::move(condition), std::move(otherwise));
        }
        return value;
    }
    ExpressionPtr parse_or() {
        ExpressionPtr left = parse_and();
        while (take_word("or")) left = combine(Operation::kOr, std::move(left), parse_and());
        return left;
    }
    ExpressionPtr parse_and() {
        ExpressionPtr left = parse_not();
        while (take_word("and")) left = combine(Operation::kAnd, std::move(left), parse_not());
        return left;
    }
    ExpressionPtr parse_not() {
        const Nesting nesting(*this);
        if (take_word("not")) return combine(Operation::kNot, parse_not());
        return parse_comparison();
    }

    std::optional<Operation> take_comparison() {
        constexpr std::array<std::pair<std::string_view, Operation>, 6> symbols = {{{"==", Operation::kEqual},
                                                                                    {"!=", Operation::kNotEqual},
                                                                                    {"<", Operation::kLess},
                                                                                    {"<=", Operation::kLessEqual},
                                                                                    {">", Operation::kGreater},
                                                                                    {">=", Operation::kGreaterEqual}}};
        for (const auto& [symbol, operation] : symbols)
            if (take_symbol(symbol)) return operation;
        if (take_word("in")) return Operation::kIn;
        if (is_word("not") && peek(1).kind == Kind::kName && peek(1).text == "in") {
            take();
            take();
            return Operation::kNotIn;
        }
        return {};
    }
    ExpressionPtr parse_comparison() {
        ExpressionPtr left = parse_sum();
        bool compared = false;
        while (const auto operation = take_comparison()) {
            if (compared) refuse("several comparisons in a row");
            compared = true;
            left = combine(*operation, std::move(left), parse_sum());
        }
        return left;
    }
    ExpressionPtr parse_sum() {
        ExpressionPtr left = parse_concatenation();
        while (is_symbol("+") || is_symbol("-")) {
            const Operation operation = take().text == "+" ? Operation::kAdd : Operation::kSubtract;
            left = combine(operation, std::move(left), parse_concatenation());
        }
        return left;
    }
    ExpressionPtr parse_concatenation() {
        ExpressionPtr left = parse_product();
        while (take_symbol("~")) left = combine(Operation::kConcatenate, std::move(left), parse_product());
        return left;
    }
    ExpressionPtr parse_product() {
        ExpressionPtr left = parse_unary();
        while (true) {
            if (is_symbol("/") || is_symbol("**")) refuse("the operator '" + peek().text + "' is not known");
            std::optional<Operation> operation;
            if (take_symbol("*"))
                operation = Operation::kMultiply;
            else if (take_symbol("//"))
                operation = Operation::kFloorDivide;
            else if (take_symbol("%"))
                operation = Operation::kModulo;
            if (!operation) return left;
            left = combine(*operation, std::move(left), parse_unary());
        }
    }
    // With filters and tests behind it, as in Jinja: a sign binds closer than a filter.
    ExpressionPtr parse_unary(bool with_filters = true) {
        const Nesting nesting(*this);
        ExpressionPtr value;
        if (take_symbol("-"))
            value = combine(Operation::kNegate, parse_unary(false));
        else if (take_symbol("+"))
            value = parse_unary(false);
        else
            value = parse_postfix(parse_primary());
        if (with_filters) value = parse_filters(std::move(value));
        return value;
    }

    ExpressionPtr parse_primary() {
        const Lexeme lexeme = peek();
        switch (lexeme.kind) {
            case Kind::kInteger: {
                int64_t number = 0;
                const auto read = std::from_chars(lexeme.text.data(), lexeme.text.data() + lexeme.text.size(), number);
                if (read.ec != std::errc()) refuse("a number that is too large");
                take();
                return constant(number);
            }
            case Kind::kFraction: {
                auto number = parse_python_json(lexeme.text);
                if (!number) refuse("a number of a kind that is not known");
                take();
                return constant(OtherNumber{Text(std::string(number->text))});
            }
            case Kind::kString: {
                std::string text = take().text;
                while (peek().kind == Kind::kString) text += take().text;
                return constant(Text(std::move(text)));
            }
            case Kind::kName:
                return parse_name();
            default:
                break;
        }
        if (take_symbol("(")) {
            if (take_symbol(")")) return make(Operation::kTuple);
            ExpressionPtr inner = parse_expression();
            if (is_symbol(",")) {
                inner = combine(Operation::kTuple, std::move(inner));
                while (take_symbol(","))
                    if (!is_symbol(")")) add_operand(*inner, parse_expression());
            }
            expect_symbol(")");
            return inner;
        }
        if (take_symbol("[")) {
            ExpressionPtr list = make(Operation::kList);
            while (!take_symbol("]")) {
                add_operand(*list, parse_expression());
                if (!is_symbol("]")) expect_symbol(",");
            }
            return list;
        }
        if (take_symbol("{")) {
            ExpressionPtr made = make(Operation::kDictionary);
            while (!take_symbol("}")) {
                add_operand(*made, parse_expression());
                expect_symbol(":");
                add_operand(*made, parse_expression());
                if (!is_symbol("}")) expect_symbol(",");
            }
            return made;
        }
        refuse("expected an expression, found '" + lexeme.text + "'");
    }

    ExpressionPtr parse_name() {
        for (const auto& [word, value] :
             std::initializer_list<std::pair<std::string_view, Value>>{{"true", true},
                                                                       {"True", true},
                                                                       {"false", false},
                                                                       {"False", false},
                                                                       {"none", Value::none()},
                                                                       {"None", Value::none()}})
            if (take_word(word)) return constant(value);
        ExpressionPtr made = make(Operation::kName);
        made->name = expect_name();
        return made;
    }

    ExpressionPtr parse_postfix(ExpressionPtr value) {
        while (true) {
            if (take_symbol(".")) {
                if (peek().kind == Kind::kInteger) {
                    value = combine(Operation::kSubscript, std::move(value), parse_primary());
                    continue;
                }
                const std::string name = peek().kind == Kind::kName ? take().text : expect_name();
                value = combine(Operation::kAttribute, std::move(value));
                value->name = name;
            } else if (take_symbol("[")) {
                value = parse_subscript(std::move(value));
            } else if (is_symbol("(")) {
                ExpressionPtr call = combine(Operation::kCall, std::move(value));
                parse_arguments(*call);
                value = std::move(call);
            } else {
                return value;
            }
        }
    }

    ExpressionPtr parse_subscript(ExpressionPtr value) {
        ExpressionPtr first = is_symbol(":") ? nullptr : parse_expression();
        if (take_symbol("]")) return combine(Operation::kSubscript, std::move(value), std::move(first));
        expect_symbol(":");
        ExpressionPtr end = is_symbol(":") || is_symbol("]") ? nullptr : parse_expression();
        ExpressionPtr step;
        if (take_symbol(":") && !is_symbol("]")) step = parse_expression();
        expect_symbol("]");
        return combine(Operation::kSlice, std::move(value), std::move(first), std::move(end), std::move(step));
    }

    void parse_arguments(Expression& call) {
        expect_symbol("(");
        while (!take_symbol(")")) {
            if (is_symbol("*") || is_symbol("**")) refuse("arguments from a list");
            if (peek().kind == Kind::kName && peek(1).kind == Kind::kSymbol && peek(1).text == "=") {
                std::string name = expect_name();
                take();
                ExpressionPtr value = parse_expression();
                call.depth = std::max(call.depth, value->depth + 1);
                call.named.emplace_back(std::move(name), std::move(value));
            } else {
                if (!call.named.empty()) refuse("an argument without a name behind one with a name");
                add_operand(call, parse_expression());
            }
            if (!is_symbol(")")) expect_symbol(",");
        }
        if (call.depth > kMaximumNesting) refuse("an expression nested too deeply");
    }

    ExpressionPtr parse_filters(ExpressionPtr value) {
        while (true) {
            if (take_symbol("|")) {
                const std::string name = expect_name();
                value = combine(Operation::kFilter, std::move(value));
                value->name = name;
                if (is_symbol("(")) parse_arguments(*value);
            } else if (take_word("is")) {
                const bool negated = take_word("not");
                value = combine(Operation::kTest, std::move(value));
                // Words that are constants elsewhere are tests here, and "in" is one.
                const std::string name = is_word("in") ? take().text : peek().kind == Kind::kName ? take().text : "";
                if (name.empty()) refuse("expected a test, found '" + peek().text + "'");
                value->name = name;
                parse_test_arguments(*value);
                if (negated) value = combine(Operation::kNot, std::move(value));
            } else if (is_symbol("(")) {
                ExpressionPtr call = combine(Operation::kCall, std::move(value));
                parse_arguments(*call);
                value = std::move(call);
            } else {
                return value;
            }
        }
    }

    // In brackets, or one without them.
    void parse_test_arguments(Expression& test) {
        if (is_symbol("(")) return parse_arguments(test);
        const Kind kind = peek().kind;
        const bool word = kind == Kind::kName && std::ranges::find(kReserved, peek().text) == kReserved.end();
        if (kind == Kind::kString || kind == Kind::kInteger || kind == Kind::kFraction || word || is_symbol("[") ||
            is_symbol("{"))
            add_operand(test, parse_postfix(parse_primary()));
    }

    std::vector<Lexeme> lexemes_;
    size_t at_ = 0;
    uint32_t nesting_ = 0;
    uint32_t loops_ = 0;
};

}  // namespace

Block parse(std::string_view program) {
    return Parser(program).parse_program();
}

}  // namespace tessera::text::jinja
