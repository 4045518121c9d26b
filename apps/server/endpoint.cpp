#include "apps/server/endpoint.hpp"

#include "apps/server/http_text.hpp"

#include <utility>

namespace tessera::server {

std::string named_part(const EndpointContext& context, const HttpRequest& request, std::string_view before) {
    return percent_decoded(std::string_view(request.path).substr(context.settings.prefix.size() + before.size()));
}

}  // namespace tessera::server
