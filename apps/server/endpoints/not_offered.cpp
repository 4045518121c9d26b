// What other servers offer, of which clients should hear more than that it is not found.
#include "apps/server/endpoint.hpp"

namespace tessera::server::endpoint_files {

constexpr Endpoint kAll[] = {
    {.method = "",
     .paths = "/rerank /reranking /v1/rerank /v1/reranking",
     .refusal = "rankings are not computed: no model of a ranker's architecture is known"},
};
extern const std::span<const Endpoint> not_offered = kAll;

}  // namespace tessera::server::endpoint_files
