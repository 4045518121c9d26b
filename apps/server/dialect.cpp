#include "apps/server/dialect.hpp"

namespace tessera::server {

std::string server_sent_event(std::string_view event, std::string_view json) {
    std::string out;
    out.reserve(event.size() + json.size() + 20);
    if (!event.empty()) out.append("event: ").append(event) += '\n';
    out.append("data: ").append(json).append("\n\n");
    return out;
}

HttpResponse to_response(const ApiError& error, const Dialect& dialect) {
    HttpResponse response = to_response(error);
    response.body = dialect.error_json(error);
    return response;
}

}  // namespace tessera::server
