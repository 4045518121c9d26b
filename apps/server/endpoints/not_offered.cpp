// What other servers offer, of which clients should hear more than that it is not found.
#include "apps/server/endpoint.hpp"

namespace tessera::server::endpoint_files {

constexpr Endpoint kAll[] = {
    {.method = "", .paths = "/embedding /embeddings /v1/embeddings", .refusal = "this version generates text alone"},
    {.method = "",
     .paths = "/rerank /reranking /v1/rerank /v1/reranking",
     .refusal = "this version generates text alone"},
    {.method = "", .paths = "/infill", .refusal = "this version generates text alone"},
};
extern const std::span<const Endpoint> not_offered = kAll;

}  // namespace tessera::server::endpoint_files
