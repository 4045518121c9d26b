// Texts that the model generates, and what turns texts and conversations to tokens and back, as llama-server has them.
#include "apps/server/api_error.hpp"
#include "apps/server/dialects/llama/dialect.hpp"
#include "apps/server/dialects/llama/embedding.hpp"
#include "apps/server/dialects/llama/plain_responder.hpp"
#include "apps/server/dialects/llama/requests.hpp"
#include "apps/server/dialects/llama/text_api.hpp"
#include "apps/server/embeddings_responder.hpp"
#include "apps/server/start_response.hpp"
#include "core/base/text.hpp"

#include <spdlog/fmt/fmt.h>

namespace tessera::server {
namespace {

template <auto Read>
std::shared_ptr<Responder> plain_completion(const EndpointContext& context, const std::shared_ptr<Exchange>& exchange) {
    std::shared_ptr<const ServedModel> model = context.host.model();
    PlainRequest read = Read(exchange->request().body, *model);
    exchange->drop_body();
    return start_response(
        context, exchange->request(),
        std::make_shared<PlainResponder>(exchange, std::move(model), read.delivery, std::move(read.plain)),
        std::move(read.prompts));
}

// `Answer`: of text_api.hpp.
template <auto Answer>
HttpResponse answered(const EndpointContext& context, const HttpRequest& request) {
    const std::shared_ptr<const ServedModel> model = context.host.model();
    return Answer(request.body, *model, context.json_memory);
}

// Ends the reasoning of an answer that is being generated.
HttpResponse control(const EndpointContext& context, const HttpRequest& request) {
    const std::string id = read_control(request.body);
    if (!context.end_reasoning(id, context.access.sender_of(request).client))
        throw ApiError(
            404, fmt::format("id: no answer with reasoning and the id '{}' is being generated", printable(id, 60)),
            "id", "not_found");
    return json_response(R"({"success":true})");
}

}  // namespace

namespace endpoint_files {

constexpr Endpoint kLlamaEndpoints[] = {
    {.method = "POST",
     .paths = "/completion /completions",
     .generate = plain_completion<read_plain_completion>,
     .dialect = &kLlama},
    {.method = "POST", .paths = "/infill", .generate = plain_completion<read_infill>, .dialect = &kLlama},
    {.method = "POST",
     .paths = "/embedding /embeddings",
     .generate = respond_with_embeddings<read_embedding>,
     .dialect = &kLlama},
    {.method = "POST", .paths = "/v1/chat/completions/control", .work = control, .dialect = &kLlama},
    {.method = "POST", .paths = "/tokenize", .work = answered<tokenize_response>, .dialect = &kLlama},
    {.method = "POST", .paths = "/detokenize", .work = answered<detokenize_response>, .dialect = &kLlama},
    {.method = "POST", .paths = "/apply-template", .work = answered<apply_template_response>, .dialect = &kLlama},
};
extern const std::span<const Endpoint> llama = kLlamaEndpoints;

}  // namespace endpoint_files

}  // namespace tessera::server
