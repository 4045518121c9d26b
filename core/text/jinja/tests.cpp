// Tests of Jinja.
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/text/jinja/functions.hpp"

#include <algorithm>
#include <array>

namespace tessera::text::jinja {
namespace {

// Names of tests, and what else they are called.
constexpr std::array<std::pair<std::string_view, std::string_view>, 39> kTests = {{
    {"boolean", "boolean"},
    {"callable", "callable"},
    {"defined", "defined"},
    {"divisibleby", "divisibleby"},
    {"eq", "eq"},
    {"==", "eq"},
    {"equalto", "eq"},
    {"escaped", "escaped"},
    {"even", "even"},
    {"false", "false"},
    {"filter", "filter"},
    {"float", "float"},
    {"ge", "ge"},
    {">=", "ge"},
    {"gt", "gt"},
    {">", "gt"},
    {"greaterthan", "gt"},
    {"in", "in"},
    {"integer", "integer"},
    {"iterable", "iterable"},
    {"le", "le"},
    {"<=", "le"},
    {"lower", "lower"},
    {"lt", "lt"},
    {"<", "lt"},
    {"lessthan", "lt"},
    {"mapping", "mapping"},
    {"ne", "ne"},
    {"!=", "ne"},
    {"none", "none"},
    {"number", "number"},
    {"odd", "odd"},
    {"sameas", "sameas"},
    {"sequence", "sequence"},
    {"string", "string"},
    {"test", "test"},
    {"true", "true"},
    {"undefined", "undefined"},
    {"upper", "upper"},
}};

}  // namespace

bool is_test(std::string_view name) {
    return std::ranges::find(kTests, name, &std::pair<std::string_view, std::string_view>::first) != kTests.end();
}

bool call_test(std::string_view name, const Value& value, Arguments& arguments, Budget& budget) {
    const auto found = std::ranges::find(kTests, name, &std::pair<std::string_view, std::string_view>::first);
    if (found == kTests.end()) fail(TSR_UNSUPPORTED, "the test '{}' is not known", printable(name));
    const std::string_view test = found->second;
    constexpr std::array<std::string_view, 9> kOfTwo = {"eq", "ne", "lt",     "le",         "gt",
                                                        "ge", "in", "sameas", "divisibleby"};
    if (std::ranges::find(kOfTwo, test) != kOfTwo.end()) {
        if (!arguments.has(0, test == "divisibleby" ? "num" : "other"))
            fail(TSR_UNSUPPORTED, "the test '{}' without a value", test);
        const Value other = arguments.take(0, test == "divisibleby" ? "num" : "other");
        arguments.finish();
        if (test == "in") return holds(other, value, budget);
        if (test == "eq" || test == "ne") return are_equal(value, other, budget) == (test == "eq");
        if (test == "sameas") return value.is_same(other);
        if (test == "divisibleby") return !calculate(Arithmetic::kModulo, value, other, budget).truth();
        const auto order = compare(value, other);
        return test == "lt" ? order < 0 : test == "le" ? order <= 0 : test == "gt" ? order > 0 : order >= 0;
    }
    arguments.finish();
    if (test == "defined") return !value.is_undefined();
    if (test == "undefined") return value.is_undefined();
    if (test == "none") return value.is_none();
    if (test == "string") return value.is_text();
    if (test == "boolean") return value.get<bool>() != nullptr;
    if (test == "true") return value.get<bool>() && *value.get<bool>();
    if (test == "false") return value.get<bool>() && !*value.get<bool>();
    if (test == "integer") return value.get<int64_t>() || value.get<BigInteger>();
    if (test == "float") return value.get<double>() != nullptr;
    if (test == "number") return value.is_number();
    if (test == "mapping") return value.dictionary() != nullptr;
    if (test == "callable") return value.is_callable();
    if (test == "iterable")
        return value.is_text() || value.list() || value.dictionary() || value.is_undefined() || value.iterator() ||
               value.get<std::shared_ptr<Loop>>();
    if (test == "sequence")
        return value.is_text() || (value.list() && !value.list()->is_view()) || value.dictionary() ||
               value.is_undefined();
    if (test == "escaped") return value.is_text() && value.get<Text>()->markup;
    if (test == "odd" || test == "even") {
        if (!value.is_number() || value.get<BigInteger>()) refuse(test, value);
        const Value rest = calculate(Arithmetic::kModulo, value, int64_t{2}, budget);
        return rest.number() == (test == "odd" ? 1 : 0);
    }
    if (test == "filter" || test == "test") {
        if (!value.is_text()) return false;
        return test == "filter" ? is_filter(value.view()) : is_test(value.view());
    }
    Arguments none;
    return call_text_method(test == "upper" ? "isupper" : "islower", written(value, budget), none, budget).truth();
}

}  // namespace tessera::text::jinja
