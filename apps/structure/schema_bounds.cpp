#include "apps/structure/schema_bounds.hpp"

#include "apps/structure/schema_formats.hpp"
#include "apps/structure/schema_keywords.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

namespace tessera::structure {
namespace {

namespace json = boost::json;

// Has all whole numbers of 64 bits.
using Exact = long double;
static_assert(std::numeric_limits<Exact>::digits >= 64);

// The engine's whole numbers have 64 bits and a sign; its bounds are doubles. The next double within them.
constexpr Exact kMostWhole = 9223372036854774784.0L;
// It writes bounded numbers without exponents, and has no bounds far beyond this one.
constexpr Exact kMostNumber = 1e18L;

Exact exact(const json::value& value) {
    if (value.is_int64()) return static_cast<Exact>(value.get_int64());
    if (value.is_uint64()) return static_cast<Exact>(value.get_uint64());
    return static_cast<Exact>(value.get_double());
}

// The nearest double that is not below, or not above.
double rounded_up(Exact value) {
    const auto nearest = static_cast<double>(value);
    return static_cast<Exact>(nearest) < value ? std::nextafter(nearest, std::numeric_limits<double>::infinity())
                                               : nearest;
}
double rounded_down(Exact value) {
    return -rounded_up(-value);
}

json::value whole(Exact value) {
    return static_cast<int64_t>(value);
}

json::value number(double value) {
    constexpr double kMostExact = 9007199254740992.0;
    if (std::trunc(value) == value && std::abs(value) <= kMostExact) return static_cast<int64_t>(value);
    return value;
}

struct Bounds {
    std::optional<Exact> least, most, above, below;

    void raise(Exact value) { least = least ? std::max(*least, value) : value; }
    void lower(Exact value) { most = most ? std::min(*most, value) : value; }
};

class BoundsReader {
  public:
    explicit BoundsReader(const json::object& given) : given_(given) {}

    KeywordFault fault;

    std::optional<Exact> read(std::string_view keyword) {
        const json::value* const value = given_.if_contains(keyword);
        if (!value) return std::nullopt;
        if (!value->is_number()) return set(keyword, "expected a number");
        if (value->is_double() && !std::isfinite(value->get_double())) return set(keyword, "is too large for a double");
        return exact(*value);
    }

    std::nullopt_t set(std::string_view keyword, std::string_view why) {
        if (fault.keyword.empty()) fault = {std::string(keyword), std::string(why)};
        return std::nullopt;
    }

    // Draft 4 has exclusiveMinimum: true next to minimum.
    std::optional<Exact> read_exclusive(std::string_view keyword, std::optional<Exact>& inclusive) {
        const json::value* const value = given_.if_contains(keyword);
        if (!value || !value->is_bool()) return read(keyword);
        return value->get_bool() ? std::exchange(inclusive, std::nullopt) : std::nullopt;
    }

  private:
    const json::object& given_;
};

void write_whole(Bounds bounds, json::object& made, BoundsReader& reader) {
    if (bounds.least) bounds.least = std::ceil(*bounds.least);
    if (bounds.most) bounds.most = std::floor(*bounds.most);
    if (bounds.above) bounds.raise(std::floor(*bounds.above) + 1);
    if (bounds.below) bounds.lower(std::ceil(*bounds.below) - 1);
    if (!bounds.least && !bounds.most) return;
    const Exact least = bounds.least.value_or(-kMostWhole), most = bounds.most.value_or(kMostWhole);
    if (least > most) {
        reader.set(bounds.least ? "minimum" : "maximum", "no whole number is within the bounds");
        return;
    }
    if (least > kMostWhole || most < -kMostWhole) {
        reader.set(least > kMostWhole ? "minimum" : "maximum", "no whole number of 63 bits is within the bounds");
        return;
    }
    const Exact low = std::max(least, -kMostWhole), high = std::min(most, kMostWhole);
    // Between two doubles there may be none.
    const Exact from = rounded_up(low), to = rounded_down(high);
    if (from > to) {
        reader.set("minimum", "no number with an exact double is within the bounds");
        return;
    }
    if (bounds.least) made["minimum"] = whole(from);
    if (bounds.most) made["maximum"] = whole(to);
}

void write_numbers(Bounds bounds, json::object& made, BoundsReader& reader) {
    const auto beyond = [](const std::optional<Exact>& bound, Exact sign) {
        return bound && *bound * sign > kMostNumber;
    };
    if (beyond(bounds.least, 1) || beyond(bounds.above, 1) || beyond(bounds.most, -1) || beyond(bounds.below, -1)) {
        const bool low = beyond(bounds.least, 1) || beyond(bounds.above, 1);
        reader.set(low ? "minimum" : "maximum", "no number up to 1e18 is within the bounds");
        return;
    }
    if (beyond(bounds.least, -1)) bounds.least = -kMostNumber;
    if (beyond(bounds.most, 1)) bounds.most = kMostNumber;
    if (beyond(bounds.above, -1)) {
        bounds.above.reset();
        bounds.raise(-kMostNumber);
    }
    if (beyond(bounds.below, 1)) {
        bounds.below.reset();
        bounds.lower(kMostNumber);
    }
    if (bounds.least) made["minimum"] = number(rounded_up(*bounds.least));
    if (bounds.most) made["maximum"] = number(rounded_down(*bounds.most));
    if (bounds.above) made["exclusiveMinimum"] = number(rounded_up(*bounds.above));
    if (bounds.below) made["exclusiveMaximum"] = number(rounded_down(*bounds.below));
}

}  // namespace

KeywordFault write_bounds(const json::object& given, json::object& made) {
    BoundsReader reader(given);
    Bounds bounds{reader.read("minimum"), reader.read("maximum"), {}, {}};
    bounds.above = reader.read_exclusive("exclusiveMinimum", bounds.least);
    bounds.below = reader.read_exclusive("exclusiveMaximum", bounds.most);
    if (const auto step = reader.read("multipleOf")) {
        if (*step > 0)
            made["multipleOf"] = given.at("multipleOf");
        else
            reader.set("multipleOf", "expected a number above 0");
    }
    const std::vector<std::string_view> types = named_types(given);
    const auto names = [&](std::string_view type) { return std::ranges::find(types, type) != types.end(); };
    const json::value* const named = given.if_contains("format");
    const NumberFormat* const format =
        named && named->is_string() ? find_number_format(std::string_view(named->get_string())) : nullptr;
    const bool any_number = types.empty() || names("number");
    bool only_whole = names("integer") && !names("number");
    if (format && (any_number || names("integer"))) {
        bounds.raise(format->least);
        bounds.lower(format->most);
        const json::value* const type = made.if_contains("type");
        if (format->whole && type && type->is_string() && *type == "number") {
            made["type"] = "integer";
            only_whole = true;
        }
    }
    if (only_whole)
        write_whole(bounds, made, reader);
    else
        write_numbers(bounds, made, reader);
    return std::move(reader.fault);
}

}  // namespace tessera::structure
