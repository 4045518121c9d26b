#include "apps/server/exchange.hpp"

#include <algorithm>

namespace tessera::server {

const std::string* HttpRequest::header(std::string_view name) const noexcept {
    const auto at = std::ranges::find(headers, name, [](const auto& pair) { return std::string_view(pair.first); });
    return at == headers.end() ? nullptr : &at->second;
}

void add_header_value(Headers& headers, std::string_view name, std::string_view value) {
    constexpr std::ptrdiff_t kMost = 32;
    constexpr std::string_view kMore = "...";
    std::string clean(value);
    std::ranges::replace_if(
        clean, [](char c) { return c < ' ' || c > '~' || c == ','; }, '?');
    const auto at = std::ranges::find(headers, name, [](const auto& pair) { return std::string_view(pair.first); });
    if (at == headers.end()) {
        headers.emplace_back(name, std::move(clean));
        return;
    }
    const std::string all = ", " + at->second + ",";
    if (all.find(", " + clean + ",") != std::string::npos || all.ends_with(", ...,")) return;
    at->second += ", ";
    at->second += std::ranges::count(all, ',') > kMost ? kMore : clean;
}

}  // namespace tessera::server
