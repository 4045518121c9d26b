// What expressions are made of: operators, filters, tests and methods. All throw Error(TSR_UNSUPPORTED) for what is not
// known, and for what Python refuses.
#pragma once

#include "core/text/jinja/value.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::text::jinja {

// What a program may use. Throws Error(TSR_UNSUPPORTED), with the name of the limit, when it is used up.
class Budget {
  public:
    Budget(uint64_t steps, uint64_t bytes) : steps_(steps), bytes_(bytes) {}
    void step(uint64_t count = 1);
    void bytes(uint64_t count);
    void items(uint64_t count);      // values that are made
    void container(uint64_t count);  // a list or dictionary of so many values
    void text(uint64_t size);        // a text of its own
    // A text is gone through, at worst once for each 64 bytes of what is looked for.
    void scan(std::string_view text, std::string_view wanted = {}) {
        step(text.size() / 64 * (1 + wanted.size() / 64));
    }

    // Whether the methods of lists that change them are open to the program.
    bool may_change = false;

  private:
    uint64_t steps_;
    uint64_t bytes_;
};

// Arguments of a call. Each must be taken by somebody before finish().
class Arguments {
  public:
    std::vector<Value> positional;
    std::vector<std::pair<std::string, Value>> named;

    // By position or name; undefined if it is not given. kNamedOnly: by its name alone.
    static constexpr size_t kNamedOnly = SIZE_MAX;
    Value take(size_t position, std::string_view name);
    bool has(size_t position, std::string_view name) const;
    // The same, of one type; nothing if it is not given or none. Throws Error(TSR_UNSUPPORTED) for another type.
    std::optional<Text> take_text(size_t position, std::string_view name);
    std::optional<int64_t> take_integer(size_t position, std::string_view name);
    bool take_truth(size_t position, std::string_view name) { return take(position, name).truth(); }
    // Throws Error(TSR_UNSUPPORTED) if one has not been taken.
    void finish() const;

  private:
    uint64_t taken_ = 0;
    uint64_t named_taken_ = 0;
};

[[noreturn]] void refuse(std::string_view what, const Value& value);

// --- texts of values (writing.cpp) ---

// str(); what is in a list or dictionary as repr() has it.
Text written(const Value& value, Budget& budget);
Text repr_of(const Value& value, Budget& budget);
struct JsonStyle {
    bool ascii = false;
    std::optional<Text> indent;  // of one level
    Text separator = Text(std::string(", "));
    Text colon = Text(std::string(": "));
    bool sorted = false;
};
// json.dumps().
Text json_of(const Value& value, const JsonStyle& style, Budget& budget);
// What float() makes of the digits of a number.
double python_double(std::string_view text);

// --- operators (operators.cpp) ---

enum class Arithmetic : uint8_t { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };
Value calculate(Arithmetic operation, Value left, const Value& right, Budget& budget);
Value negated(const Value& value);
// left <=> right, as sort and < have it.
std::partial_ordering compare(const Value& left, const Value& right);
bool are_equal(const Value& left, const Value& right);
bool are_equal(const Value& left, const Value& right, Budget& budget);
// How many values `value` holds, counted as often as they are held.
uint64_t extent(const Value& value, Budget& budget);
bool holds(const Value& whole, const Value& part, Budget& budget);  // part in whole
// value[index] and value.name; undefined if there is none.
Value item_of(const Value& value, const Value& index, const std::string* name, Budget& budget);
Value attribute_of(const Value& value, const std::string& name, Budget& budget);
Value slice_of(const Value& value, const Value& begin, const Value& end, const Value& step, Budget& budget);
std::string_view macro_name(const Closure& closure);
// What a loop goes over. An iterator is used up.
std::vector<Value> items_of(const Value& value, Budget& budget);
int64_t length_of(const Value& value, Budget& budget);
// left + right of two texts, escaped where one of them is markup.
Value concatenated(Value left, const Value& right, Budget& budget);
Text escaped(const Text& text, Budget& budget);

// --- filters, tests, methods ---

bool is_filter(std::string_view name);
bool is_test(std::string_view name);
Value call_filter(std::string_view name, const Value& value, Arguments& arguments, Budget& budget);
bool call_test(std::string_view name, const Value& value, Arguments& arguments, Budget& budget);
// Whether the type of `value` has such a method, and whether it changes the value.
enum class Method : uint8_t { kNone, kPure, kChanges };
Method method_of(const Value& value, std::string_view name);
Value call_method(std::string_view name, const Value& value, Arguments& arguments, Budget& budget);

// --- texts (text_methods.cpp, formatting.cpp) ---

bool is_space(uint32_t code);  // str.isspace() of a character
std::string upper(std::string_view text);
std::string lower(std::string_view text);
// str.capitalize(), upper() or lower(), title(), the filter title, and swapcase() (letter_case.cpp).
Text capitalized(const Text& text, Budget& budget);
Text titled(const Text& text, Budget& budget);
Text titled_words(const Text& text, Budget& budget);
Text swapped(const Text& text, Budget& budget);
Text with_case(const Text& text, bool upper, Budget& budget);
Text replaced(const Text& text, const Text& from, const Text& to, int64_t most, Budget& budget);
Text padded(const Text& text, int64_t width, char where, std::string_view fill, Budget& budget);  // where: < > ^
std::vector<Value> split_lines(const Text& text, bool keep_ends, Budget& budget);
Value call_text_method(std::string_view name, const Text& text, Arguments& arguments, Budget& budget);
bool is_text_method(std::string_view name);
// text % value and text.format(...).
Text formatted_by_percent(const Text& format, const Value& value, Budget& budget);
Text formatted(const Text& format, Arguments& arguments, Budget& budget);

}  // namespace tessera::text::jinja
