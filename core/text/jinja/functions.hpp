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

// All throw Error(TSR_UNSUPPORTED) for what is not known, and for types that Python refuses.
Value call_filter(std::string_view name, Value value, Arguments& arguments, Budget& budget);
bool call_test(std::string_view name, const Value& value, Arguments& arguments);
Value call_method(std::string_view name, const Value& value, Arguments& arguments, Budget& budget);

// value[index], or a member of that name; undefined if there is none.
Value item_of(const Value& value, const Value& index);
Value slice_of(const Value& value, std::optional<int64_t> begin, std::optional<int64_t> end, int64_t step);
// What a loop goes over. `values` must outlive the result if it is a list.
std::vector<Value> items_of(const Value& value, Budget& budget);
bool holds(const Value& whole, const Value& part);  // part in whole

}  // namespace tessera::text::jinja
