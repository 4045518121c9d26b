#include "apps/server/saved_slot.hpp"

#include "apps/server/api_error.hpp"
#include "apps/server/json_fields.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace tessera::server {
namespace {

constexpr size_t kLongestName = 200;

constexpr FieldRow kSavedSlot[] = {
    {"filename", Standing::kHonoured,
     "of the file in the server's folder, to save and restore: letters, digits, '-', '_' and '.'"},
    {"model", Standing::kHarmless, "there is one model"},
};

bool may_be_in_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
}

}  // namespace

const FieldTable& saved_slot_table() {
    static const FieldTable table("/slots/{id}", {kSavedSlot});
    return table;
}

std::string read_slot_file(std::string_view body) {
    const auto object = parse_object(body);
    const Fields fields(object, saved_slot_table());
    const std::string name(fields.text("filename").value_or(""));
    fields.check_read();
    if (name.empty() || name.size() > kLongestName || name.front() == '.' || !std::ranges::all_of(name, may_be_in_name))
        throw ApiError(400,
                       fmt::format("Invalid filename: expected letters, digits, '-', '_' and '.', which it does not "
                                   "begin with, {} at most",
                                   kLongestName),
                       "filename");
    return name;
}

}  // namespace tessera::server
