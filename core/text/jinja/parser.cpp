#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/text/jinja/functions.hpp"
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

class Parser {
  public:
    explicit Parser(std::string_view program) : source_(program), lexemes_(lex(program)) {}

    Block parse_program() {
        Block block = parse_block({});
        if (peek().kind != Kind::kEnd) refuse("a statement that ends nothing");
        if (!unknown_.empty()) throw Error(TSR_UNSUPPORTED, unknown_.front());
        return block;
    }

  private:
    const Lexeme& peek(size_t ahead = 0) const { return lexemes_[std::min(at_ + ahead, lexemes_.size() - 1)]; }
    Lexeme take() {
        Lexeme lexeme = peek();
        end_ = lexeme.end;
        if (at_ + 1 < lexemes_.size()) ++at_;
        return lexeme;
    }
    [[noreturn]] void refuse(const std::string& what) const {
        fail(TSR_UNSUPPORTED, "line {}: {}", peek().line, printable(what));
    }
    std::string shown() const {
        switch (peek().kind) {
            case Kind::kEnd:
                return "the end of the template";
            case Kind::kPrintEnd:
                return "}}";
            case Kind::kBlockEnd:
                return "%}";
            default:
                return peek().text;
        }
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
        if (!take_symbol(symbol)) refuse("expected '" + std::string(symbol) + "', found '" + shown() + "'");
    }
    void expect_word(std::string_view word) {
        if (!take_word(word)) refuse("expected '" + std::string(word) + "', found '" + shown() + "'");
    }
    void expect(Kind kind, const char* what) {
        if (peek().kind != kind) refuse(std::string("expected ") + what + ", found '" + shown() + "'");
        take();
    }
    std::string expect_name() {
        if (peek().kind != Kind::kName) refuse("expected a name, found '" + shown() + "'");
        return take().text;
    }
    std::string expect_dotted_name() {
        std::string name = expect_name();
        while (take_symbol(".")) name += "." + expect_name();
        return name;
    }
    std::string_view source_from(size_t begin) const { return source_.substr(begin, end_ > begin ? end_ - begin : 0); }

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

    // What begins at `begin` of the source and ends with the token that was taken last.
    ExpressionPtr make(Operation operation, size_t begin) const {
        auto made = std::make_unique<Expression>();
        made->operation = operation;
        made->line = lexemes_[at_ > 0 ? at_ - 1 : 0].line;
        made->source = source_from(begin);
        return made;
    }
    void add_operand(Expression& to, ExpressionPtr operand) const {
        if (operand) deepen(to, *operand);
        to.operands.push_back(std::move(operand));
        to.source = source_from(static_cast<size_t>(to.source.data() - source_.data()));
    }
    void deepen(Expression& to, const Expression& operand) const {
        to.depth = std::max(to.depth, operand.depth + 1);
        if (to.depth > kMaximumNesting) refuse("an expression nested too deeply");
    }
    template <typename... Operands>
    ExpressionPtr combine(Operation operation, size_t begin, Operands... operands) const {
        ExpressionPtr made = make(operation, begin);
        (add_operand(*made, std::move(operands)), ...);
        return made;
    }
    ExpressionPtr constant(Value value, size_t begin) const {
        ExpressionPtr made = make(Operation::kConstant, begin);
        made->value = std::move(value);
        return made;
    }

    // --- statements: up to one whose word is in `ends`, which is left, with its beginning taken ---

    Block parse_block(std::initializer_list<std::string_view> ends) {
        const Nesting nesting(*this);
        Block block;
        while (peek().kind != Kind::kEnd) {
            const uint32_t line = peek().line;
            const size_t begin = peek().begin;
            if (peek().kind == Kind::kText) {
                add(block, Statement::Kind::kText, line).text = take().text;
            } else if (peek().kind == Kind::kPrintBegin) {
                take();
                Statement print{.kind = Statement::Kind::kPrint, .line = line};
                print.expression = parse_tuple({});
                expect(Kind::kPrintEnd, "the end of an expression");
                print.source = source_from(begin);
                block.push_back(std::move(print));
            } else {
                expect(Kind::kBlockBegin, "a statement");
                if (peek().kind == Kind::kName && std::ranges::find(ends, peek().text) != ends.end()) return block;
                parse_statement(block, line, begin);
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
    // The body of a statement, and its end.
    Block parse_body(std::string_view end) {
        take_symbol(":");
        end_tag();
        Block body = parse_block({end});
        expect_word(end);
        return body;
    }

    void parse_statement(Block& block, uint32_t line, size_t begin) {
        const std::string word = peek().kind == Kind::kName ? take().text : "";
        Statement made{.line = line};
        if (word == "if") {
            parse_if(made);
        } else if (word == "for") {
            parse_for(made, begin);
        } else if (word == "set") {
            parse_set(made);
        } else if (word == "with") {
            parse_with(made);
        } else if (word == "macro") {
            made.kind = Statement::Kind::kMacro;
            made.macro = std::make_unique<Macro>();
            made.macro->name = expect_name();
            parse_parameters(*made.macro);
            parse_macro_body(*made.macro, "endmacro");
            end_tag();
        } else if (word == "call") {
            made.kind = Statement::Kind::kCall;
            made.macro = std::make_unique<Macro>();
            if (is_symbol("(")) parse_parameters(*made.macro);
            made.expression = parse_expression();
            if (made.expression->operation != Operation::kCall) refuse("a call block without a call");
            made.source = source_from(begin);
            parse_macro_body(*made.macro, "endcall");
            end_tag();
        } else if (word == "filter") {
            made.kind = Statement::Kind::kFilter;
            made.expression = parse_filters_of_block(true);
            made.source = source_from(begin);
            made.body = parse_body("endfilter");
            end_tag();
        } else if (word == "break" || word == "continue") {
            if (loops_ == 0) refuse(word + " outside of a loop");
            made.kind = word == "break" ? Statement::Kind::kBreak : Statement::Kind::kContinue;
            end_tag();
        } else if (word == "generation") {
            // transformers' mark of what is trained on, which writes its body.
            made.kind = Statement::Kind::kScope;
            const uint32_t loops = std::exchange(loops_, 0);
            made.body = parse_body("endgeneration");
            loops_ = loops;
            end_tag();
        } else if (word == "block") {
            made.kind = Statement::Kind::kScope;
            const std::string name = expect_name();
            take_word("scoped");
            const uint32_t loops = std::exchange(loops_, 0);
            made.body = parse_body("endblock");
            loops_ = loops;
            take_word(name);
            end_tag();
        } else if (word == "print") {
            made.kind = Statement::Kind::kPrint;
            // Several are written one after the other.
            while (true) {
                made.expression = parse_expression();
                if (!take_symbol(",")) break;
                made.source = source_from(begin);
                block.push_back(std::move(made));
                made = Statement{.kind = Statement::Kind::kPrint, .line = line};
            }
            end_tag();
        } else if (word == "autoescape") {
            ExpressionPtr on = parse_expression();
            if (on->operation != Operation::kConstant || on->value.truth())
                refuse("escaping, which a chat template has no use for");
            made.kind = Statement::Kind::kScope;
            made.body = parse_body("endautoescape");
            end_tag();
        } else if (word == "include" || word == "import" || word == "from" || word == "extends") {
            while (peek().kind != Kind::kBlockEnd && peek().kind != Kind::kEnd) take();
            end_tag();
            made.kind = Statement::Kind::kRefused;
            made.text = "other templates are not read: the statement '" + word + "'";
        } else {
            fail(TSR_UNSUPPORTED, "line {}: the statement '{}' is not known", line, printable(word));
        }
        if (made.source.empty()) made.source = source_from(begin);
        block.push_back(std::move(made));
    }

    // Whether it is reached is decided while it runs.
    class Conditional {
      public:
        explicit Conditional(Parser& parser) : parser_(parser) { ++parser_.conditional_; }
        ~Conditional() { --parser_.conditional_; }
        Conditional(const Conditional&) = delete;
        Conditional& operator=(const Conditional&) = delete;

      private:
        Parser& parser_;
    };

    void parse_if(Statement& made) {
        made.kind = Statement::Kind::kIf;
        const Conditional conditional(*this);
        while (true) {
            ExpressionPtr condition = parse_tuple({}, false);
            take_symbol(":");
            end_tag();
            Block body = parse_block({"elif", "else", "endif"});
            made.branches.emplace_back(std::move(condition), std::move(body));
            if (take_word("elif")) continue;
            if (take_word("else")) {
                take_symbol(":");
                end_tag();
                body = parse_block({"endif"});
                made.branches.emplace_back(nullptr, std::move(body));
            }
            expect_word("endif");
            return end_tag();
        }
    }

    void parse_for(Statement& made, size_t begin) {
        made.kind = Statement::Kind::kFor;
        made.target = parse_target({"in"}, false);
        expect_word("in");
        made.expression = parse_tuple({"recursive"}, false);  // without a condition: "if" belongs to the loop
        if (take_word("if")) made.condition = parse_expression();
        made.recursive = take_word("recursive");
        made.source = source_from(begin);
        take_symbol(":");
        end_tag();
        ++loops_;
        const uint32_t conditional = std::exchange(conditional_, 0);
        made.body = parse_block({"else", "endfor"});
        --loops_;
        if (take_word("else")) {
            take_symbol(":");
            end_tag();
            made.otherwise = parse_block({"endfor"});
        }
        conditional_ = conditional;
        expect_word("endfor");
        end_tag();
    }

    Target parse_one_target(bool members) {
        Target target;
        if (take_symbol("(")) {
            target = parse_target({}, members);
            expect_symbol(")");
            return target;
        }
        target.name = expect_name();
        if (members && take_symbol(".")) target.member = expect_name();
        constexpr std::array<std::string_view, 6> constants = {"true", "false", "none", "True", "False", "None"};
        if (std::ranges::find(constants, target.name) != constants.end())
            refuse("a value set to '" + target.name + "'");
        return target;
    }
    Target parse_target(std::initializer_list<std::string_view> ends, bool members) {
        const Nesting nesting(*this);
        Target first = parse_one_target(members);
        if (!is_symbol(",")) return first;
        Target tuple{.is_tuple = true};
        tuple.parts.push_back(std::move(first));
        while (take_symbol(",")) {
            if (ends_tuple(ends) || is_symbol("=")) break;
            tuple.parts.push_back(parse_one_target(members));
        }
        return tuple;
    }

    void parse_set(Statement& made) {
        made.kind = Statement::Kind::kSet;
        made.target = parse_target({}, true);
        if (take_symbol("=")) {
            made.expression = parse_tuple({});
            return end_tag();
        }
        made.kind = Statement::Kind::kSetBlock;
        if (is_symbol("|")) made.expression = parse_filters_of_block(false);
        made.body = parse_body("endset");
        end_tag();
    }

    void parse_with(Statement& made) {
        made.kind = Statement::Kind::kWith;
        while (peek().kind != Kind::kBlockEnd && !is_symbol(":")) {
            if (!made.assignments.empty()) expect_symbol(",");
            Target target = parse_one_target(false);
            expect_symbol("=");
            made.assignments.emplace_back(std::move(target), parse_expression());
        }
        made.body = parse_body("endwith");
        end_tag();
    }

    void parse_parameters(Macro& macro) {
        expect_symbol("(");
        while (!is_symbol(")")) {
            if (!macro.parameters.empty()) expect_symbol(",");
            std::string name = expect_name();
            ExpressionPtr fallback = take_symbol("=") ? parse_expression() : nullptr;
            if (!fallback && !macro.parameters.empty() && macro.parameters.back().second)
                refuse("a parameter without a default behind one with a default");
            macro.parameters.emplace_back(std::move(name), std::move(fallback));
        }
        expect_symbol(")");
    }
    void parse_macro_body(Macro& macro, std::string_view end) {
        const uint32_t loops = std::exchange(loops_, 0);
        Macro* const outer = std::exchange(macro_, &macro);
        const uint32_t conditional = std::exchange(conditional_, 0);
        macro.body = parse_body(end);
        conditional_ = conditional;
        macro_ = outer;
        loops_ = loops;
    }

    // Filters of what a block writes: a chain that ends with a constant.
    ExpressionPtr parse_filters_of_block(bool first) {
        ExpressionPtr value = make(Operation::kConstant, peek().begin);
        if (first) value = parse_filter(std::move(value), peek().begin);
        while (take_symbol("|")) value = parse_filter(std::move(value), peek().begin);
        return value;
    }

    // --- expressions, weakest first ---

    bool ends_tuple(std::initializer_list<std::string_view> ends) const {
        if (peek().kind == Kind::kPrintEnd || peek().kind == Kind::kBlockEnd || is_symbol(")")) return true;
        return peek().kind == Kind::kName && std::ranges::find(ends, peek().text) != ends.end();
    }

    // Several with commas are a tuple.
    ExpressionPtr parse_tuple(std::initializer_list<std::string_view> ends, bool conditions = true) {
        const size_t begin = peek().begin;
        const auto one = [&] { return conditions ? parse_expression() : parse_or(); };
        if (ends_tuple(ends)) refuse("expected an expression, found '" + shown() + "'");
        ExpressionPtr first = one();
        if (!is_symbol(",")) return first;
        ExpressionPtr list = combine(Operation::kTuple, begin, std::move(first));
        while (take_symbol(",")) {
            if (ends_tuple(ends)) break;
            add_operand(*list, one());
        }
        return list;
    }

    ExpressionPtr parse_expression() {
        const Nesting nesting(*this);
        const size_t begin = peek().begin, unknown = unknown_.size();
        ExpressionPtr value = parse_or();
        while (take_word("if")) {
            unknown_.resize(unknown);
            const Conditional conditional(*this);
            ExpressionPtr condition = parse_or();
            ExpressionPtr otherwise = take_word("else") ? parse_expression() : nullptr;
            value =
                combine(Operation::kConditional, begin, std::move(value), std::move(condition), std::move(otherwise));
        }
        return value;
    }
    ExpressionPtr parse_or() {
        const size_t begin = peek().begin;
        ExpressionPtr left = parse_and();
        while (take_word("or")) left = combine(Operation::kOr, begin, std::move(left), parse_and());
        return left;
    }
    ExpressionPtr parse_and() {
        const size_t begin = peek().begin;
        ExpressionPtr left = parse_not();
        while (take_word("and")) left = combine(Operation::kAnd, begin, std::move(left), parse_not());
        return left;
    }
    ExpressionPtr parse_not() {
        const Nesting nesting(*this);
        const size_t begin = peek().begin;
        if (take_word("not")) return combine(Operation::kNot, begin, parse_not());
        return parse_comparison();
    }

    std::optional<Comparison> take_comparison() {
        constexpr std::array<std::pair<std::string_view, Comparison>, 6> symbols = {
            {{"==", Comparison::kEqual},
             {"!=", Comparison::kNotEqual},
             {"<", Comparison::kLess},
             {"<=", Comparison::kLessEqual},
             {">", Comparison::kGreater},
             {">=", Comparison::kGreaterEqual}}};
        for (const auto& [symbol, comparison] : symbols)
            if (take_symbol(symbol)) return comparison;
        if (take_word("in")) return Comparison::kIn;
        if (is_word("not") && peek(1).kind == Kind::kName && peek(1).text == "in") {
            take();
            take();
            return Comparison::kNotIn;
        }
        return {};
    }
    ExpressionPtr parse_comparison() {
        const size_t begin = peek().begin;
        ExpressionPtr left = parse_sum();
        auto comparison = take_comparison();
        if (!comparison) return left;
        ExpressionPtr made = combine(Operation::kCompare, begin, std::move(left));
        for (; comparison; comparison = take_comparison()) {
            made->comparisons.push_back(*comparison);
            add_operand(*made, parse_sum());
        }
        return made;
    }
    ExpressionPtr parse_sum() {
        const size_t begin = peek().begin;
        ExpressionPtr left = parse_concatenation();
        while (is_symbol("+") || is_symbol("-")) {
            const Operation operation = take().text == "+" ? Operation::kAdd : Operation::kSubtract;
            left = combine(operation, begin, std::move(left), parse_concatenation());
        }
        return left;
    }
    ExpressionPtr parse_concatenation() {
        const size_t begin = peek().begin;
        ExpressionPtr first = parse_product();
        if (!is_symbol("~")) return first;
        ExpressionPtr made = combine(Operation::kConcatenate, begin, std::move(first));
        while (take_symbol("~")) add_operand(*made, parse_product());
        return made;
    }
    ExpressionPtr parse_product() {
        const size_t begin = peek().begin;
        ExpressionPtr left = parse_power();
        while (true) {
            std::optional<Operation> operation;
            if (take_symbol("*"))
                operation = Operation::kMultiply;
            else if (take_symbol("/"))
                operation = Operation::kDivide;
            else if (take_symbol("//"))
                operation = Operation::kFloorDivide;
            else if (take_symbol("%"))
                operation = Operation::kModulo;
            if (!operation) return left;
            left = combine(*operation, begin, std::move(left), parse_power());
        }
    }
    ExpressionPtr parse_power() {
        const size_t begin = peek().begin;
        ExpressionPtr left = parse_unary();
        while (take_symbol("**")) left = combine(Operation::kPower, begin, std::move(left), parse_unary());
        return left;
    }
    // With filters and tests behind it, as in Jinja: a sign binds closer than a filter.
    ExpressionPtr parse_unary(bool with_filters = true) {
        const Nesting nesting(*this);
        const size_t begin = peek().begin;
        ExpressionPtr value;
        if (take_symbol("-"))
            value = combine(Operation::kNegate, begin, parse_unary(false));
        else if (take_symbol("+"))
            value = combine(Operation::kPlus, begin, parse_unary(false));
        else
            value = parse_primary();
        value = parse_postfix(std::move(value), begin);
        if (with_filters) value = parse_filters(std::move(value), begin);
        return value;
    }

    ExpressionPtr parse_primary() {
        const Lexeme lexeme = peek();
        const size_t begin = lexeme.begin;
        switch (lexeme.kind) {
            case Kind::kInteger: {
                int64_t number = 0;
                const auto read = std::from_chars(lexeme.text.data(), lexeme.text.data() + lexeme.text.size(), number);
                take();
                if (read.ec != std::errc()) return constant(BigInteger{Text(std::string(lexeme.text))}, begin);
                return constant(number, begin);
            }
            case Kind::kFraction:
                take();
                return constant(python_double(lexeme.text), begin);
            case Kind::kString: {
                std::string text = take().text;
                while (peek().kind == Kind::kString) text += take().text;
                return constant(Text(std::move(text)), begin);
            }
            case Kind::kName:
                return parse_name(begin);
            default:
                break;
        }
        if (take_symbol("(")) {
            if (take_symbol(")")) return make(Operation::kTuple, begin);
            ExpressionPtr inner = parse_tuple({});
            expect_symbol(")");
            return inner;
        }
        if (take_symbol("[")) {
            ExpressionPtr list = make(Operation::kList, begin);
            while (!take_symbol("]")) {
                add_operand(*list, parse_expression());
                if (!is_symbol("]")) expect_symbol(",");
            }
            list->source = source_from(begin);
            return list;
        }
        if (take_symbol("{")) {
            ExpressionPtr made = make(Operation::kDictionary, begin);
            while (!take_symbol("}")) {
                add_operand(*made, parse_expression());
                expect_symbol(":");
                add_operand(*made, parse_expression());
                if (!is_symbol("}")) expect_symbol(",");
            }
            made->source = source_from(begin);
            return made;
        }
        refuse("expected an expression, found '" + shown() + "'");
    }

    ExpressionPtr parse_name(size_t begin) {
        for (const auto& [word, value] :
             std::initializer_list<std::pair<std::string_view, Value>>{{"true", true},
                                                                       {"True", true},
                                                                       {"false", false},
                                                                       {"False", false},
                                                                       {"none", Value::none()},
                                                                       {"None", Value::none()}})
            if (take_word(word)) return constant(value, begin);
        const std::string name = take().text;
        if (macro_) {
            macro_->takes_more |= name == "varargs";
            macro_->takes_more_named |= name == "kwargs";
            macro_->takes_caller |= name == "caller";
        }
        ExpressionPtr made = make(Operation::kName, begin);
        made->name = name;
        return made;
    }

    ExpressionPtr parse_postfix(ExpressionPtr value, size_t begin) {
        while (true) {
            if (take_symbol(".")) {
                if (peek().kind == Kind::kInteger) {
                    ExpressionPtr index = parse_primary();
                    value = combine(Operation::kSubscript, begin, std::move(value), std::move(index));
                    continue;
                }
                const std::string name = expect_name();
                value = combine(Operation::kAttribute, begin, std::move(value));
                value->name = name;
            } else if (take_symbol("[")) {
                value = parse_subscript(std::move(value), begin);
            } else if (is_symbol("(")) {
                value = parse_call(std::move(value), begin);
            } else {
                return value;
            }
        }
    }
    ExpressionPtr parse_call(ExpressionPtr value, size_t begin) {
        ExpressionPtr call = combine(Operation::kCall, begin, std::move(value));
        parse_arguments(*call);
        call->source = source_from(begin);
        return call;
    }

    ExpressionPtr parse_subscript(ExpressionPtr value, size_t begin) {
        ExpressionPtr first = is_symbol(":") ? nullptr : parse_expression();
        if (take_symbol("]")) {
            ExpressionPtr made = combine(Operation::kSubscript, begin, std::move(value), std::move(first));
            const Expression& index = *made->operands[1];
            if (index.operation == Operation::kConstant && index.value.is_text()) made->name = index.value.view();
            return made;
        }
        if (is_symbol(",")) refuse("several indices");
        expect_symbol(":");
        ExpressionPtr end = is_symbol(":") || is_symbol("]") ? nullptr : parse_expression();
        ExpressionPtr step;
        if (take_symbol(":") && !is_symbol("]")) step = parse_expression();
        expect_symbol("]");
        return combine(Operation::kSlice, begin, std::move(value), std::move(first), std::move(end), std::move(step));
    }

    void parse_arguments(Expression& call) {
        expect_symbol("(");
        bool more = false;
        while (!is_symbol(")")) {
            if (more) {
                expect_symbol(",");
                if (is_symbol(")")) break;
            }
            more = true;
            if (take_symbol("*")) {
                if (call.more || call.more_named) refuse("several lists of arguments");
                call.more = parse_expression();
                deepen(call, *call.more);
            } else if (take_symbol("**")) {
                if (call.more_named) refuse("several dictionaries of arguments");
                call.more_named = parse_expression();
                deepen(call, *call.more_named);
            } else if (peek().kind == Kind::kName && peek(1).kind == Kind::kSymbol && peek(1).text == "=") {
                if (call.more_named) refuse("an argument behind a dictionary of them");
                std::string name = expect_name();
                take();
                ExpressionPtr value = parse_expression();
                deepen(call, *value);
                if (std::ranges::any_of(call.named, [&](const auto& one) { return one.first == name; }))
                    refuse("an argument that is given twice");
                call.named.emplace_back(std::move(name), std::move(value));
            } else {
                if (!call.named.empty() || call.more || call.more_named)
                    refuse("an argument without a name behind one with a name");
                add_operand(call, parse_expression());
            }
        }
        expect_symbol(")");
    }

    void note_unknown(const char* kind, const std::string& name) {
        unknown_.push_back(fmt::format("line {}: the {} '{}' is not known", peek().line, kind, printable(name)));
    }

    ExpressionPtr parse_filter(ExpressionPtr value, size_t begin) {
        const std::string name = expect_dotted_name();
        if (conditional_ == 0 && !is_filter(name)) note_unknown("filter", name);
        value = combine(Operation::kFilter, begin, std::move(value));
        value->name = name;
        if (is_symbol("(")) parse_arguments(*value);
        value->source = source_from(begin);
        return value;
    }

    ExpressionPtr parse_filters(ExpressionPtr value, size_t begin) {
        while (true) {
            if (take_symbol("|")) {
                value = parse_filter(std::move(value), begin);
            } else if (take_word("is")) {
                const bool negated = take_word("not");
                value = combine(Operation::kTest, begin, std::move(value));
                value->name = expect_dotted_name();
                if (conditional_ == 0 && !is_test(value->name)) note_unknown("test", value->name);
                parse_test_arguments(*value);
                value->source = source_from(begin);
                if (negated) value = combine(Operation::kNot, begin, std::move(value));
            } else if (is_symbol("(")) {
                value = parse_call(std::move(value), begin);
            } else {
                return value;
            }
        }
    }

    // In brackets, or one without them.
    void parse_test_arguments(Expression& test) {
        if (is_symbol("(")) return parse_arguments(test);
        const Kind kind = peek().kind;
        if (is_word("is")) refuse("several tests in a row");
        const bool word = kind == Kind::kName && !is_word("else") && !is_word("or") && !is_word("and");
        if (kind != Kind::kString && kind != Kind::kInteger && kind != Kind::kFraction && !word && !is_symbol("[") &&
            !is_symbol("{"))
            return;
        const size_t begin = peek().begin;
        ExpressionPtr argument = parse_primary();
        add_operand(test, parse_postfix(std::move(argument), begin));
    }

    const std::string_view source_;
    std::vector<Lexeme> lexemes_;
    size_t at_ = 0;
    size_t end_ = 0;  // of the token that was taken last
    uint32_t nesting_ = 0;
    uint32_t loops_ = 0;
    // What is around may keep an unknown filter or test from being reached, so that it counts only when it is.
    uint32_t conditional_ = 0;
    std::vector<std::string> unknown_;
    Macro* macro_ = nullptr;
};

}  // namespace

std::unique_ptr<const Template> parse(std::string_view program) {
    auto made = std::make_unique<Template>();
    made->source = with_plain_lines(program);
    made->block = Parser(made->source).parse_program();
    return made;
}

}  // namespace tessera::text::jinja
