// Filters, tests and methods.
#pragma once

#include "core/text/jinja/value.hpp"

#include <optional>
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

  private:
    uint64_t steps_;
    uint64_t bytes_;
};

// Arguments of a call. Each must be taken by somebody before finish().
class Arguments {
  public:
    std::vector<Value> positional;
    std::vector<std::pair<std::string_view, Value>> named;

    // By position or name; undefined if it is not given.
    Value take(size_t position, std::string_view name);
    // The same as a text; nothing if it is not given or none. Throws Error(TSR_UNSUPPORTED) for another type.
    std::optional<Text> take_text(size_t position, std::string_view name);
    std::optional<int64_t> take_integer(size_t position, std::string_view name);
    // Throws Error(TSR_UNSUPPORTED) if one has not been taken.
    void finish() const;

  private:
    uint64_t taken_ = 0;
    uint64_t named_taken_ = 0;
};

// Value::written(), of what is not larger than the budget.
std::string written(const Value& value, Budget& budget);

// All throw Error(TSR_UNSUPPORTED) for what is not known, and for types that Python refuses.
Value call_filter(std::string_view name, Value value, Arguments& arguments, Budget& budget);
bool call_test(std::string_view name, const Value& value, Arguments& arguments, Budget& budget);
Value call_method(std::string_view name, const Value& value, Arguments& arguments, Budget& budget);

// value[index], or a member of that name; undefined if there is none.
Value item_of(const Value& value, const Value& index, Budget& budget);
Value slice_of(const Value& value, std::optional<int64_t> begin, std::optional<int64_t> end, int64_t step,
               Budget& budget);
// What a loop goes over.
std::vector<Value> items_of(const Value& value, Budget& budget);
bool holds(const Value& whole, const Value& part, Budget& budget);  // part in whole
bool are_equal(const Value& left, const Value& right, Budget& budget);

}  // namespace tessera::text::jinja
