#include "apps/server/start_answer.hpp"

namespace tessera::server {

std::shared_ptr<Answering> start_answer(const EndpointContext& context, const HttpRequest& request,
                                        std::shared_ptr<Answering> answer, std::vector<session::Request> prompts) {
    const Sender sender = context.access.sender_of(request);
    answer->make_whole_by([&workers = context.workers, client = sender.client](uint64_t bytes, auto work) {
        workers.post(client, bytes, std::move(work));
    });
    for (session::Request& prompt : prompts) {
        prompt.client = sender.client;
        prompt.space = sender.space;
        prompt.client_running = sender.limits.running.value_or(0);
    }
    answer->start(std::move(prompts), sender.limits, context.accounts);
    return answer;
}

}  // namespace tessera::server
