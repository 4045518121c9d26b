#include "apps/server/dialect.hpp"

#include "apps/server/endpoint.hpp"
#include "apps/server/request_tables.hpp"

#include <algorithm>

namespace tessera::server {

std::string server_sent_event(std::string_view event, std::string_view json) {
    std::string out;
    out.reserve(event.size() + json.size() + 20);
    if (!event.empty()) out.append("event: ").append(event) += '\n';
    out.append("data: ").append(json).append("\n\n");
    return out;
}

const Dialect kOpenAi{
    .error_json = json_of,
    .silence = ": waiting\n\n",
    .tables = request_tables,
};

std::vector<const FieldTable*> field_tables() {
    std::vector<const Dialect*> dialects{&kOpenAi};
    std::vector<const FieldTable*> tables(request_tables().begin(), request_tables().end());
    for (const std::span<const Endpoint> file : endpoints()) {
        for (const Endpoint& endpoint : file) {
            if (std::ranges::find(dialects, endpoint.dialect) != dialects.end()) continue;
            dialects.push_back(endpoint.dialect);
            tables.insert(tables.end(), endpoint.dialect->tables().begin(), endpoint.dialect->tables().end());
        }
    }
    return tables;
}

HttpResponse to_response(const ApiError& error, const Dialect& dialect) {
    HttpResponse response = to_response(error);
    response.body = dialect.error_json(error);
    return response;
}

}  // namespace tessera::server
