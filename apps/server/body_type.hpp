// Whether a request's body may be read as JSON, by its header.
#pragma once

#include "apps/server/api_error.hpp"
#include "apps/server/exchange.hpp"

#include <optional>

namespace tessera::server {

// Why it is none: 415, with the header that says so. A page of another site can make a browser send any type but that
// of JSON without asking.
std::optional<ApiError> fault_of_type(const HttpRequest& request);

}  // namespace tessera::server
