#include "apps/server/body_type.hpp"

#include "apps/server/http_text.hpp"
#include "core/base/text.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string>

namespace tessera::server {
namespace {

// Browsers say where a request comes from; other programs have no reason to.
bool is_of_browser(const HttpRequest& request) {
    return std::ranges::any_of(request.headers, [](const auto& header) {
        const std::string& name = header.first;
        return name == "origin" || name == "referer" || name == "cookie" || name.starts_with("sec-");
    });
}

}  // namespace

// Curl calls what it is given a form, and some clients of ollama say nothing.
std::optional<ApiError> fault_of_type(const HttpRequest& request) {
    const std::string* const given = request.header("content-type");
    const std::string type = given ? media_type(*given) : std::string();
    const bool taken_for_json = !given || type == "application/x-www-form-urlencoded";
    if (type != "application/json" && (!taken_for_json || is_of_browser(request)))
        return ApiError(415, "expected the header 'Content-Type: application/json'", "Content-Type");
    const std::string charset = given ? media_parameter(*given, "charset") : std::string();
    if (!charset.empty() && charset != "utf-8" && charset != "utf8" && charset != "us-ascii")
        return ApiError(415, fmt::format("Content-Type: charset '{}'; JSON is sent as UTF-8", printable(charset, 40)),
                        "Content-Type");
    const std::string* const coding = request.header("content-encoding");
    if (!coding || lower_case(*coding) == "identity") return std::nullopt;
    return ApiError(415,
                    fmt::format("Content-Encoding: '{}' is not read; send the body as it is", printable(*coding, 40)),
                    "Content-Encoding");
}

}  // namespace tessera::server
