// Chats as the Responses API of OpenAI has them.
#include "apps/server/dialects/responses/dialect.hpp"
#include "apps/server/dialects/responses/request.hpp"
#include "apps/server/dialects/responses/responder.hpp"
#include "apps/server/start_response.hpp"

namespace tessera::server {
namespace responses {

constexpr std::string_view kNotKept = "answers are not kept: send the whole conversation to /v1/responses";

constexpr Endpoint kEndpoints[] = {
    {.method = "POST",
     .paths = "/v1/responses /responses",
     .generate = respond_to_chat<read_response, ResponsesResponder>,
     .dialect = &kResponses},
    {.method = "", .paths = "/v1/responses/{id} /v1/conversations /v1/conversations/{id}", .refusal = kNotKept},
};

}  // namespace responses

namespace endpoint_files {

extern const std::span<const Endpoint> responses = server::responses::kEndpoints;

}  // namespace endpoint_files

}  // namespace tessera::server
