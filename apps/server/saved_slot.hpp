// What a request says of a file that a slot is saved to.
#pragma once

#include "apps/server/field_table.hpp"

#include <string>
#include <string_view>

namespace tessera::server {

// The file's name, in `body` of POST /slots/{id}. Throws ApiError(400) for one that is not of letters, digits, '-', '_'
// and '.', that begins with '.', or that is longer than 200.
std::string read_slot_file(std::string_view body);

// In that body.
const FieldTable& saved_slot_table();

}  // namespace tessera::server
