// Texts that the model generates, as the OpenAI API has them.
#include "apps/server/dialects/openai/chat_completion_responder.hpp"
#include "apps/server/dialects/openai/completion_responder.hpp"
#include "apps/server/dialects/openai/embeddings.hpp"
#include "apps/server/dialects/openai/requests.hpp"
#include "apps/server/embeddings_responder.hpp"
#include "apps/server/start_response.hpp"

namespace tessera::server {
namespace {

std::shared_ptr<Responder> completion(const EndpointContext& context, const std::shared_ptr<Exchange>& exchange) {
    std::shared_ptr<const ServedModel> model = context.host.model();
    CompletionRequest read = read_completion(exchange->request().body, *model);
    exchange->drop_body();
    return start_response(
        context, exchange->request(),
        std::make_shared<CompletionResponder>(exchange, std::move(model), read.delivery, std::move(read.completion)),
        std::move(read.prompts));
}

}  // namespace

namespace endpoint_files {

constexpr Endpoint kOpenAiEndpoints[] = {
    {.method = "POST",
     .paths = "/v1/chat/completions /chat/completions",
     .generate = respond_to_chat<read_chat, ChatCompletionResponder>},
    {.method = "POST", .paths = "/v1/completions", .generate = completion},
    {.method = "POST", .paths = "/v1/embeddings", .generate = respond_with_embeddings<read_embeddings>},
};
extern const std::span<const Endpoint> openai = kOpenAiEndpoints;

}  // namespace endpoint_files

}  // namespace tessera::server
