#include "apps/server/exchange.hpp"

#include <algorithm>

namespace tessera::server {

const std::string* HttpRequest::header(std::string_view name) const noexcept {
    const auto at = std::ranges::find(headers, name, [](const auto& pair) { return std::string_view(pair.first); });
    return at == headers.end() ? nullptr : &at->second;
}

}  // namespace tessera::server
