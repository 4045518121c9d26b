// What stands behind '?' in the address of a request: parameters that are honoured, harmless, or refused by name.
#pragma once

#include "apps/server/field_table.hpp"

#include <boost/json/object.hpp>

#include <cstdint>
#include <span>
#include <string_view>

namespace tessera::server {

// "a=1&b" as {"a": "1", "b": ""}. Throws ApiError(400) for a parameter that stands twice.
boost::json::object parse_query(std::string_view query);

// Of the endpoint at `path`, without prefix. The chat page's own addresses have none: its scripts may read anything.
const FieldTable& query_table(std::string_view path);

// All of them.
std::span<const FieldTable* const> query_tables();

// Throws ApiError(400) that names the first parameter which is not known or is refused.
void check_query(std::string_view path, std::string_view query);

// Whether /slots is to fail where all of them are in use. Throws ApiError(400).
bool fails_on_no_slot(std::string_view query);

enum class SlotAction : uint8_t { kSave, kRestore, kErase };
// Of POST /slots/{id}. Throws ApiError(400).
SlotAction slot_action(std::string_view query);

}  // namespace tessera::server
