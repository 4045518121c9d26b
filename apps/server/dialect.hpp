// The JSON in which a client and the server speak: one for each API that clients know.
#pragma once

#include "apps/server/api_error.hpp"
#include "apps/server/field_table.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::server {

// Server-sent events: "event: NAME", where there is a name, and "data: JSON".
std::string server_sent_event(std::string_view event, std::string_view json);

// Constant; any thread. Its folder in dialects/ has the endpoints that speak so: each reads its own JSON into the
// session's requests (request_fields.hpp) and conversations (conversation.hpp), and writes what is generated in its
// own.
struct Dialect {
    // The body of an answer that says what is wrong; as a part of a stream, too.
    std::string (*error_json)(const ApiError&);
    // Of an answer in parts.
    std::string_view stream_type = "text/event-stream";
    // One part of a stream. `event`: its name; empty: it has none.
    std::string (*part)(std::string_view event, std::string_view json) = server_sent_event;
    // Sent where a stream would be silent for long; empty: nothing may be.
    std::string_view silence;
    // The tables of its requests' fields.
    std::span<const FieldTable* const> (*tables)();
};

// Of the OpenAI API and llama-server. Errors are its where nothing says what the client speaks.
extern const Dialect kOpenAi;

// The tables of all dialects that endpoints speak.
std::vector<const FieldTable*> field_tables();

HttpResponse to_response(const ApiError& error, const Dialect& dialect);

}  // namespace tessera::server
