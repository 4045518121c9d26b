#include "core/text/jinja/program.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/text/jinja/functions.hpp"
#include "core/text/jinja/syntax.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace tessera::text::jinja {
namespace {

// Of expressions and statements within one another, macros included.
constexpr uint32_t kMaximumRunningDepth = 600;

enum class Flow : uint8_t { kOn, kBreak, kContinue };

// The variable "loop".
struct Loop {
    const std::vector<Value>& items;
    size_t index = 0;
};

struct Scope {
    std::vector<std::pair<std::string_view, Value>> variables;
    const Loop* loop = nullptr;
};

int64_t integer(const Value& value) {
    if (const bool* truth = value.get<bool>()) return *truth ? 1 : 0;
    if (const int64_t* number = value.get<int64_t>()) return *number;
    fail(TSR_UNSUPPORTED, "arithmetic with {}", value.kind());
}

// One run.
class Runner {
  public:
    Runner(const Program::Variables& variables, const RunOptions& options)
        : budget_(options.steps, options.bytes), now_(options.now) {
        scopes_.emplace_back();
        for (const auto& [name, function] :
             std::initializer_list<std::pair<std::string_view, Function>>{{"range", Function::kRange},
                                                                          {"namespace", Function::kNamespace},
                                                                          {"dict", Function::kDictionary},
                                                                          {"raise_exception", Function::kRaise},
                                                                          {"strftime_now", Function::kTime}})
            scopes_.front().variables.emplace_back(name, function);
        for (const auto& [name, value] : variables) set(name, value);
    }

    std::string run(const Block& block) {
        try {
            execute(block);
        } catch (const Error& error) {
            throw Error(error.code(), fmt::format("line {}: {}", line_, error.what()));
        }
        return std::move(out_);
    }

  private:
    class Nesting {
      public:
        explicit Nesting(Runner& runner) : runner_(runner) {
            if (++runner_.depth_ > kMaximumRunningDepth) fail(TSR_UNSUPPORTED, "nested deeper than a template may be");
            runner_.budget_.step();
        }
        ~Nesting() { --runner_.depth_; }
        Nesting(const Nesting&) = delete;
        Nesting& operator=(const Nesting&) = delete;

      private:
        Runner& runner_;
    };

    void write(std::string_view text) {
        budget_.bytes(text.size());
        out_ += text;
    }

    // --- variables ---

    const Value* find(std::string_view name) {
        for (size_t i = scopes_.size(); i-- > 0;) {
            if (i < floor_ && i > 0) continue;
            const auto& variables = scopes_[i].variables;
            budget_.step(variables.size() / 16);
            const auto found = std::ranges::find(variables, name, &std::pair<std::string_view, Value>::first);
            if (found != variables.end()) return &found->second;
        }
        return nullptr;
    }
    void set(std::string_view name, Value value) {
        auto& variables = scopes_.back().variables;
        budget_.step(variables.size() / 16);
        const auto found = std::ranges::find(variables, name, &std::pair<std::string_view, Value>::first);
        if (found != variables.end()) {
            found->second = std::move(value);
        } else {
            variables.emplace_back(name, std::move(value));
        }
    }
    const Loop* find_loop() const {
        for (size_t i = scopes_.size(); i-- > floor_;)
            if (scopes_[i].loop) return scopes_[i].loop;
        return nullptr;
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

    Flow execute(const Statement& s) {
        using Kind = Statement::Kind;
        switch (s.kind) {
            case Kind::kText:
                write(s.text);
                break;
            case Kind::kPrint: {
                // Elsewhere "safe" makes Python escape what is added to the text.
                const bool safe = s.expression->operation == Operation::kFilter && s.expression->name == "safe" &&
                                  s.expression->operands.size() == 1;
                const Value value = evaluate(safe ? *s.expression->operands[0] : *s.expression);
                value.is_text() ? write(value.view()) : write(written(value, budget_));
                break;
            }
            case Kind::kIf:
                for (const auto& [condition, body] : s.branches)
                    if (!condition || evaluate(*condition).truth()) return execute(body);
                break;
            case Kind::kFor:
                execute_for(s);
                break;
            case Kind::kSet:
                assign(s.targets, evaluate(*s.expression));
                break;
            case Kind::kSetMember:
                set_member(s);
                break;
            case Kind::kSetBlock: {
                Value value = captured([&] { execute(s.body); });
                set(s.targets.front(), std::move(value));
                break;
            }
            case Kind::kMacro:
                set(s.macro->name, static_cast<const Macro*>(s.macro.get()));
                break;
            case Kind::kBreak:
                return Flow::kBreak;
            case Kind::kContinue:
                return Flow::kContinue;
        }
        return Flow::kOn;
    }

    template <typename Body>
    Value captured(const Body& body) {
        std::string before = std::exchange(out_, {});
        body();
        return Text(std::exchange(out_, std::move(before)));
    }

    void assign(const std::vector<std::string>& targets, const Value& value) {
        if (targets.size() == 1) return set(targets.front(), value);
        const List* list = value.list();
        if (!list || list->items.size() != targets.size())
            fail(TSR_UNSUPPORTED, "{} names for {}", targets.size(), value.kind());
        for (size_t i = 0; i < targets.size(); ++i) set(targets[i], list->items[i]);
    }

    void set_member(const Statement& s) {
        Value value = evaluate(*s.expression);
        const Value* variable = find(s.targets[0]);
        const auto* space = variable ? variable->get<std::shared_ptr<Namespace>>() : nullptr;
        if (!space) fail(TSR_UNSUPPORTED, "'{}' is no namespace", s.targets[0]);
        if (value.get<std::shared_ptr<Namespace>>()) fail(TSR_UNSUPPORTED, "a namespace within another");
        auto& members = (*space)->members;
        budget_.step(members.size() / 16);
        const auto found = std::ranges::find(members, s.targets[1], &std::pair<std::string, Value>::first);
        if (found != members.end()) {
            found->second = std::move(value);
        } else {
            members.emplace_back(s.targets[1], std::move(value));
        }
    }

    void execute_for(const Statement& s) {
        std::vector<Value> items = items_of(evaluate(*s.expression), budget_);
        if (s.condition) {
            std::vector<Value> kept;
            for (Value& item : items) {
                const ScopeGuard scope(*this, nullptr);
                assign(s.targets, item);
                if (evaluate(*s.condition).truth()) kept.push_back(std::move(item));
            }
            items = std::move(kept);
        }
        Loop loop{items};
        for (; loop.index < items.size(); ++loop.index) {
            const ScopeGuard scope(*this, &loop);
            assign(s.targets, items[loop.index]);
            if (execute(s.body) == Flow::kBreak) return;
        }
        if (items.empty()) {
            const ScopeGuard scope(*this, nullptr);
            execute(s.otherwise);
        }
    }

    class ScopeGuard {
      public:
        ScopeGuard(Runner& runner, const Loop* loop) : runner_(runner) {
            runner_.scopes_.emplace_back();
            runner_.scopes_.back().loop = loop;
        }
        ~ScopeGuard() { runner_.scopes_.pop_back(); }
        ScopeGuard(const ScopeGuard&) = delete;
        ScopeGuard& operator=(const ScopeGuard&) = delete;

      private:
        Runner& runner_;
    };

    // --- expressions ---

    Value evaluate(const Expression& e) {
        const Nesting nesting(*this);
        switch (e.operation) {
            case Operation::kConstant:
                return e.value;
            case Operation::kName:
                return evaluate_name(e);
            case Operation::kTuple:
            case Operation::kList: {
                std::vector<Value> items;
                budget_.container(e.operands.size());
                for (const ExpressionPtr& operand : e.operands) items.push_back(evaluate(*operand));
                return Value::list(std::move(items),
                                   e.operation == Operation::kTuple ? List::Kind::kTuple : List::Kind::kList);
            }
            case Operation::kDictionary:
                return evaluate_dictionary(e);
            case Operation::kAttribute:
                return evaluate_attribute(e);
            case Operation::kSubscript: {
                const Value whole = evaluate(*e.operands[0]);
                return item_of(whole, evaluate(*e.operands[1]), budget_);
            }
            case Operation::kSlice:
                return evaluate_slice(e);
            case Operation::kCall:
                return evaluate_call(e);
            case Operation::kFilter: {
                Value value = evaluate(*e.operands[0]);
                Arguments arguments = evaluate_arguments(e);
                return call_filter(e.name, std::move(value), arguments, budget_);
            }
            case Operation::kTest: {
                const Value value = evaluate(*e.operands[0]);
                Arguments arguments = evaluate_arguments(e);
                return call_test(e.name, value, arguments, budget_);
            }
            case Operation::kNot:
                return !evaluate(*e.operands[0]).truth();
            case Operation::kNegate:
                return calculate(Operation::kSubtract, 0, integer(evaluate(*e.operands[0])));
            case Operation::kAnd:
            case Operation::kOr: {
                Value left = evaluate(*e.operands[0]);
                return left.truth() == (e.operation == Operation::kOr) ? left : evaluate(*e.operands[1]);
            }
            case Operation::kConditional:
                if (evaluate(*e.operands[1]).truth()) return evaluate(*e.operands[0]);
                return e.operands[2] ? evaluate(*e.operands[2]) : Value();
            default:
                break;
        }
        Value left = evaluate(*e.operands[0]);
        const Value right = evaluate(*e.operands[1]);
        return combine(e.operation, std::move(left), right);
    }

    Value combine(Operation operation, Value left, const Value& right) {
        switch (operation) {
            case Operation::kAdd:
                return add(std::move(left), right);
            case Operation::kConcatenate: {
                if (!left.is_text()) left = Text(written(left, budget_));
                return append(std::move(left), right.is_text() ? right.view() : written(right, budget_));
            }
            case Operation::kEqual:
            case Operation::kNotEqual:
                return are_equal(left, right, budget_) == (operation == Operation::kEqual);
            case Operation::kIn:
            case Operation::kNotIn:
                return holds(right, left, budget_) == (operation == Operation::kIn);
            case Operation::kLess:
            case Operation::kLessEqual:
            case Operation::kGreater:
            case Operation::kGreaterEqual:
                return compare(operation, left, right);
            default:
                return calculate(operation, integer(left), integer(right));
        }
    }

    Value append(Value left, std::string_view right) {
        budget_.bytes(left.text_to_change()->append(right));
        return left;
    }

    Value add(Value left, const Value& right) {
        if (left.is_text() && right.is_text()) return append(std::move(left), right.view());
        left.refuse_iterator();
        right.refuse_iterator();
        if (left.list() && right.list() && left.list()->kind == right.list()->kind) {
            budget_.container(left.list()->items.size() + right.list()->items.size());
            std::vector<Value> items = left.list()->items;
            items.insert(items.end(), right.list()->items.begin(), right.list()->items.end());
            return Value::list(std::move(items), right.list()->kind);
        }
        return calculate(Operation::kAdd, integer(left), integer(right));
    }

    static Value calculate(Operation operation, int64_t left, int64_t right) {
        int64_t result = 0;
        bool fails = false;
        switch (operation) {
            case Operation::kAdd:
                fails = __builtin_add_overflow(left, right, &result);
                break;
            case Operation::kSubtract:
                fails = __builtin_sub_overflow(left, right, &result);
                break;
            case Operation::kMultiply:
                fails = __builtin_mul_overflow(left, right, &result);
                break;
            default: {
                // Python rounds down, and the rest has the sign of the divisor.
                fails = right == 0;
                if (fails) break;
                // Division by -1 is negation, which the processor's division of the least number is not.
                if (right == -1) {
                    if (operation != Operation::kModulo) fails = __builtin_sub_overflow(0, left, &result);
                    break;
                }
                const int64_t rest = left % right;
                const bool down = rest != 0 && (rest < 0) != (right < 0);
                result = operation == Operation::kModulo ? rest + (down ? right : 0) : left / right - (down ? 1 : 0);
            }
        }
        if (fails) fail(TSR_UNSUPPORTED, "arithmetic that leaves 64 bits");
        return result;
    }

    static Value compare(Operation operation, const Value& left, const Value& right) {
        std::strong_ordering order = std::strong_ordering::equal;
        if (left.is_text() && right.is_text()) {
            order = left.view() <=> right.view();
        } else {
            order = integer(left) <=> integer(right);
        }
        switch (operation) {
            case Operation::kLess:
                return order < 0;
            case Operation::kLessEqual:
                return order <= 0;
            case Operation::kGreater:
                return order > 0;
            default:
                return order >= 0;
        }
    }

    Value evaluate_name(const Expression& e) {
        const Value* found = find(e.name);
        if (!found && e.name == "loop" && find_loop()) fail(TSR_UNSUPPORTED, "the variable loop but for its members");
        return found ? *found : Value();
    }

    Value evaluate_dictionary(const Expression& e) {
        budget_.container(e.operands.size() / 2);
        std::vector<std::pair<std::string, Value>> members;
        for (size_t i = 0; i + 1 < e.operands.size(); i += 2) {
            const Value key = evaluate(*e.operands[i]);
            if (!key.is_text()) fail(TSR_UNSUPPORTED, "{} as a key", key.kind());
            budget_.text(key.view().size());
            budget_.step(members.size() / 16);
            Value value = evaluate(*e.operands[i + 1]);
            const auto found =
                std::ranges::find(members, key.view(), [](const auto& one) -> std::string_view { return one.first; });
            if (found != members.end()) {
                found->second = std::move(value);
            } else {
                members.emplace_back(key.view(), std::move(value));
            }
        }
        return Value::dictionary(std::move(members));
    }

    Value evaluate_attribute(const Expression& e) {
        const Expression& whole = *e.operands[0];
        if (whole.operation == Operation::kName && whole.name == "loop" && !find("loop"))
            if (const Loop* loop = find_loop()) return member_of(*loop, e.name);
        const Value value = evaluate(whole);
        if (value.is_undefined())
            fail(TSR_UNSUPPORTED, "'{}' of a variable that is not defined{}", e.name,
                 whole.name.empty() ? "" : " ('" + whole.name + "')");
        if (const auto* space = value.get<std::shared_ptr<Namespace>>()) {
            const auto& members = (*space)->members;
            budget_.step(members.size() / 16);
            const auto found = std::ranges::find(members, e.name, &std::pair<std::string, Value>::first);
            return found == members.end() ? Value() : found->second;
        }
        const Dictionary* dictionary = value.dictionary();
        if (!dictionary) return {};
        // Python would give the method.
        constexpr std::array<std::string_view, 9> methods = {"items", "keys",   "values", "get",       "pop",
                                                             "copy",  "update", "clear",  "setdefault"};
        if (std::ranges::find(methods, e.name) != methods.end())
            fail(TSR_UNSUPPORTED, "the method '{}' without a call", e.name);
        const Value* found = dictionary->find(e.name);
        return found ? *found : Value();
    }

    static Value member_of(const Loop& loop, std::string_view name) {
        const size_t count = loop.items.size();
        if (name == "index") return static_cast<int64_t>(loop.index + 1);
        if (name == "index0") return static_cast<int64_t>(loop.index);
        if (name == "revindex") return static_cast<int64_t>(count - loop.index);
        if (name == "revindex0") return static_cast<int64_t>(count - loop.index - 1);
        if (name == "length") return static_cast<int64_t>(count);
        if (name == "first") return loop.index == 0;
        if (name == "last") return loop.index + 1 == count;
        if (name == "previtem") return loop.index > 0 ? loop.items[loop.index - 1] : Value();
        if (name == "nextitem") return loop.index + 1 < count ? loop.items[loop.index + 1] : Value();
        fail(TSR_UNSUPPORTED, "loop.{} is not known", name);
    }

    Value evaluate_slice(const Expression& e) {
        const Value whole = evaluate(*e.operands[0]);
        const auto bound = [&](size_t i) -> std::optional<int64_t> {
            if (!e.operands[i]) return {};
            const Value value = evaluate(*e.operands[i]);
            if (value.is_none()) return {};
            return integer(value);
        };
        const auto begin = bound(1), end = bound(2), step = bound(3);
        return slice_of(whole, begin, end, step.value_or(1), budget_);
    }

    Arguments evaluate_arguments(const Expression& e) {
        Arguments arguments;
        for (size_t i = 1; i < e.operands.size(); ++i) arguments.positional.push_back(evaluate(*e.operands[i]));
        for (const auto& [name, operand] : e.named) arguments.named.emplace_back(name, evaluate(*operand));
        return arguments;
    }

    Value evaluate_call(const Expression& e) {
        const Expression& callee = *e.operands[0];
        if (callee.operation == Operation::kAttribute) {
            const Value whole = evaluate(*callee.operands[0]);
            if (whole.is_undefined()) fail(TSR_UNSUPPORTED, "'{}' of a variable that is not defined", callee.name);
            Arguments arguments = evaluate_arguments(e);
            return call_method(callee.name, whole, arguments, budget_);
        }
        const Value function = evaluate(callee);
        Arguments arguments = evaluate_arguments(e);
        if (const auto* macro = function.get<const Macro*>()) return call_macro(**macro, arguments);
        const Function* known = function.get<Function>();
        if (!known)
            fail(TSR_UNSUPPORTED, "{} called{}", function.kind(),
                 callee.name.empty() ? "" : " ('" + callee.name + "')");
        return call_function(*known, arguments);
    }

    Value call_function(Function function, Arguments& arguments) {
        if (function == Function::kNamespace || function == Function::kDictionary) {
            if (!arguments.positional.empty()) fail(TSR_UNSUPPORTED, "an argument without a name");
            budget_.container(arguments.named.size());
            std::vector<std::pair<std::string, Value>> members;
            for (const auto& [name, value] : arguments.named) {
                budget_.text(name.size());
                members.emplace_back(name, value);
            }
            if (function == Function::kDictionary) return Value::dictionary(std::move(members));
            for (const auto& member : members)
                if (member.second.get<std::shared_ptr<Namespace>>())
                    fail(TSR_UNSUPPORTED, "a namespace within another");
            auto space = std::make_shared<Namespace>();
            space->members = std::move(members);
            return space;
        }
        if (function == Function::kRange) return range(arguments);
        const auto text = arguments.take_text(0, function == Function::kRaise ? "message" : "format");
        arguments.finish();
        if (!text) fail(TSR_UNSUPPORTED, "a call without a text");
        if (function == Function::kRaise) fail(TSR_INVALID_ARGUMENT, "{}", printable(text->view(), 2000));
        budget_.text(5 * text->view().size());  // a name of a day or month for two bytes
        return Text(time_text(text->view(), now_));
    }

    Value range(Arguments& arguments) {
        const auto first = arguments.take_integer(0, ""), second = arguments.take_integer(1, ""),
                   third = arguments.take_integer(2, "");
        arguments.finish();
        if (!first) fail(TSR_UNSUPPORTED, "range without a number");
        const int64_t step = third.value_or(1);
        if (step == 0) fail(TSR_UNSUPPORTED, "range with steps of 0");
        budget_.container(0);
        std::vector<Value> numbers;
        const int64_t end = second.value_or(*first);
        for (int64_t at = second ? *first : 0; step > 0 ? at < end : at > end;) {
            budget_.items(1);
            numbers.emplace_back(at);
            if (__builtin_add_overflow(at, step, &at)) break;
        }
        return Value::list(std::move(numbers));
    }

    Value call_macro(const Macro& macro, Arguments& arguments) {
        std::vector<Value> values;
        for (size_t i = 0; i < macro.parameters.size(); ++i)
            values.push_back(arguments.take(i, macro.parameters[i].first));
        arguments.finish();
        const size_t floor = std::exchange(floor_, scopes_.size());
        const ScopeGuard guard(*this, nullptr);
        for (size_t i = 0; i < values.size(); ++i) {
            const auto& [name, fallback] = macro.parameters[i];
            set(name, values[i].is_undefined() && fallback ? evaluate(*fallback) : values[i]);
        }
        Value text = captured([&] { execute(macro.body); });
        floor_ = floor;
        return text;
    }

    Budget budget_;
    const std::time_t now_;
    std::vector<Scope> scopes_;
    size_t floor_ = 0;  // scopes below, but for the first, are not seen: a macro's beginning
    std::string out_;
    uint32_t depth_ = 0;
    uint32_t line_ = 1;
};

}  // namespace

std::string time_text(std::string_view format, std::time_t now) {
    constexpr std::array<std::string_view, 12> months = {"January",   "February", "March",    "April",
                                                         "May",       "June",     "July",     "August",
                                                         "September", "October",  "November", "December"};
    constexpr std::array<std::string_view, 7> days = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                      "Thursday", "Friday", "Saturday"};
    std::tm time{};
    localtime_r(&now, &time);
    const std::string_view month = months[static_cast<size_t>(time.tm_mon)],
                           day = days[static_cast<size_t>(time.tm_wday)];
    std::string out;
    for (size_t i = 0; i < format.size(); ++i) {
        if (format[i] != '%') {
            out += format[i];
            continue;
        }
        const char c = ++i < format.size() ? format[i] : '\0';
        switch (c) {
            case 'd':
                out += fmt::format("{:02}", time.tm_mday);
                break;
            case 'm':
                out += fmt::format("{:02}", time.tm_mon + 1);
                break;
            case 'Y':
                out += std::to_string(time.tm_year + 1900);
                break;
            case 'b':
                out += month.substr(0, 3);
                break;
            case 'B':
                out += month;
                break;
            case 'a':
                out += day.substr(0, 3);
                break;
            case 'A':
                out += day;
                break;
            case 'H':
                out += fmt::format("{:02}", time.tm_hour);
                break;
            case 'M':
                out += fmt::format("{:02}", time.tm_min);
                break;
            case 'S':
                out += fmt::format("{:02}", time.tm_sec);
                break;
            case '%':
                out += '%';
                break;
            default:
                fail(TSR_UNSUPPORTED, "strftime_now with a format that is not known");
        }
    }
    return out;
}

struct Program::State {
    Block block;
};

Program::Program(std::string_view text) : state_(std::make_unique<State>(parse(text))) {}
Program::~Program() = default;
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;

std::string Program::run(const Variables& variables, const RunOptions& options) const {
    return Runner(variables, options).run(state_->block);
}

}  // namespace tessera::text::jinja
