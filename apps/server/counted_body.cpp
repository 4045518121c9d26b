#include "apps/server/counted_body.hpp"

#include "apps/server/api_error.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace tessera::server {

void CountedBody::append(std::string_view part) {
    const size_t needed = text_.size() + part.size();
    if (needed > held_.limit())
        throw ApiError(400,
                       fmt::format("{}: the answer has more than the {} bytes that the server holds (--held-limit); "
                                   "send it in parts",
                                   field_, held_.limit()),
                       std::string(field_));
    if (needed > text_.capacity()) {
        const size_t room = std::max(needed, 2 * text_.capacity());
        if (room > kUncounted) count(room - text_.capacity());
        text_.reserve(room);
    }
    text_ += part;
}

void CountedBody::count(uint64_t bytes) {
    if (held_.add(bytes)) return;
    throw ApiError(503,
                   fmt::format("the answer takes more than what is free of the {} bytes that the server has for such "
                               "(--held-limit); a smaller request may work",
                               held_.limit()),
                   {}, "overloaded");
}

}  // namespace tessera::server
