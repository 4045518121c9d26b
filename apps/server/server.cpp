#include "apps/server/server.hpp"

#include "apps/server/access_control.hpp"
#include "apps/server/api_error.hpp"
#include "apps/server/body_type.hpp"
#include "apps/server/client_limits.hpp"
#include "apps/server/connection.hpp"
#include "apps/server/endpoint.hpp"
#include "apps/server/json_memory.hpp"
#include "apps/server/page.hpp"
#include "apps/server/query.hpp"
#include "apps/server/request_workers.hpp"
#include "apps/server/response_notes.hpp"
#include "apps/server/spare_descriptors.hpp"
#include "apps/server/tls_identity.hpp"
#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <malloc.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <tuple>

namespace tessera::server {
namespace {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;
using Clock = std::chrono::steady_clock;

// What is at a path: an endpoint, or a file of the chat page, which has a handler alone.
struct Route {
    const Endpoint* endpoint = nullptr;
    std::function<HttpResponse(const HttpRequest&)> page;

    bool needs_key() const noexcept { return endpoint && endpoint->needs_key; }
    // A look at the server's state, or a file.
    bool at_once() const noexcept { return !endpoint || endpoint->look; }
};

constexpr uint32_t kReservedConnections = 64;
constexpr size_t kSpareDescriptors = 8;
// Of requests that have no use for it.
constexpr uint64_t kUnusedBody = 64 << 10;
constexpr uint64_t kLargeBody = 1 << 20;
constexpr uint64_t kLeastJson = 128 << 20;  // bytes for parsed JSON
constexpr uint64_t kBytesOfToken = 4;       // of a text that is not generated from

constexpr std::string_view kNamed = "{id}";

// With which both paths begin.
size_t shared_parts(std::string_view one, std::string_view other) {
    size_t parts = 0;
    for (size_t i = 0;; ++i) {
        const auto ends = [i](std::string_view path) { return i >= path.size() || path[i] == '/'; };
        if (i > 0 && ends(one) && ends(other)) ++parts;
        if (i >= one.size() || i >= other.size() || one[i] != other[i]) return parts;
    }
}

std::optional<TlsIdentity> identity_of(const ServerSettings& settings) {
    const auto& [certificate, key] = std::tie(settings.tls_certificate, settings.tls_key);
    if (!certificate && !key) return std::nullopt;
    if (!certificate || !key)
        fail(TSR_INVALID_ARGUMENT, "TLS needs a certificate and its key: give {} too",
             certificate ? "--tls-key" : "--tls-cert");
    return std::optional<TlsIdentity>(std::in_place, *certificate, *key);
}

}  // namespace

struct Server::State {
    State(const ServerSettings& given, ModelHost& model_host, std::string model_name, LineSink lines);

    void add_routes();
    void add_page();
    Admission check(const HttpRequest& request, bool reserved);
    std::optional<HttpResponse> refusal(const HttpRequest& request, const Route* route, const Dialect& dialect,
                                        bool reserved);
    ServerStatus status() const;
    const Route* route_of(const HttpRequest& request) const;
    const Dialect& dialect_of(const HttpRequest& request, const Route* route) const;
    std::string path_of(const HttpRequest& request) const;
    void handle(const std::shared_ptr<Exchange>& exchange);
    void accept();
    void accepted(Tcp::socket socket);
    void give_memory_back();
    void tick();
    void wait_for_signal();
    void reload_identity();
    void begin_draining();
    bool end_reasoning(std::string_view id, std::string_view client);
    size_t count_unanswered();

    const ServerSettings& settings;
    ModelHost& host;
    const std::string name;
    const LineSink say;
    AccessControl access;
    ClientAccounts accounts;
    AccessLog log_file;
    std::optional<TlsIdentity> tls;
    ByteBudget json_memory;                      // and of responses that follow from it
    SpareDescriptors spares{kSpareDescriptors};  // so that /health is answered where all others are in use
    ConnectionContext context;
    asio::io_context io{1};
    Tcp::acceptor acceptor{io};
    asio::steady_timer retry{io}, timer{io};
    asio::signal_set signals{io};
    std::map<std::pair<std::string, std::string>, Route> routes;      // by method and path
    std::map<std::string, const Endpoint*, std::less<>> not_offered;  // by path
    std::vector<std::string> named;                                   // paths of which the last part is a name
    std::mutex mutex;
    std::condition_variable changed;
    std::list<std::weak_ptr<Responder>> responders;  // being made
    // Requests that are more than a look at the server's state, until their responses have been made and written; from
    // before their work begins, so that a signal finds those whose first token is faster than the thread that requested
    // it.
    std::list<std::weak_ptr<Exchange>> unanswered;
    bool draining = false, ended = false;
    std::atomic<bool> freed_large{false};  // by workers
    std::atomic<bool> hurries{false};
    Clock::time_point drain_until;
    RequestWorkers workers;
    const EndpointContext endpoint_context{host,
                                           settings,
                                           name,
                                           access,
                                           accounts,
                                           json_memory,
                                           workers,
                                           [this] { return status(); },
                                           [this](auto id, auto client) { return end_reasoning(id, client); }};
    std::thread thread;
};

Server::State::State(const ServerSettings& given, ModelHost& model_host, std::string model_name, LineSink lines)
    : settings(given),
      host(model_host),
      name(std::move(model_name)),
      say(std::move(lines)),
      access(given),
      log_file(given.access_log),
      tls(identity_of(given)),
      json_memory(std::max(given.held_bytes, kLeastJson)),
      context{settings,
              tls ? &*tls : nullptr,
              [this](const std::shared_ptr<Exchange>& exchange) { handle(exchange); },
              [this](const HttpRequest& request, bool reserved) { return check(request, reserved); },
              [this](const HttpRequest& request) { return access.cors_headers(request); },
              log_file,
              Crowd({.connections = given.connections,
                     .of_network = given.network_connections,
                     .reserved = kReservedConnections,
                     .body_bytes = given.held_bytes,
                     .unread_bytes = given.held_bytes})} {
    boost::system::error_code error;
    Tcp::resolver resolver(io);
    const auto found = resolver.resolve(settings.host, std::to_string(settings.port),
                                        Tcp::resolver::passive | Tcp::resolver::numeric_service, error);
    if (error || found.empty())
        fail(TSR_INVALID_ARGUMENT, "--host {}: this is no address of this machine ({})", settings.host,
             error.message());
    const Tcp::endpoint endpoint = found.begin()->endpoint();
    const auto check_step = [&](std::string_view what) {
        if (!error) return;
        fail(TSR_IO_ERROR, "cannot {} port {} of {}: {}{}", what, settings.port, settings.host, error.message(),
             error == asio::error::address_in_use ? "; another program has it: choose another with --port" : "");
    };
    acceptor.open(endpoint.protocol(), error);
    check_step("open");
    acceptor.set_option(Tcp::acceptor::reuse_address(true), error);
    acceptor.bind(endpoint, error);
    check_step("open");
    acceptor.listen(asio::socket_base::max_listen_connections, error);
    check_step("listen at");
    acceptor.non_blocking(true, error);
    check_step("listen at");
    if (!endpoint.address().is_loopback() && !access.needs_keys()) {
        log().warn(
            "the server listens at {} and needs no key: whoever reaches that address may use it, give --api-key-file, "
            "or --host 127.0.0.1 with a proxy in front",
            settings.host);
    }
    add_routes();
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) signals.add(signal);
    wait_for_signal();
    spares.fill();
    accept();
    tick();
    thread = std::thread([this] {
        pthread_setname_np(pthread_self(), "tessera-io");  // as tools that list threads show it
        // OpenSSL writes to connections whose clients have gone.
        sigset_t pipe;
        sigemptyset(&pipe);
        sigaddset(&pipe, SIGPIPE);
        pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
        for (;;) {
            try {
                io.run();
                return;
            } catch (const std::exception& failure) {
                // Of one connection or timer, for want of memory: the others go on.
                log().error("a connection was given up: {}", failure.what());
            }
        }
    });
}

// Waits first: without a free descriptor the system refuses to accept whether or not anybody waits, and nobody has to
// make room for nobody.
void Server::State::accept() {
    acceptor.async_wait(Tcp::acceptor::wait_read, [this](const boost::system::error_code& waited) {
        if (waited == asio::error::operation_aborted) return;
        boost::system::error_code error;
        Tcp::socket socket(io);
        acceptor.accept(socket, error);
        if (error == asio::error::no_descriptors && (spares.free_one() || context.crowd.make_room())) return accept();
        if (error == asio::error::would_block || error == asio::error::connection_aborted) return accept();
        if (error) {
            // Others may be closed meanwhile.
            retry.expires_after(std::chrono::milliseconds(100));
            retry.async_wait([this](const boost::system::error_code& gone) {
                if (!gone) accept();
            });
            return;
        }
        accept();  // first, so that a connection that fails is the only one
        accepted(std::move(socket));
    });
}

void Server::State::accepted(Tcp::socket socket) {
    boost::system::error_code error;
    const Tcp::endpoint remote = socket.remote_endpoint(error);
    if (error) return;  // it has gone
    const auto place = context.crowd.place_for(network_of(remote.address().to_string()), spares.lacking());
    spares.fill();
    serve_connection(std::move(socket), context, place == Crowd::Place::kReserved);
}

void Server::State::tick() {
    timer.expires_after(std::chrono::seconds(1));
    timer.async_wait([this](const boost::system::error_code& cancelled) {
        if (cancelled) return;
        tick();
        spares.fill();
        give_memory_back();
        const std::scoped_lock lock(mutex);
        std::erase_if(responders, [](const auto& weak) { return weak.expired(); });
        for (const auto& weak : responders) {
            if (const auto responder = weak.lock()) responder->ping(settings.ping_time);
        }
        const bool finished = count_unanswered() == 0;
        if (draining && (finished || Clock::now() >= drain_until)) {
            ended = true;
            changed.notify_all();
        }
    });
}

// What large requests and responses were made of; libraries keep it for later ones, which may be of other sizes.
void Server::State::give_memory_back() {
    if (!std::exchange(context.freed_large, false) && !freed_large.exchange(false)) return;
    // By a worker, since it takes a while; that of this second's frees again at the next.
    workers.post({}, 0, [] { malloc_trim(0); });
}

void Server::State::wait_for_signal() {
    signals.async_wait([this](const boost::system::error_code& cancelled, int signal) {
        if (cancelled) return;
        if (signal == SIGHUP) {
            // First, since it does not depend on the keys: the file may have been moved away.
            log_file.reopen();
            try {
                access.reload();
                if (settings.key_file) say("keys were read again");
            } catch (const Error& error) {
                log().error("keys could not be read again and are as before: {}", error.what());
            }
            reload_identity();
        } else {
            begin_draining();
        }
        wait_for_signal();
    });
}

void Server::State::reload_identity() {
    if (!tls) return;
    try {
        tls->reload();
        say(fmt::format("the certificate was read again: {}", tls->summary()));
    } catch (const Error& error) {
        log().error("the certificate could not be read again and is as before: {}", error.what());
    }
}

bool Server::State::end_reasoning(std::string_view id, std::string_view client) {
    std::vector<std::shared_ptr<Responder>> all;
    {
        const std::scoped_lock lock(mutex);
        for (const auto& weak : responders)
            if (auto responder = weak.lock()) all.push_back(std::move(responder));
    }
    return std::ranges::any_of(all, [&](const auto& responder) { return responder->end_reasoning(id, client); });
}

void Server::State::begin_draining() {
    host.drain();
    const std::scoped_lock lock(mutex);
    const size_t left = count_unanswered();
    hurries = ended;
    if (draining || left == 0) ended = true;
    if (!draining && left > 0) log().warn("{} requests are being finished; a second signal ends them", left);
    draining = true;
    context.closing = true;
    drain_until = Clock::now() + settings.drain_time;
    changed.notify_all();
}

// `mutex` is held.
size_t Server::State::count_unanswered() {
    std::erase_if(unanswered, [](const auto& weak) { return weak.expired(); });
    return unanswered.size();
}

std::string Server::State::path_of(const HttpRequest& request) const {
    // No route's path is without a slash but the prefix itself.
    if (!request.path.starts_with(settings.prefix)) return "outside";
    std::string path = request.path.substr(settings.prefix.size());
    for (const std::string& before : named) {
        if (path.starts_with(before) && path.size() > before.size()) return before + std::string(kNamed);
    }
    return path;
}

const Route* Server::State::route_of(const HttpRequest& request) const {
    const std::string path = path_of(request);
    if (const auto at = routes.find({request.method, path}); at != routes.end()) return &at->second;
    const auto at = request.method == "HEAD" ? routes.find({"GET", path}) : routes.end();
    return at == routes.end() ? nullptr : &at->second;
}

// What a client of this path speaks. Where nothing is at it: that of the paths that share most of its parts, if it is
// the same of all.
const Dialect& Server::State::dialect_of(const HttpRequest& request, const Route* route) const {
    if (route && route->endpoint) return *route->endpoint->dialect;
    const std::string path = path_of(request);
    const Dialect* found = &kOpenAi;
    size_t most = 0;
    const auto consider = [&](const std::string& known, const Endpoint* endpoint) {
        if (!endpoint) return;
        const size_t parts = known == path ? path.size() : shared_parts(known, path);
        if (parts == most && endpoint->dialect != found) found = &kOpenAi;
        if (parts <= most) return;
        most = parts;
        found = endpoint->dialect;
    };
    for (const auto& [key, known] : routes) consider(key.second, known.endpoint);
    for (const auto& [known, endpoint] : not_offered) consider(known, endpoint);
    return *found;
}

// By the header alone, before a body is read.
Admission Server::State::check(const HttpRequest& request, bool reserved) {
    const Route* const route = route_of(request);
    const Dialect& dialect = dialect_of(request, route);
    Admission admission{refusal(request, route, dialect, reserved), access.sender_of(request).client, kUnusedBody,
                        &dialect};
    if (route && !route->at_once()) admission.body_bytes = settings.body_bytes;
    return admission;
}

std::optional<HttpResponse> Server::State::refusal(const HttpRequest& request, const Route* route,
                                                   const Dialect& dialect, bool reserved) {
    const bool asks = request.method == "OPTIONS";  // a browser, before the request itself
    if (const auto refusal = access.refusal(request, !asks && (!route || route->needs_key())))
        return to_response(*refusal, dialect);
    if (asks) {
        HttpResponse response{204, "text/plain", {}, {}};
        response.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST");
        // Clients for browsers send headers of their own; the star is all but the first.
        response.headers.emplace_back("Access-Control-Allow-Headers", "Authorization, *");
        response.headers.emplace_back("Access-Control-Max-Age", "600");
        return response;
    }
    if (!route) {
        const std::string path = path_of(request);
        std::string allowed;
        for (const auto& [key, known] : routes) {
            if (key.second == path) allowed += (allowed.empty() ? "" : ", ") + key.first;
        }
        if (const auto reason = not_offered.find(path); allowed.empty() && reason != not_offered.end())
            return to_response(
                ApiError(501,
                         fmt::format("{}: {}", request.path,
                                     reason->second->refusal.empty() ? "it is switched off on this server"
                                                                     : reason->second->refusal),
                         {}, "not_supported"),
                *reason->second->dialect);
        if (allowed.empty())
            return to_response(
                ApiError(404, fmt::format("there is no {}; see openapi.yaml for what there is", request.path)),
                dialect);
        HttpResponse response = to_response(ApiError(405, fmt::format("{} takes {}", request.path, allowed)), dialect);
        response.headers.emplace_back("Allow", allowed);
        return response;
    }
    if (route->endpoint) {
        try {
            check_query(path_of(request), request.query);
        } catch (const ApiError& error) {
            return to_response(error, dialect);
        }
    }
    if (const auto fault = request.method == "POST" ? fault_of_type(request) : std::nullopt)
        return to_response(*fault, dialect);
    if (reserved && !(route->endpoint && route->endpoint->always)) {
        ApiError error(503, "there are more connections than the server serves at once", {}, "overloaded");
        error.retry_after = 1;
        return to_response(error, dialect);
    }
    if (const auto model = !route->at_once() ? host.peek() : nullptr) {
        const Sender sender = access.sender_of(request);
        if (const auto refused = accounts.refusal(sender.client, sender.limits, model->engine->max_sequences()))
            return to_response(*refused, dialect);
    }
    return std::nullopt;
}

void Server::State::handle(const std::shared_ptr<Exchange>& exchange) {
    const HttpRequest& request = exchange->request();
    const Route* const route = route_of(request);
    if (!route->endpoint) return exchange->respond(route->page(request));
    const Endpoint& endpoint = *route->endpoint;
    if (endpoint.look) {
        try {
            return exchange->respond(endpoint.look(endpoint_context, request));
        } catch (...) {
            return exchange->respond(to_response(current_api_error(), *endpoint.dialect));
        }
    }
    const Sender sender = access.sender_of(request);
    // A response by the engine gets its own when its prompt is known.
    std::shared_ptr<ClientAccounts::Ticket> ticket;
    if (const auto model = endpoint.work ? host.peek() : nullptr) {
        try {
            ticket = accounts.admit(sender.client, sender.limits, model->engine->max_sequences(), 1,
                                    request.body.size() / kBytesOfToken);
        } catch (const ApiError& error) {
            return exchange->respond(to_response(error, *endpoint.dialect));
        }
    }
    {
        const std::scoped_lock lock(mutex);
        unanswered.push_back(exchange);
    }
    workers.post(sender.client, request.body.size(), [this, exchange, &endpoint, ticket = std::move(ticket)]() mutable {
        if (!exchange->begin_work()) return;
        const bool large = exchange->request().body.size() > kLargeBody;
        std::optional<HttpResponse> response;
        try {
            const JsonMemory::Scope counted(large ? &json_memory : nullptr);
            const ResponseNotes notes(*exchange);
            if (endpoint.work) {
                response = endpoint.work(endpoint_context, exchange->request());
            } else {
                const auto responder = endpoint.generate(endpoint_context, exchange);
                const std::scoped_lock lock(mutex);
                if (responder) responders.push_back(responder);
            }
        } catch (...) {
            const ApiError error = current_api_error();
            exchange->note({0, 0, 0, 0, error.code().empty() ? "refused" : error.code()});
            response = to_response(error, *endpoint.dialect);
        }
        // The client's place is free before it hears of it.
        ticket.reset();
        if (response) {
            exchange->drop_body();
            exchange->respond(std::move(*response));
        }
        if (large) freed_large = true;
    });
}

void Server::State::add_page() {
    for (const PageFile& file : page_files())
        routes[{"GET", std::string(file.path)}] = {
            nullptr, [&file](const HttpRequest& request) { return page_response(file, request); }};
    // The page's own addresses are relative to the slash.
    if (settings.prefix.empty()) return;
    routes[{"GET", ""}] = {nullptr, [this](const HttpRequest&) {
                               return HttpResponse{308, "text/plain", {}, {{"Location", settings.prefix + "/"}}};
                           }};
}

void Server::State::add_routes() {
    if (settings.page) {
        add_page();
    } else {
        // Clients of ollama ask by HEAD / whether a server is there.
        routes[{"GET", "/"}] = {
            nullptr, [](const HttpRequest&) {
                return HttpResponse{200, "text/plain", "tessera-server, without its chat page\n", {}};
            }};
    }
    for (const std::span<const Endpoint> file : endpoints()) {
        for (const Endpoint& endpoint : file) {
            const bool off = endpoint.offered && !(settings.*endpoint.offered);
            for (std::string& path : app::split(endpoint.paths, ' ')) {
                if (path.ends_with(kNamed)) named.push_back(path.substr(0, path.size() - kNamed.size()));
                if (off || !endpoint.refusal.empty()) {
                    not_offered[path] = &endpoint;
                    continue;
                }
                routes[{std::string(endpoint.method), path}] = {&endpoint, {}};
            }
        }
    }
}

// On the thread of I/O.
ServerStatus Server::State::status() const {
    return {static_cast<uint32_t>(context.crowd.size()),
            context.crowd.sent_away(),
            context.requests,
            context.crowd.held_bodies(),
            context.crowd.unread().used(),
            accounts.refused(),
            log_file.dropped()};
}

Server::Server(const ServerSettings& settings, ModelHost& host, std::string name, LineSink say)
    : state_(std::make_unique<State>(settings, host, std::move(name), std::move(say))) {}

Server::~Server() {
    state_->workers.stop();
    state_->io.stop();
    state_->thread.join();
}

uint16_t Server::port() const noexcept {
    boost::system::error_code error;
    return state_->acceptor.local_endpoint(error).port();
}

void Server::wait() {
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [&] { return state_->ended; });
}

void Server::flush(std::chrono::milliseconds limit) {
    const auto end = Clock::now() + limit;
    std::unique_lock lock(state_->mutex);
    while (state_->count_unanswered() > 0 && Clock::now() < end) {
        lock.unlock();
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        lock.lock();
    }
}

bool Server::hurries() const noexcept {
    return state_->hurries;
}

void Server::stop() {
    asio::post(state_->io, [state = state_.get()] { state->begin_draining(); });
}

}  // namespace tessera::server
