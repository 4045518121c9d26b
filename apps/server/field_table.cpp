#include "apps/server/field_table.hpp"

#include "apps/server/api_error.hpp"
#include "apps/server/json_fields.hpp"
#include "apps/server/response_notes.hpp"
#include "core/base/nearest.hpp"
#include "core/base/text.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <stdexcept>

namespace tessera::server {
namespace {

namespace json = boost::json;

bool equal(const json::value& a, const json::value& b) {
    if (a.is_number() && b.is_number()) return a.to_number<double>() == b.to_number<double>();
    return a == b;
}

json::array parse_list(std::string_view text) {
    return json::parse(json::string_view(text.data(), text.size())).as_array();
}

bool contains(const json::array& list, const json::value& value) {
    return std::ranges::any_of(list, [&](const json::value& one) { return equal(one, value); });
}

}  // namespace

std::string path_of(std::string_view path, std::string_view name) {
    return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

FieldTable::FieldTable(std::string name, std::initializer_list<std::span<const FieldRow>> parts)
    : name_(std::move(name)) {
    for (const std::span<const FieldRow> part : parts) rows_.insert(rows_.end(), part.begin(), part.end());
    for (size_t i = 0; i < rows_.size(); ++i) {
        const FieldRow& row = rows_[i];
        if (!index_.emplace(row.name, i).second)
            throw std::logic_error(fmt::format("{}: the field {} stands twice", name_, row.name));
        json::array &neutral = neutral_.emplace_back(), &wished = wished_.emplace_back();
        if (row.standing == Standing::kHint) wished = parse_list(row.wished);
        const bool has_neutral = row.standing == Standing::kRefused || row.standing == Standing::kHint;
        if (!has_neutral || row.neutral == kNotPositive) continue;
        neutral = parse_list(row.neutral.empty() ? kOff : row.neutral);
    }
}

std::optional<size_t> FieldTable::index_of(std::string_view name) const {
    const auto found = index_.find(name);
    return found == index_.end() ? std::nullopt : std::optional(found->second);
}

bool FieldTable::is_neutral(size_t row, const json::value& value) const {
    if (value.is_null()) return true;
    if (rows_[row].neutral == kNotPositive) return value.is_number() && value.to_number<double>() <= 0;
    return contains(neutral_[row], value);
}

void FieldTable::take_hint(size_t row, const json::value& value, const std::string& path) const {
    if (contains(wished_[row], value)) return ResponseNotes::add(kNoEffectHeader, path);
    std::vector<std::string> values;
    for (const json::array* const list : {&neutral_[row], &wished_[row]}) {
        for (const json::value& one : *list) values.push_back(json::serialize(one));
    }
    throw ApiError(
        400, fmt::format("{}: expected {}, found {}; {}", path, joined(values, " or "), shown(value), rows_[row].text),
        path);
}

void FieldTable::check(const json::object& object, std::string_view path, std::string_view name) const {
    for (const auto& [key, value] : object) {
        const std::string_view field(key.data(), key.size());
        const auto row = index_of(field);
        // Clients dump objects of theirs with all members, also with those of APIs of a later day.
        if (!row && value.is_null()) continue;
        if (!row) {
            std::vector<std::string_view> names;
            for (const FieldRow& one : rows_) {
                if (one.standing == Standing::kHonoured) names.push_back(one.name);
            }
            const std::string where = path_of(path, printable(field, 60));
            throw ApiError(400,
                           fmt::format("{}: no field of this name is known in {}{}; leave it out", where,
                                       name.empty() ? name_ : name, did_you_mean(field, names)),
                           where, "unknown_parameter");
        }
        const Standing standing = rows_[*row].standing;
        if (standing == Standing::kHonoured || standing == Standing::kHarmless || is_neutral(*row, value)) continue;
        const std::string where = path_of(path, field);
        if (standing == Standing::kHint) {
            take_hint(*row, value, where);
            continue;
        }
        throw ApiError(400, fmt::format("{}: {}", where, rows_[*row].text), where, "not_supported");
    }
}

}  // namespace tessera::server
