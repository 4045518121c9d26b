#include "core/text/jinja/program.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/text/jinja/functions.hpp"
#include "core/text/jinja/syntax.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace tessera::text::jinja {

// Variables of a block, and around them those of the block that it stands in.
struct Environment {
    std::vector<std::pair<std::string_view, Value>> variables;
    Environment* parent = nullptr;
    bool kept = false;  // a macro may be called later that sees it
};

namespace {

// Of expressions and statements within one another, macros included.
constexpr uint32_t kMaximumRunningDepth = 600;
// As the sandbox has it.
constexpr int64_t kLongestRange = 100'000;

enum class Flow : uint8_t { kOn, kBreak, kContinue };

// One run.
class Runner {
  public:
    Runner(const Program::Variables& variables, const RunOptions& options)
        : budget_(options.steps, options.bytes), now_(options.now) {
        budget_.may_change = options.may_change_lists;
        globals_.variables.reserve(variables.size() + kFunctions.size());
        for (const auto& [name, kind] : kFunctions)
            globals_.variables.emplace_back(name, std::make_shared<Callable>(Callable{kind, nullptr}));
        for (const auto& [name, value] : variables) globals_.variables.emplace_back(name, value);
        here_ = &globals_;
    }
    // Namespaces may hold each other.
    ~Runner() {
        for (const auto& space : spaces_) space->members.clear();
    }
    Runner(const Runner&) = delete;
    Runner& operator=(const Runner&) = delete;

    Marked run(const Block& block) {
        const Scope scope(*this, &globals_);
        try {
            execute(block);
        } catch (const Error& error) {
            // Names and texts of the program may be in it.
            constexpr size_t kMost = 3000;
            const std::string what = printable(error.what(), kMost);
            if (error.code() == TSR_INVALID_ARGUMENT || !fault_)
                throw Error(error.code(), fmt::format("line {}: {}", fault_ ? fault_->line : line_, what));
            throw Error(error.code(),
                        fmt::format("line {}: {} (in '{}')", fault_->line, what, printable(fault_->source, 80)));
        }
        return std::move(out_);
    }

  private:
    static constexpr std::array<std::pair<std::string_view, Callable::Kind>, 8> kFunctions = {
        {{"range", Callable::Kind::kRange},
         {"namespace", Callable::Kind::kNamespace},
         {"dict", Callable::Kind::kDictionary},
         {"cycler", Callable::Kind::kCycler},
         {"joiner", Callable::Kind::kJoiner},
         {"lipsum", Callable::Kind::kLipsum},
         {"raise_exception", Callable::Kind::kRaise},
         {"strftime_now", Callable::Kind::kTime}}};

    class Nesting {
      public:
        explicit Nesting(Runner& runner) : runner_(runner) {
            if (runner_.depth_ + 1 > kMaximumRunningDepth)
                fail(TSR_UNSUPPORTED, "nested deeper than a template may be");
            runner_.budget_.step();
            ++runner_.depth_;
        }
        ~Nesting() { --runner_.depth_; }
        Nesting(const Nesting&) = delete;
        Nesting& operator=(const Nesting&) = delete;

      private:
        Runner& runner_;
    };

    // Variables of its own, around which are those of `parent`.
    class Scope {
      public:
        Scope(Runner& runner, Environment* parent)
            : runner_(runner), outer_(runner.here_), own_(std::make_unique<Environment>()) {
            own_->parent = parent;
            runner_.here_ = own_.get();
        }
        ~Scope() {
            runner_.here_ = outer_;
            if (own_->kept) runner_.kept_.push_back(std::move(own_));
        }
        Scope(const Scope&) = delete;
        Scope& operator=(const Scope&) = delete;

      private:
        Runner& runner_;
        Environment* const outer_;
        std::unique_ptr<Environment> own_;
    };

    void write(const Text& text) {
        budget_.bytes(text.size());
        out_.add(text);
    }

    // The expression that an error is told of is the innermost one.
    template <typename Work>
    auto located(const Expression& e, const Work& work) {
        try {
            return work();
        } catch (const Error&) {
            if (!fault_) fault_ = &e;
            throw;
        }
    }

    // --- variables ---

    const Value* find(std::string_view name) {
        for (const Environment* at = here_; at; at = at->parent) {
            budget_.step(at->variables.size() / 16);
            const auto found = std::ranges::find(at->variables, name, &std::pair<std::string_view, Value>::first);
            if (found != at->variables.end()) return &found->second;
        }
        return nullptr;
    }
    void set(std::string_view name, Value value) {
        auto& variables = here_->variables;
        budget_.step(variables.size() / 16);
        const auto found = std::ranges::find(variables, name, &std::pair<std::string_view, Value>::first);
        if (found != variables.end()) {
            found->second = std::move(value);
        } else {
            variables.emplace_back(name, std::move(value));
        }
    }
    // A macro that sees what is visible here.
    Closure closure(const Macro& macro) {
        for (Environment* at = here_; at; at = at->parent) at->kept = true;
        budget_.items(1);
        return {&macro, here_};
    }

    void assign(const Target& target, const Value& value) {
        if (!target.is_tuple) return target.member.empty() ? set(target.name, value) : set_member(target, value);
        const std::vector<Value> items = items_of(value, budget_);
        if (value.is_undefined() || items.size() != target.parts.size())
            fail(TSR_UNSUPPORTED, "{} names for {} values", target.parts.size(), items.size());
        for (size_t i = 0; i < items.size(); ++i) assign(target.parts[i], items[i]);
    }

    void set_member(const Target& target, const Value& value) {
        const Value* variable = find(target.name);
        const auto* space = variable ? variable->get<std::shared_ptr<Namespace>>() : nullptr;
        if (!space) fail(TSR_UNSUPPORTED, "'{}' is no namespace", target.name);
        if (value.get<std::shared_ptr<Loop>>()) fail(TSR_UNSUPPORTED, "{} within a namespace", value.kind());
        auto& members = (*space)->members;
        budget_.step(members.size() / 16);
        const auto found = std::ranges::find(members, target.member, &std::pair<std::string, Value>::first);
        if (found != members.end()) {
            found->second = value;
        } else {
            budget_.items(1);
            members.emplace_back(target.member, value);
        }
    }

    // --- statements ---

    Flow execute(const Block& block) {
        for (const Statement& statement : block) {
            const Nesting nesting(*this);
            line_ = statement.line;
            const Flow flow = execute(statement);
            if (flow != Flow::kOn) return flow;
        }
        return Flow::kOn;
    }
    Flow execute_in_scope(const Block& block) {
        const Scope scope(*this, here_);
        return execute(block);
    }

    Flow execute(const Statement& s) {
        using Step = Statement::Kind;
        switch (s.kind) {
            case Step::kText:
                budget_.bytes(s.text.size());
                out_.own(s.text);
                break;
            case Step::kPrint: {
                const Value value = evaluate(*s.expression);
                located(*s.expression, [&] { write(written(value, budget_)); });
                break;
            }
            case Step::kIf:
                for (const auto& [condition, body] : s.branches)
                    if (!condition || evaluate(*condition).truth()) return execute(body);
                break;
            case Step::kFor: {
                const Value items = evaluate(*s.expression);
                return located(*s.expression, [&] { return execute_for(s, items_of(items, budget_), here_, 0); });
            }
            case Step::kSet: {
                const Value value = evaluate(*s.expression);
                located(*s.expression, [&] { assign(s.target, value); });
                break;
            }
            case Step::kSetBlock: {
                Flow flow = Flow::kOn;
                Value value = captured([&] { flow = execute_in_scope(s.body); });
                if (s.expression) value = filtered(*s.expression, value);
                assign(s.target, value);
                return flow;
            }
            case Step::kWith: {
                std::vector<Value> values;
                for (const auto& [target, expression] : s.assignments) values.push_back(evaluate(*expression));
                const Scope scope(*this, here_);
                for (size_t i = 0; i < values.size(); ++i) assign(s.assignments[i].first, values[i]);
                return execute(s.body);
            }
            case Step::kMacro: {
                Value made = closure(*s.macro);
                set(s.macro->name, std::move(made));
                break;
            }
            case Step::kCall: {
                const Closure caller = closure(*s.macro);
                const Value value = located(*s.expression, [&] { return evaluate_call(*s.expression, &caller); });
                write(written(value, budget_));
                break;
            }
            case Step::kFilter: {
                Flow flow = Flow::kOn;
                const Value value = captured([&] { flow = execute_in_scope(s.body); });
                write(written(filtered(*s.expression, value), budget_));
                return flow;
            }
            case Step::kScope:
                return execute_in_scope(s.body);
            case Step::kDo:
                evaluate(*s.expression);
                break;
            case Step::kBreak:
                return Flow::kBreak;
            case Step::kContinue:
                return Flow::kContinue;
            case Step::kRefused:
                fail(TSR_UNSUPPORTED, "{}", s.text);
        }
        return Flow::kOn;
    }

    template <typename Body>
    Value captured(const Body& body) {
        Marked before = std::exchange(out_, {});
        try {
            body();
        } catch (...) {
            out_ = std::move(before);
            throw;
        }
        return Text(std::exchange(out_, std::move(before)));
    }

    // What a filter block or a set block makes of what it wrote.
    Value filtered(const Expression& chain, const Value& value) {
        if (chain.operation == Operation::kConstant) return value;
        const Value inner = filtered(*chain.operands[0], value);
        Arguments arguments = evaluate_arguments(chain);
        return located(chain, [&] { return call_filter(chain.name, inner, arguments, budget_); });
    }

    Flow execute_for(const Statement& s, std::vector<Value> items, Environment* outer, uint32_t depth) {
        if (s.condition) {
            std::vector<Value> kept;
            for (Value& item : items) {
                const Scope scope(*this, outer);
                assign(s.target, item);
                if (evaluate(*s.condition).truth()) kept.push_back(std::move(item));
            }
            items = std::move(kept);
        }
        const auto loop = std::make_shared<Loop>();
        budget_.container(0);
        loop->items = std::move(items);
        loop->depth = depth;
        loop->body = s.recursive ? &s : nullptr;
        loop->environment = outer;
        std::optional<Scope> scope;
        for (; loop->index < loop->items.size(); ++loop->index) {
            const Nesting nesting(*this);
            if (!scope || here_->kept)
                scope.emplace(*this, outer);
            else
                here_->variables.clear();
            set("loop", loop);
            assign(s.target, loop->items[loop->index]);
            if (execute(s.body) == Flow::kBreak) return Flow::kOn;
        }
        if (loop->items.empty()) {
            const Scope otherwise(*this, outer);
            return execute(s.otherwise);
        }
        return Flow::kOn;
    }

    // --- expressions ---

    Value evaluate(const Expression& e) {
        switch (e.operation) {
            case Operation::kConstant:
                budget_.step();
                return e.value;
            case Operation::kName: {
                budget_.step();
                const Value* found = find(e.name);
                return found ? *found : Value(Undefined{&e.name});
            }
            default:
                break;
        }
        const Nesting nesting(*this);
        return located(e, [&] { return evaluate_tree(e); });
    }

    Value evaluate_tree(const Expression& e) {
        switch (e.operation) {
            case Operation::kTuple:
            case Operation::kList: {
                std::vector<Value> items;
                budget_.container(e.operands.size());
                for (const ExpressionPtr& operand : e.operands) items.push_back(evaluate(*operand));
                return Value::list(std::move(items),
                                   e.operation == Operation::kTuple ? List::Kind::kTuple : List::Kind::kList);
            }
            case Operation::kDictionary: {
                budget_.container(e.operands.size());
                Dictionary made;
                for (size_t i = 0; i + 1 < e.operands.size(); i += 2) {
                    Value key = evaluate(*e.operands[i]);
                    made.set(std::move(key), evaluate(*e.operands[i + 1]));
                }
                return Value::dictionary(std::move(made));
            }
            case Operation::kAttribute:
                return attribute_of(evaluate(*e.operands[0]), e.name, budget_);
            case Operation::kSubscript: {
                const Value whole = evaluate(*e.operands[0]);
                const Value index = evaluate(*e.operands[1]);
                return item_of(whole, index, e.name.empty() ? nullptr : &e.name, budget_);
            }
            case Operation::kSlice: {
                const Value whole = evaluate(*e.operands[0]);
                const auto bound = [&](size_t i) { return e.operands[i] ? evaluate(*e.operands[i]) : Value::none(); };
                const Value begin = bound(1), end = bound(2), step = bound(3);
                return slice_of(whole, begin, end, step, budget_);
            }
            case Operation::kCall:
                return evaluate_call(e, nullptr);
            case Operation::kFilter: {
                const Value value = evaluate(*e.operands[0]);
                Arguments arguments = evaluate_arguments(e);
                return call_filter(e.name, value, arguments, budget_);
            }
            case Operation::kTest: {
                const Value value = evaluate(*e.operands[0]);
                Arguments arguments = evaluate_arguments(e);
                return call_test(e.name, value, arguments, budget_);
            }
            case Operation::kNot:
                return !evaluate(*e.operands[0]).truth();
            case Operation::kNegate:
                return negated(evaluate(*e.operands[0]));
            case Operation::kPlus: {
                const Value value = evaluate(*e.operands[0]);
                if (!value.is_number()) refuse("a sign", value);
                return value.get<bool>() ? Value(value.integer()) : value;
            }
            case Operation::kAnd:
            case Operation::kOr: {
                Value left = evaluate(*e.operands[0]);
                return left.truth() == (e.operation == Operation::kOr) ? left : evaluate(*e.operands[1]);
            }
            case Operation::kConditional:
                if (evaluate(*e.operands[1]).truth()) return evaluate(*e.operands[0]);
                return e.operands[2] ? evaluate(*e.operands[2]) : Value();
            case Operation::kConcatenate: {
                Text joined;
                for (size_t i = 0; i < e.operands.size(); ++i) {
                    Text one = written(evaluate(*e.operands[i]), budget_);
                    one.markup = false;
                    if (i == 0)
                        joined = std::move(one);
                    else
                        budget_.bytes(joined.append(one));
                }
                return joined;
            }
            case Operation::kCompare: {
                Value left = evaluate(*e.operands[0]);
                for (size_t i = 0; i < e.comparisons.size(); ++i) {
                    Value right = evaluate(*e.operands[i + 1]);
                    if (!is_so(e.comparisons[i], left, right)) return false;
                    left = std::move(right);
                }
                return true;
            }
            default:
                break;
        }
        Value left = evaluate(*e.operands[0]);
        const Value right = evaluate(*e.operands[1]);
        return calculate(arithmetic(e.operation), std::move(left), right, budget_);
    }

    static Arithmetic arithmetic(Operation operation) {
        switch (operation) {
            case Operation::kAdd:
                return Arithmetic::kAdd;
            case Operation::kSubtract:
                return Arithmetic::kSubtract;
            case Operation::kMultiply:
                return Arithmetic::kMultiply;
            case Operation::kDivide:
                return Arithmetic::kDivide;
            case Operation::kFloorDivide:
                return Arithmetic::kFloorDivide;
            case Operation::kModulo:
                return Arithmetic::kModulo;
            default:
                return Arithmetic::kPower;
        }
    }

    bool is_so(Comparison comparison, const Value& left, const Value& right) {
        switch (comparison) {
            case Comparison::kEqual:
            case Comparison::kNotEqual:
                return are_equal(left, right, budget_) == (comparison == Comparison::kEqual);
            case Comparison::kIn:
            case Comparison::kNotIn:
                return holds(right, left, budget_) == (comparison == Comparison::kIn);
            case Comparison::kLess:
                return compare(left, right) < 0;
            case Comparison::kLessEqual:
                return compare(left, right) <= 0;
            case Comparison::kGreater:
                return compare(left, right) > 0;
            default:
                return compare(left, right) >= 0;
        }
    }

    Arguments evaluate_arguments(const Expression& e) {
        Arguments arguments;
        budget_.items(e.operands.size() - 1 + e.named.size());
        for (size_t i = 1; i < e.operands.size(); ++i) arguments.positional.push_back(evaluate(*e.operands[i]));
        for (const auto& [name, operand] : e.named) arguments.named.emplace_back(name, evaluate(*operand));
        if (e.more) {
            const Value list = evaluate(*e.more);
            if (list.is_undefined()) refuse("arguments", list);
            for (Value& item : items_of(list, budget_)) arguments.positional.push_back(std::move(item));
        }
        if (e.more_named) {
            const Value members = evaluate(*e.more_named);
            if (!members.dictionary()) refuse("arguments by name", members);
            for (const auto& [key, member] : members.dictionary()->members) {
                budget_.items(1);
                if (!key.is_text() || arguments.has(Arguments::kNamedOnly, key.view()))
                    fail(TSR_UNSUPPORTED, "an argument that is given twice, or has no name");
                arguments.named.emplace_back(key.view(), member);
            }
        }
        return arguments;
    }

    Value evaluate_call(const Expression& e, const Closure* caller) {
        const Expression& callee = *e.operands[0];
        Value function;
        if (callee.operation == Operation::kAttribute) {
            const Value whole = evaluate(*callee.operands[0]);
            const Method method = method_of(whole, callee.name);
            if (method == Method::kPure || (method == Method::kChanges && budget_.may_change)) {
                Arguments arguments = evaluate_arguments(e);
                if (caller) refuse("a call block", whole);
                return call_method(callee.name, whole, arguments, budget_);
            }
            function = attribute_of(whole, callee.name, budget_);
        } else {
            function = evaluate(callee);
        }
        Arguments arguments = evaluate_arguments(e);
        if (const Closure* closure = function.get<Closure>()) return call_macro(*closure, arguments, caller);
        if (caller) refuse("a call block", function);
        if (const auto* callable = function.get<std::shared_ptr<Callable>>()) return call(**callable, arguments);
        if (const auto* loop = function.get<std::shared_ptr<Loop>>()) return call_loop(**loop, arguments);
        refuse("a call", function);
    }

    Value call_loop(const Loop& loop, Arguments& arguments) {
        const Value items = arguments.take(0, "iterable");
        arguments.finish();
        if (!loop.body) fail(TSR_UNSUPPORTED, "a loop that calls itself without 'recursive'");
        const auto& statement = *static_cast<const Statement*>(loop.body);
        return captured([&] { execute_for(statement, items_of(items, budget_), loop.environment, loop.depth + 1); });
    }

    Value call(Callable& function, Arguments& arguments) {
        switch (function.kind) {
            case Callable::Kind::kRange:
                return range(arguments);
            case Callable::Kind::kNamespace: {
                const Value members = dictionary(arguments);
                auto made = std::make_shared<Namespace>();
                budget_.items(1);
                spaces_.push_back(made);
                for (const auto& [key, member] : members.dictionary()->members) {
                    if (!key.is_text()) refuse("a member's name", key);
                    made->members.emplace_back(key.view(), member);
                }
                return made;
            }
            case Callable::Kind::kDictionary:
                return dictionary(arguments);
            case Callable::Kind::kCycler: {
                auto made = std::make_shared<Cycler>();
                for (size_t i = 0; i < arguments.positional.size(); ++i) made->items.push_back(arguments.take(i, ""));
                arguments.finish();
                if (made->items.empty()) fail(TSR_UNSUPPORTED, "cycler without values");
                made->depth = Value::list(made->items).list()->depth;
                return made;
            }
            case Callable::Kind::kJoiner: {
                Value separator = arguments.take(0, "sep");
                arguments.finish();
                if (separator.is_undefined()) separator = Value::text(", ");
                return std::make_shared<Callable>(
                    Callable{Callable::Kind::kJoinOnce, std::make_shared<Value>(std::move(separator))});
            }
            case Callable::Kind::kJoinOnce:
                arguments.finish();
                return function.calls++ == 0 ? Value(Text()) : *function.self;
            case Callable::Kind::kLipsum:
                fail(TSR_UNSUPPORTED, "lipsum, whose text is made by chance");
            case Callable::Kind::kRaise: {
                const Value message = arguments.take(0, "message");
                arguments.finish();
                // In full for a client; as it is fit to print.
                constexpr size_t kMost = 2000;
                fail(TSR_INVALID_ARGUMENT, "{}", printable(written(message, budget_).view(), kMost));
            }
            case Callable::Kind::kTime: {
                const auto format = arguments.take_text(0, "format");
                arguments.finish();
                if (!format) fail(TSR_UNSUPPORTED, "strftime_now without a format");
                std::string text = time_text(format->view(), now_);
                budget_.text(text.size());
                return Text(std::move(text));
            }
            case Callable::Kind::kMethod:
                return call_method(function.name, *function.self, arguments, budget_);
        }
        return {};
    }

    // What dict() makes of its arguments.
    Value dictionary(Arguments& arguments) {
        Dictionary made;
        const Value first = arguments.take(0, "");
        budget_.container(arguments.named.size());
        if (const Dictionary* given = first.dictionary()) {
            budget_.items(given->members.size());
            for (const auto& [key, member] : given->members) made.set(key, member);
        } else if (!arguments.positional.empty()) {
            for (const Value& pair : items_of(first, budget_)) {
                std::vector<Value> two = items_of(pair, budget_);
                if (two.size() != 2) fail(TSR_UNSUPPORTED, "dict of what are no pairs");
                made.set(std::move(two[0]), std::move(two[1]));
            }
        }
        for (const auto& [name, value] : arguments.named)
            made.set(Value::text(name), arguments.take(Arguments::kNamedOnly, name));
        arguments.finish();
        return Value::dictionary(std::move(made));
    }

    Value range(Arguments& arguments) {
        const auto first = arguments.take_integer(0, ""), second = arguments.take_integer(1, "");
        const auto third = arguments.take_integer(2, "");
        arguments.finish();
        const bool missing =
            !first || (arguments.positional.size() > 1 && !second) || (arguments.positional.size() > 2 && !third);
        if (missing) fail(TSR_UNSUPPORTED, "range without a number");
        const int64_t begin = second ? *first : 0, end = second.value_or(*first), step = third.value_or(1);
        if (step == 0) fail(TSR_UNSUPPORTED, "range with steps of zero");
        std::vector<Value> numbers;
        for (int64_t at = begin; step > 0 ? at < end : at > end;) {
            budget_.items(1);
            if (static_cast<int64_t>(numbers.size()) >= kLongestRange)
                fail(TSR_UNSUPPORTED, "a range of more than {} numbers", kLongestRange);
            numbers.emplace_back(at);
            if (__builtin_add_overflow(at, step, &at)) break;
        }
        Value made = Value::list(std::move(numbers), List::Kind::kRange);
        made.list()->range = {begin, end, step};
        return made;
    }

    Value call_macro(const Closure& closure, Arguments& arguments, const Closure* caller) {
        const Macro& macro = *closure.macro;
        const size_t count = macro.parameters.size();
        const Nesting nesting(*this);
        const Scope scope(*this, closure.environment);
        std::vector<bool> given(count);
        for (size_t i = 0; i < count; ++i) {
            const std::string& name = macro.parameters[i].first;
            given[i] = arguments.has(i, name);
            if (given[i] && i < arguments.positional.size() && arguments.has(Arguments::kNamedOnly, name))
                fail(TSR_UNSUPPORTED, "the argument '{}' is given twice", name);
            if (given[i]) here_->variables.emplace_back(name, arguments.take(i, name));
        }
        if (macro.takes_caller) {
            Value called = arguments.take(Arguments::kNamedOnly, "caller");
            here_->variables.emplace_back("caller", caller ? Value(*caller) : called);
        } else if (caller && !macro.takes_more_named) {
            fail(TSR_UNSUPPORTED, "the macro '{}' has no use for a call block: it never calls caller()", macro.name);
        }
        if (macro.takes_more_named) {
            Dictionary more;
            for (const auto& one : arguments.named) {
                const std::string& name = one.first;
                const bool known = std::ranges::any_of(macro.parameters,
                                                       [&](const auto& parameter) { return parameter.first == name; });
                if (!known && !(macro.takes_caller && name == "caller"))
                    more.set(Value::text(name), arguments.take(Arguments::kNamedOnly, name));
            }
            if (caller && !macro.takes_caller) more.set(Value::text("caller"), *caller);
            budget_.container(more.members.size());
            here_->variables.emplace_back("kwargs", Value::dictionary(std::move(more)));
        }
        if (macro.takes_more) {
            std::vector<Value> more;
            for (size_t i = count; i < arguments.positional.size(); ++i) more.push_back(arguments.take(i, ""));
            budget_.container(more.size());
            here_->variables.emplace_back("varargs", Value::list(std::move(more), List::Kind::kTuple));
        }
        arguments.finish();
        for (size_t i = 0; i < count; ++i) {
            const auto& [name, fallback] = macro.parameters[i];
            if (!given[i])
                here_->variables.emplace_back(name, fallback ? evaluate(*fallback) : Value(Undefined{&name}));
        }
        return captured([&] { execute(macro.body); });
    }

    Budget budget_;
    const std::time_t now_;
    Environment globals_;
    Environment* here_ = nullptr;
    std::vector<std::unique_ptr<Environment>> kept_;
    std::vector<std::shared_ptr<Namespace>> spaces_;  // all that were made
    Marked out_;
    uint32_t depth_ = 0;
    uint32_t line_ = 1;
    const Expression* fault_ = nullptr;
};

}  // namespace

std::string_view macro_name(const Closure& closure) {
    return closure.macro->name;
}

std::string time_text(std::string_view format, std::time_t now) {
    std::tm time{};
    localtime_r(&now, &time);
    static const locale_t english = newlocale(LC_ALL_MASK, "C", nullptr);
    // A time of Python without a zone writes none. So that nothing written is told apart from what does not fit, a
    // blank follows.
    std::string marked;
    for (size_t i = 0; i < format.size(); ++i) {
        const bool zone = format[i] == '%' && i + 1 < format.size() && (format[i + 1] | 0x20) == 'z';
        if (!zone) marked += format[i];
        if (format[i] != '%' || i + 1 == format.size()) continue;
        ++i;
        if (!zone) marked += format[i];
    }
    marked += ' ';
    std::string out(64, '\0');
    constexpr size_t kMost = 1 << 16;
    while (out.size() < kMost) {
        const size_t length = strftime_l(out.data(), out.size(), marked.c_str(), &time, english);
        if (length > 0) {
            out.resize(length - 1);
            return out;
        }
        out.resize(out.size() * 4);
    }
    fail(TSR_UNSUPPORTED, "strftime_now with a format that makes a long text");
}

Program::Program(std::string_view text) : template_(parse(text)) {}
Program::~Program() = default;
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;

Marked Program::run(const Variables& variables, const RunOptions& options) const {
    return Runner(variables, options).run(template_->block);
}

std::string_view Program::source() const noexcept {
    return template_->source;
}

}  // namespace tessera::text::jinja
