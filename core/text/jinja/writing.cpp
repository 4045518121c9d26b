// Values as texts: str(), repr() and json.dumps() of Python.
#include "core/base/error.hpp"
#include "core/text/jinja/functions.hpp"
#include "core/text/json_text.hpp"
#include "core/text/utf8.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace tessera::text::jinja {
namespace {

// A text that is counted while it is made.
class Writer {
  public:
    explicit Writer(Budget& budget) : budget_(budget) {}
    void own(std::string_view text) {
        budget_.bytes(text.size());
        out_.own(text);
    }
    void add(std::string_view text, bool content) {
        budget_.bytes(text.size());
        out_.add(text, content);
    }
    void add(const Text& text) {
        budget_.bytes(text.size());
        out_.add(text);
    }
    Text take() {
        budget_.text(0);
        return Text(std::move(out_));
    }

    Budget& budget() { return budget_; }

    // Counts lists, dictionaries and namespaces within one another: a namespace may hold itself.
    class Nesting {
      public:
        explicit Nesting(Writer& out) : out_(out) {
            if (out_.depth_ > kMaximumDepth) fail(TSR_UNSUPPORTED, "values nested deeper than {}", kMaximumDepth);
            ++out_.depth_;
        }
        ~Nesting() { --out_.depth_; }
        Nesting(const Nesting&) = delete;
        Nesting& operator=(const Nesting&) = delete;

      private:
        Writer& out_;
    };

  private:
    Budget& budget_;
    Marked out_;
    uint32_t depth_ = 0;
};

bool is_printable(uint32_t code) {
    switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
        case UTF8PROC_CATEGORY_CC:
        case UTF8PROC_CATEGORY_CF:
        case UTF8PROC_CATEGORY_CS:
        case UTF8PROC_CATEGORY_CO:
        case UTF8PROC_CATEGORY_CN:
        case UTF8PROC_CATEGORY_ZL:
        case UTF8PROC_CATEGORY_ZP:
        case UTF8PROC_CATEGORY_ZS:
            return code == ' ';
        default:
            return true;
    }
}

void write_quoted(Writer& out, const Text& text) {
    const std::string_view all = text.view();
    out.budget().scan(all);
    const char quote = all.find('\'') != all.npos && all.find('"') == all.npos ? '"' : '\'';
    out.own({&quote, 1});
    text.runs([&](std::string_view run, bool content) {
        while (!run.empty()) {
            const Utf8Step step = utf8_step(run);
            const std::string_view character = run.substr(0, step.length);
            run.remove_prefix(step.length);
            const char c = character.front();
            if (step.kind != Utf8Kind::kValid) {
                out.add(character, content);
            } else if (c == quote || c == '\\') {
                const char escape[2] = {'\\', c};
                out.add({escape, 2}, content);
            } else if (c == '\n' || c == '\r' || c == '\t') {
                out.add(c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t", content);
            } else if (const uint32_t code = utf8_decode(character, character.size()); !is_printable(code)) {
                out.add(code < 0x100     ? fmt::format("\\x{:02x}", code)
                        : code < 0x10000 ? fmt::format("\\u{:04x}", code)
                                         : fmt::format("\\U{:08x}", code),
                        content);
            } else {
                out.add(character, content);
            }
        }
    });
    out.own({&quote, 1});
}

void write_repr(Writer& out, const Value& value);

void write_items(Writer& out, const std::vector<Value>& items) {
    for (size_t i = 0; i < items.size(); ++i) {
        if (i > 0) out.own(", ");
        write_repr(out, items[i]);
    }
}

void write_pairs(Writer& out, const std::vector<std::pair<Value, Value>>& members) {
    out.own("{");
    for (size_t i = 0; i < members.size(); ++i) {
        if (i > 0) out.own(", ");
        write_repr(out, members[i].first);
        out.own(": ");
        write_repr(out, members[i].second);
    }
    out.own("}");
}

void write_repr(Writer& out, const Value& value) {
    out.budget().step();
    const Writer::Nesting nesting(out);
    if (value.is_undefined()) {
        out.own("Undefined");
    } else if (value.is_none()) {
        out.own("None");
    } else if (const bool* truth = value.get<bool>()) {
        out.own(*truth ? "True" : "False");
    } else if (const int64_t* number = value.get<int64_t>()) {
        out.own(std::to_string(*number));
    } else if (const double* fraction = value.get<double>()) {
        out.own(python_float(*fraction));
    } else if (const BigInteger* big = value.get<BigInteger>()) {
        out.add(big->digits);
    } else if (const Text* text = value.get<Text>()) {
        if (text->markup) out.own("Markup(");
        write_quoted(out, *text);
        if (text->markup) out.own(")");
    } else if (const List* list = value.list()) {
        using Kind = List::Kind;
        const bool tuple = list->is_tuple();
        if (list->kind == Kind::kRange) {
            const auto& [begin, end, step] = list->range;
            return out.own(step == 1 ? fmt::format("range({}, {})", begin, end)
                                     : fmt::format("range({}, {}, {})", begin, end, step));
        }
        out.own(list->kind == Kind::kKeys     ? "dict_keys(["
                : list->kind == Kind::kValues ? "dict_values(["
                : list->kind == Kind::kItems  ? "dict_items(["
                : tuple                       ? "("
                                              : "[");
        write_items(out, list->items);
        out.own(list->is_view() ? "])" : tuple ? (list->items.size() == 1 ? ",)" : ")") : "]");
    } else if (const Dictionary* members = value.dictionary()) {
        write_pairs(out, members->members);
    } else if (const auto* space = value.get<std::shared_ptr<Namespace>>()) {
        out.own("<Namespace {");
        bool first = true;
        for (const auto& [name, member] : (*space)->members) {
            if (!std::exchange(first, false)) out.own(", ");
            write_quoted(out, Text(name));
            out.own(": ");
            write_repr(out, member);
        }
        out.own("}>");
    } else if (const auto* loop = value.get<std::shared_ptr<Loop>>()) {
        out.own(fmt::format("<LoopContext {}/{}>", (*loop)->index + 1, (*loop)->items.size()));
    } else {
        refuse("writing out", value);
    }
}

class JsonWriter {
  public:
    JsonWriter(const JsonStyle& style, Budget& budget) : style_(style), out_(budget) {}

    Text write(const Value& value) {
        write(value, 0);
        return out_.take();
    }

  private:
    void write(const Value& value, size_t level) {
        out_.budget().step();
        if (value.is_text()) {
            quoted(*value.get<Text>());
        } else if (const List* list = value.list(); list && (list->kind == List::Kind::kList || list->is_tuple())) {
            if (list->items.empty()) return out_.own("[]");
            out_.own("[");
            for (size_t i = 0; i < list->items.size(); ++i) {
                separate(i > 0, level + 1);
                write(list->items[i], level + 1);
            }
            if (style_.indent) line(level);
            out_.own("]");
        } else if (const Dictionary* dictionary = value.dictionary()) {
            write(*dictionary, level);
        } else {
            plain(value);
        }
    }

    void write(const Dictionary& dictionary, size_t level) {
        if (dictionary.members.empty()) return out_.own("{}");
        std::vector<const std::pair<Value, Value>*> order;
        out_.budget().items(dictionary.members.size());
        for (const auto& member : dictionary.members) order.push_back(&member);
        if (style_.sorted)
            std::ranges::stable_sort(
                order, [](const auto* one, const auto* other) { return compare(one->first, other->first) < 0; });
        out_.own("{");
        for (size_t i = 0; i < order.size(); ++i) {
            separate(i > 0, level + 1);
            const auto& [key, member] = *order[i];
            if (key.is_text()) {
                quoted(*key.get<Text>());
            } else {
                out_.own("\"");
                plain(key);
                out_.own("\"");
            }
            out_.add(style_.colon);
            write(member, level + 1);
        }
        if (style_.indent) line(level);
        out_.own("}");
    }

    void line(size_t level) {
        out_.own("\n");
        for (size_t i = 0; i < level; ++i) out_.add(*style_.indent);
    }
    void separate(bool more, size_t level) {
        if (more) out_.add(style_.separator);
        if (style_.indent) line(level);
    }

    void plain(const Value& value) {
        if (value.is_none()) {
            out_.own("null");
        } else if (const bool* truth = value.get<bool>()) {
            out_.own(*truth ? "true" : "false");
        } else if (const int64_t* number = value.get<int64_t>()) {
            out_.own(std::to_string(*number));
        } else if (const BigInteger* big = value.get<BigInteger>()) {
            out_.add(big->digits);
        } else if (const double* fraction = value.get<double>()) {
            out_.own(std::isnan(*fraction)   ? "NaN"
                     : std::isinf(*fraction) ? (*fraction < 0 ? "-Infinity" : "Infinity")
                                             : python_float(*fraction));
        } else {
            refuse("JSON", value);
        }
    }

    void quoted(const Text& text) {
        out_.own("\"");
        text.runs([&](std::string_view run, bool content) {
            std::string escaped;
            append_json_characters(escaped, run);
            out_.add(style_.ascii ? in_ascii(escaped) : escaped, content);
        });
        out_.own("\"");
    }

    static std::string in_ascii(std::string_view text) {
        std::string out;
        while (!text.empty()) {
            const Utf8Step step = utf8_step(text);
            uint32_t code = step.kind == Utf8Kind::kValid ? utf8_decode(text, step.length) : 0xFFFD;
            text.remove_prefix(step.length);
            if (code < 0x7F) {
                out += static_cast<char>(code);
                continue;
            }
            if (code >= 0x10000) {
                code -= 0x10000;
                out += fmt::format("\\u{:04x}", 0xD800 + (code >> 10));
                code = 0xDC00 + (code & 0x3FF);
            }
            out += fmt::format("\\u{:04x}", code);
        }
        return out;
    }

    const JsonStyle& style_;
    Writer out_;
};

}  // namespace

void refuse(std::string_view what, const Value& value) {
    if (const auto* undefined = value.get<Undefined>()) {
        if (undefined->hidden)
            fail(TSR_UNSUPPORTED, "'{}' is not open to templates", undefined->name ? *undefined->name : "");
        if (undefined->name) fail(TSR_UNSUPPORTED, "'{}' is not defined ({} of it)", *undefined->name, what);
    }
    fail(TSR_UNSUPPORTED, "{} of {}", what, value.kind());
}

double python_double(std::string_view text) {
    // Python's JSON has names for what is no number.
    if (text == "NaN") return std::nan("");
    const bool negative = text.starts_with('-');
    if (text.substr(negative ? 1 : 0) == "Infinity") return negative ? -HUGE_VAL : HUGE_VAL;
    return std::strtod(std::string(text).c_str(), nullptr);
}

Text written(const Value& value, Budget& budget) {
    if (value.is_undefined()) return {};
    if (const Text* text = value.get<Text>()) return *text;
    return repr_of(value, budget);
}

Text repr_of(const Value& value, Budget& budget) {
    Writer out(budget);
    write_repr(out, value);
    return out.take();
}

Text json_of(const Value& value, const JsonStyle& style, Budget& budget) {
    return JsonWriter(style, budget).write(value);
}

}  // namespace tessera::text::jinja
