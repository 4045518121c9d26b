// An exchange that keeps what a client would receive.
#pragma once

#include "apps/server/exchange.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::server {

class Received final : public Exchange {
  public:
    const HttpRequest& request() const noexcept override { return request_; }
    bool begin_work() override { return true; }
    void drop_body() override {}
    void add_header(std::string_view name, std::string_view value) override { add_header_value(headers, name, value); }
    void respond(HttpResponse response) override { answer = std::move(response.body); }
    void begin_stream(std::string_view) override { ++begun; }
    void send(std::string part) override { events.push_back(std::move(part)); }
    void end() override { ended = true; }
    void when_gone(std::function<void()>) override {}
    void note(Usage) override {}

    Headers headers;
    std::string answer;
    std::vector<std::string> events;
    int begun = 0;
    bool ended = false;

  private:
    HttpRequest request_;
};

}  // namespace tessera::server
