// The HTTP server.
#pragma once

#include "apps/server/model_host.hpp"
#include "apps/server/settings.hpp"
#include "core/setup/loading.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

namespace tessera::server {

class Server {
  public:
    // Opens the port and responds from then on, by a thread of its own. `name`: the model's, to clients. All arguments
    // outlive the server. `say` gets, from that thread, a line of what SIGHUP has had read. Throws Error that says
    // which address could not be opened and why.
    Server(const ServerSettings& settings, ModelHost& host, std::string name, LineSink say);
    // Ends connections.
    ~Server();
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    uint16_t port() const noexcept;

    // Waits for SIGINT or SIGTERM; then no new requests are accepted, and it returns when all responses have ended,
    // after settings.drain_time or at the next such signal. SIGHUP reads keys and the certificate again. Returns at
    // once if stop() was called.
    void wait();
    // Waits until all responses have been written, so that clients hear of those that were cut, for so long at most.
    void flush(std::chrono::milliseconds limit);
    // Whether another such signal has come since wait() returned. Any thread.
    bool hurries() const noexcept;
    // Ends wait() as a signal does. Any thread.
    void stop();

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace tessera::server
