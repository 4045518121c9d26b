#include "apps/server/start_response.hpp"

namespace tessera::server {

std::shared_ptr<Responder> start_response(const EndpointContext& context, const HttpRequest& request,
                                          std::shared_ptr<Responder> response, std::vector<session::Request> prompts) {
    const Sender sender = context.access.sender_of(request);
    response->make_whole_by([&workers = context.workers, client = sender.client](uint64_t bytes, auto work) {
        workers.post(client, bytes, std::move(work));
    });
    for (session::Request& prompt : prompts) {
        prompt.client = sender.client;
        prompt.space = sender.space;
        prompt.client_running = sender.limits.running.value_or(0);
    }
    response->start(std::move(prompts), sender.limits, context.accounts);
    return response;
}

}  // namespace tessera::server
