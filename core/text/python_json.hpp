// JSON values written as Python's json module writes them, which chat templates call as tojson (transformers: with
// ensure_ascii=False, keys in their order).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::text {

struct PythonMember;

struct PythonJson {
    enum class Kind : uint8_t { kPlain, kText, kList, kObject };

    Kind kind = Kind::kPlain;
    std::string text;                   // kPlain: as it is written; kText: its characters
    std::vector<PythonMember> members;  // kList: without keys

    static PythonJson of_text(std::string_view text);

    // A member of an object by its key; nullptr if there is none.
    const PythonJson* find(std::string_view key) const noexcept;
    // json.dumps(value, ensure_ascii=False, indent=indent); 0: on one line.
    std::string dumps(uint32_t indent = 0) const;
};

struct PythonMember {
    std::string key;
    PythonJson value;
};

// repr() of a float.
std::string python_float(double value);

// As json.loads: of equal keys the last value counts, at the place of the first. Nothing for what is not one JSON value
// in valid UTF-8, or is nested deeper than 256. Throws nothing but std::bad_alloc.
std::optional<PythonJson> parse_python_json(std::string_view text);

}  // namespace tessera::text
