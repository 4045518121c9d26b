#include "apps/server/endpoint.hpp"

#include "apps/server/http_text.hpp"

#include <algorithm>
#include <utility>

namespace tessera::server {

std::string named_part(const EndpointContext& context, const HttpRequest& request, std::string_view before) {
    return percent_decoded(std::string_view(request.path).substr(context.settings.prefix.size() + before.size()));
}

std::vector<const FieldTable*> field_tables() {
    std::vector<const Dialect*> dialects{&kOpenAi};
    std::vector<const FieldTable*> tables(kOpenAi.tables().begin(), kOpenAi.tables().end());
    for (const std::span<const Endpoint> file : endpoints()) {
        for (const Endpoint& endpoint : file) {
            if (std::ranges::find(dialects, endpoint.dialect) != dialects.end()) continue;
            dialects.push_back(endpoint.dialect);
            tables.insert(tables.end(), endpoint.dialect->tables().begin(), endpoint.dialect->tables().end());
        }
    }
    return tables;
}

}  // namespace tessera::server
