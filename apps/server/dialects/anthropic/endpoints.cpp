// Chats as the Messages API of Anthropic has them.
#include "apps/server/dialects/anthropic/dialect.hpp"
#include "apps/server/dialects/anthropic/messages_request.hpp"
#include "apps/server/dialects/anthropic/messages_responder.hpp"
#include "apps/server/start_response.hpp"

#include <spdlog/fmt/fmt.h>

namespace tessera::server {
namespace anthropic {
namespace {

HttpResponse count(const EndpointContext& context, const HttpRequest& request) {
    const std::shared_ptr<const ServedModel> model = context.host.model();
    return json_response(fmt::format(R"({{"input_tokens":{}}})", count_tokens(request.body, *model)));
}

}  // namespace

constexpr Endpoint kEndpoints[] = {
    {.method = "POST",
     .paths = "/v1/messages /messages",
     .generate = respond_to_chat<read_messages, MessagesResponder>,
     .dialect = &kAnthropic},
    {.method = "POST",
     .paths = "/v1/messages/count_tokens /messages/count_tokens",
     .work = count,
     .dialect = &kAnthropic},
};

}  // namespace anthropic

namespace endpoint_files {

extern const std::span<const Endpoint> anthropic = server::anthropic::kEndpoints;

}  // namespace endpoint_files

}  // namespace tessera::server
