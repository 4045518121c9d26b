// Texts to tokens and back, and conversations to texts.
#include "apps/server/endpoint.hpp"
#include "apps/server/text_api.hpp"

namespace tessera::server::endpoint_files {

// `Answer`: of text_api.hpp.
template <auto Answer>
HttpResponse answered(const EndpointContext& context, const HttpRequest& request) {
    const std::shared_ptr<const ServedModel> model = context.host.model();
    return Answer(request.body, *model, context.json_memory);
}

constexpr Endpoint kText[] = {
    {.method = "POST", .paths = "/tokenize", .work = answered<tokenize_response>},
    {.method = "POST", .paths = "/detokenize", .work = answered<detokenize_response>},
    {.method = "POST", .paths = "/apply-template", .work = answered<apply_template_response>},
};
extern const std::span<const Endpoint> text = kText;

}  // namespace tessera::server::endpoint_files
