// text % value and text.format(): Python's two little languages.
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/text/jinja/functions.hpp"
#include "core/text/python_text.hpp"
#include "core/text/utf8.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace tessera::text::jinja {
namespace {

constexpr int64_t kWidest = 10'000;  // of a field, so that a few bytes do not ask for gigabytes

struct Field {
    std::string fill = " ";
    char align = 0;  // < > ^ =; none: as the type has it
    char sign = '-';
    bool alternate = false;
    int64_t width = 0;
    std::optional<int64_t> precision;
    char group = 0;  // , _
    char type = 's';
};

// Takes digits from the start of `text`.
std::optional<int64_t> take_number(std::string_view& text) {
    int64_t number = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (read.ec != std::errc() || text.empty() || text.front() == '-') return {};
    if (number > kWidest) fail(TSR_UNSUPPORTED, "a field wider than {}", kWidest);
    text.remove_prefix(static_cast<size_t>(read.ptr - text.data()));
    return number;
}

std::string grouped(std::string digits, char mark, size_t every) {
    for (size_t i = digits.size(); i > every;) {
        i -= every;
        digits.insert(i, 1, mark);
    }
    return digits;
}

// Without its sign.
std::string integer_digits(uint64_t value, const Field& field) {
    std::string digits;
    switch (field.type) {
        case 'x':
            digits = fmt::format("{:x}", value);
            return field.alternate ? "0x" + digits : digits;
        case 'X':
            digits = fmt::format("{:X}", value);
            return field.alternate ? "0X" + digits : digits;
        case 'o':
            digits = fmt::format("{:o}", value);
            return field.alternate ? "0o" + digits : digits;
        case 'b':
            digits = fmt::format("{:b}", value);
            return field.alternate ? "0b" + digits : digits;
        default:
            break;
    }
    digits = std::to_string(value);
    if (field.precision && digits.size() < static_cast<size_t>(*field.precision))
        digits.insert(0, static_cast<size_t>(*field.precision) - digits.size(), '0');
    return field.group ? grouped(std::move(digits), field.group, 3) : digits;
}

std::string fraction_digits(double value, const Field& field) {
    value = std::fabs(value);
    const bool percent = field.type == '%';
    if (percent) value *= 100;
    const char type = percent ? 'f' : field.type == 'F' ? 'f' : field.type;
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return "inf";
    const std::array<char, 5> format = {'%', '.', '*', type, '\0'};
    const int precision = static_cast<int>(field.precision.value_or(6));
    const int length = std::snprintf(nullptr, 0, format.data(), precision, value);
    std::string digits(static_cast<size_t>(std::max(length, 0)) + 1, '\0');
    std::snprintf(digits.data(), digits.size(), format.data(), precision, value);
    digits.pop_back();
    if (field.group) {
        const size_t point = std::min(digits.find('.'), digits.size());
        digits = grouped(digits.substr(0, point), field.group, 3) + digits.substr(point);
    }
    return percent ? digits + '%' : digits;
}

// In the middle, the larger half is on the right, other than str.center() has it.
Text aligned(const Text& text, const Field& field, char otherwise, Budget& budget) {
    const char align = field.align ? field.align : otherwise;
    const auto length = static_cast<int64_t>(character_count(text.view()));
    if (align != '^' || field.width <= length) return padded(text, field.width, align, field.fill, budget);
    return padded(padded(text, length + (field.width - length) / 2, '>', field.fill, budget), field.width, '<',
                  field.fill, budget);
}

// A number with its sign, padded.
Text number_field(bool negative, const std::string& digits, Field field, Budget& budget) {
    const std::string sign = negative ? "-" : field.sign == '-' ? "" : std::string(1, field.sign);
    if (field.align == '=') {
        field.width -= static_cast<int64_t>(sign.size());
        const Text body = padded(Text(digits), field.width, '>', field.fill, budget);
        Text out{std::string(sign)};
        out.append(body);
        return out;
    }
    return aligned(Text(sign + digits), field, '>', budget);
}

Text text_field(Text text, const Field& field, Budget& budget) {
    if (field.precision)
        text = text.part(text.view().substr(0, character_place(text.view(), static_cast<size_t>(*field.precision))));
    return aligned(text, field, '<', budget);
}

Text integer_field(int64_t value, const Field& field, Budget& budget) {
    const uint64_t size = value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
    return number_field(value < 0, integer_digits(size, field), field, budget);
}
Text fraction_field(double value, const Field& field, Budget& budget) {
    return number_field(std::signbit(value), fraction_digits(value, field), field, budget);
}

// --- % ---

class Percent {
  public:
    Percent(const Text& format, const Value& value, Budget& budget)
        : format_(format), value_(value), rest_(format.view()), budget_(budget) {
        if (const List* list = value.list(); list && list->is_tuple()) tuple_ = list;
    }

    Text run() {
        while (!rest_.empty()) {
            const size_t mark = std::min(rest_.find('%'), rest_.size());
            made_.add(format_.part(rest_.substr(0, mark)));
            rest_.remove_prefix(mark);
            if (!rest_.empty()) field();
        }
        const bool mapping = value_.dictionary() || (value_.list() && !tuple_);
        if (tuple_ ? next_ < tuple_->items.size() : !mapping && next_ == 0)
            fail(TSR_UNSUPPORTED, "% with more values than fields");
        budget_.bytes(made_.bytes.size());
        Text out(std::move(made_));
        out.markup = format_.markup;
        return out;
    }

  private:
    Value next() {
        if (tuple_) {
            if (next_ >= tuple_->items.size()) fail(TSR_UNSUPPORTED, "% with fewer values than fields");
            return tuple_->items[next_++];
        }
        if (next_++ > 0) fail(TSR_UNSUPPORTED, "% with fewer values than fields");
        return value_;
    }

    char take() {
        if (rest_.empty()) fail(TSR_UNSUPPORTED, "% with a field that does not end");
        const char c = rest_.front();
        rest_.remove_prefix(1);
        return c;
    }

    void field() {
        take();
        Field one;
        std::optional<Value> named;
        if (rest_.starts_with('(')) {
            const size_t end = rest_.find(')');
            const Dictionary* members = value_.dictionary();
            if (end == rest_.npos || !members) fail(TSR_UNSUPPORTED, "% with a name, of {}", value_.kind());
            const Value* found = members->find(rest_.substr(1, end - 1));
            if (!found) fail(TSR_UNSUPPORTED, "% with a name that is not there");
            named = *found;
            ++next_;
            rest_.remove_prefix(end + 1);
        }
        bool zeros = false;
        for (; !rest_.empty() && std::string_view("#0- +").find(rest_.front()) != std::string_view::npos;
             rest_.remove_prefix(1)) {
            const char flag = rest_.front();
            if (flag == '#') one.alternate = true;
            if (flag == '0') zeros = true;
            if (flag == '-') one.align = '<';
            if (flag == ' ' && one.sign == '-') one.sign = ' ';
            if (flag == '+') one.sign = '+';
        }
        const auto star = [&]() -> std::optional<int64_t> {
            if (!rest_.starts_with('*')) return take_number(rest_);
            take();
            const Value width = next();
            if (!width.get<int64_t>() || std::abs(width.integer()) > kWidest) refuse("% with a width", width);
            return width.integer();
        };
        one.width = star().value_or(0);
        if (one.width < 0) {
            one.align = '<';
            one.width = -one.width;
        }
        if (rest_.starts_with('.')) {
            take();
            one.precision = std::max<int64_t>(star().value_or(0), 0);
        }
        if (!rest_.empty() && std::string_view("hlL").find(rest_.front()) != std::string_view::npos) take();
        one.type = take();
        if (one.type == '%') return made_.own("%");
        if (!one.align) one.align = '>';
        made_.add(converted(named ? *named : next(), one, zeros));
    }

    Text converted(const Value& value, Field& field, bool zeros) {
        const bool pads = zeros && field.align != '<';
        if (pads) {
            field.fill = "0";
            field.align = '=';
        }
        switch (field.type) {
            case 's':
            case 'r': {
                field.fill = " ";
                if (field.align == '=') field.align = '>';
                Text text = field.type == 's' ? written(value, budget_) : repr_of(value, budget_);
                if (format_.markup && !text.markup) text = escaped(text, budget_);
                return text_field(text, field, budget_);
            }
            case 'd':
            case 'i':
            case 'u':
                field.type = 'd';
                if (value.get<double>() && std::fabs(value.number()) < 9e18)
                    return integer_field(static_cast<int64_t>(value.number()), field, budget_);
                if (!value.is_integer()) refuse("%d", value);
                return integer_field(value.integer(), field, budget_);
            case 'x':
            case 'X':
            case 'o':
                if (!value.is_integer()) refuse("%x", value);
                return integer_field(value.integer(), field, budget_);
            case 'e':
            case 'E':
            case 'f':
            case 'F':
            case 'g':
            case 'G':
                if (!value.is_number() || value.get<BigInteger>()) refuse("%f", value);
                return fraction_field(value.number(), field, budget_);
            case 'c': {
                field.fill = " ";
                if (field.align == '=') field.align = '>';
                if (value.is_text() && character_count(value.view()) == 1)
                    return text_field(*value.get<Text>(), field, budget_);
                if (!value.get<int64_t>() || value.integer() < 0 || value.integer() > 0xD7FF) refuse("%c", value);
                std::string one;
                utf8_append(one, static_cast<uint32_t>(value.integer()));
                return text_field(Text(std::move(one)), field, budget_);
            }
            default:
                fail(TSR_UNSUPPORTED, "% with the type '{}'", printable({&field.type, 1}));
        }
    }

    const Text& format_;
    const Value& value_;
    const List* tuple_ = nullptr;
    size_t next_ = 0;
    std::string_view rest_;
    Budget& budget_;
    Marked made_;
};

// --- format() ---

Field parse_field(std::string_view spec) {
    Field field;
    field.type = 0;
    if (!spec.empty()) {
        const size_t first = character_place(spec, 1);
        constexpr std::string_view aligns = "<>^=";
        if (first < spec.size() && aligns.find(spec[first]) != aligns.npos) {
            field.fill = spec.substr(0, first);
            field.align = spec[first];
            spec.remove_prefix(first + 1);
        } else if (aligns.find(spec.front()) != aligns.npos) {
            field.align = spec.front();
            spec.remove_prefix(1);
        }
    }
    const auto take = [&](std::string_view any) -> char {
        if (spec.empty() || any.find(spec.front()) == any.npos) return 0;
        const char c = spec.front();
        spec.remove_prefix(1);
        return c;
    };
    if (const char sign = take("+- ")) field.sign = sign;
    field.alternate = take("#") != 0;
    if (take("0") && !field.align) {
        field.fill = "0";
        field.align = '=';
    }
    field.width = take_number(spec).value_or(0);
    field.group = take(",_");
    if (take(".")) {
        field.precision = take_number(spec);
        if (!field.precision) fail(TSR_UNSUPPORTED, "a field without its precision");
    }
    field.type = take("bcdeEfFgGnosxX%");
    if (!spec.empty()) fail(TSR_UNSUPPORTED, "a field of a kind that is not known");
    return field;
}

Text formatted_value(const Value& value, std::string_view spec, Budget& budget) {
    if (spec.empty()) return written(value, budget);
    Field field = parse_field(spec);
    const std::string_view integers = "bdoxXn", fractions = "eEfFgG%";
    if (value.is_text() && (field.type == 0 || field.type == 's')) {
        if (field.align == '=' || field.sign != '-' || field.group) refuse("this field", value);
        return text_field(*value.get<Text>(), field, budget);
    }
    if (value.is_integer() && !value.get<bool>() && (field.type == 0 || integers.find(field.type) != integers.npos)) {
        if (field.precision) refuse("a precision", value);
        if (field.group && field.type != 0 && field.type != 'd') refuse("this field", value);
        return integer_field(value.integer(), field, budget);
    }
    if ((value.is_integer() || value.get<double>()) && fractions.find(field.type) != fractions.npos && field.type != 0)
        return fraction_field(value.number(), field, budget);
    refuse("this field", value);
}

class Formatter {
  public:
    Formatter(const Text& format, Arguments& arguments, Budget& budget)
        : format_(format), arguments_(arguments), rest_(format.view()), budget_(budget) {}

    Text run() {
        while (!rest_.empty()) {
            const size_t mark = std::min(rest_.find_first_of("{}"), rest_.size());
            made_.add(format_.part(rest_.substr(0, mark)));
            rest_.remove_prefix(mark);
            if (rest_.empty()) break;
            if (rest_.size() > 1 && rest_[0] == rest_[1]) {
                made_.add(format_.part(rest_.substr(0, 1)));
                rest_.remove_prefix(2);
                continue;
            }
            if (rest_.front() == '}') fail(TSR_UNSUPPORTED, "format with a single '}}'");
            const size_t end = rest_.find('}');
            if (end == rest_.npos) fail(TSR_UNSUPPORTED, "format with a field that does not end");
            field(rest_.substr(1, end - 1));
            rest_.remove_prefix(end + 1);
        }
        budget_.bytes(made_.bytes.size());
        Text out(std::move(made_));
        out.markup = format_.markup;
        return out;
    }

  private:
    void field(std::string_view inner) {
        if (inner.find('{') != inner.npos) fail(TSR_UNSUPPORTED, "format with a field within a field");
        const size_t colon = std::min(inner.find(':'), inner.size());
        std::string_view name = inner.substr(0, colon), conversion;
        if (const size_t mark = name.find('!'); mark != name.npos) {
            conversion = name.substr(mark + 1);
            name = name.substr(0, mark);
        }
        Value value = found(name);
        if (conversion == "r")
            value = repr_of(value, budget_);
        else if (conversion == "s")
            value = written(value, budget_);
        else if (!conversion.empty())
            fail(TSR_UNSUPPORTED, "format with a conversion that is not known");
        Text text = formatted_value(value, inner.substr(std::min(colon + 1, inner.size())), budget_);
        made_.add(format_.markup && !text.markup ? escaped(text, budget_) : text);
    }

    Value found(std::string_view path) {
        const size_t end = std::min(path.find_first_of(".["), path.size());
        std::string_view name = path.substr(0, end);
        path.remove_prefix(end);
        Value value;
        if (name.empty()) {
            if (numbered_ == Numbered::kGiven)
                fail(TSR_UNSUPPORTED, "format with fields both with and without numbers");
            numbered_ = Numbered::kCounted;
            value = positional(next_++);
        } else if (const auto number = take_number(name); number && name.empty()) {
            if (numbered_ == Numbered::kCounted)
                fail(TSR_UNSUPPORTED, "format with fields both with and without numbers");
            numbered_ = Numbered::kGiven;
            value = positional(static_cast<size_t>(*number));
        } else {
            const auto given = std::ranges::find(arguments_.named, name,
                                                 [](const auto& one) -> std::string_view { return one.first; });
            if (given == arguments_.named.end())
                fail(TSR_UNSUPPORTED, "format without the value '{}'", printable(name));
            value = given->second;
        }
        while (!path.empty()) {
            if (path.front() == '.') {
                const size_t stop = std::min(path.find_first_of(".[", 1), path.size());
                value = attribute_of(value, std::string(path.substr(1, stop - 1)), budget_);
                path.remove_prefix(stop);
            } else {
                const size_t stop = path.find(']');
                if (path.front() != '[' || stop == path.npos)
                    fail(TSR_UNSUPPORTED, "format with a name that is not known");
                std::string_view key = path.substr(1, stop - 1);
                std::string_view digits = key;
                const auto number = take_number(digits);
                value = item_of(value, number && digits.empty() ? Value(*number) : Value::text(key), nullptr, budget_);
                path.remove_prefix(stop + 1);
            }
            if (value.is_undefined()) fail(TSR_UNSUPPORTED, "format of a member that is not there");
        }
        return value;
    }

    const Value& positional(size_t index) const {
        if (index >= arguments_.positional.size()) fail(TSR_UNSUPPORTED, "format with fewer values than fields");
        return arguments_.positional[index];
    }

    enum class Numbered : uint8_t { kUnknown, kCounted, kGiven };
    const Text& format_;
    const Arguments& arguments_;
    std::string_view rest_;
    Budget& budget_;
    Marked made_;
    size_t next_ = 0;
    Numbered numbered_ = Numbered::kUnknown;
};

}  // namespace

Text formatted_by_percent(const Text& format, const Value& value, Budget& budget) {
    budget.text(format.size());
    return Percent(format, value, budget).run();
}

Text formatted(const Text& format, Arguments& arguments, Budget& budget) {
    budget.text(format.size());
    return Formatter(format, arguments, budget).run();
}

}  // namespace tessera::text::jinja
