#include "apps/server/connection.hpp"

#include "apps/server/api_error.hpp"
#include "apps/server/client_socket.hpp"
#include "apps/server/http_text.hpp"
#include "apps/server/pending_response.hpp"
#include "apps/server/request_reader.hpp"
#include "core/base/log.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

namespace tessera::server {
namespace {

namespace asio = boost::asio;
using Tcp = asio::ip::tcp;
using Clock = std::chrono::steady_clock;
using State = ClientSocket::State;

constexpr size_t kReadAheadBytes = 16 << 10;  // of what follows a request, while it is answered
constexpr size_t kDiscardBytes = 1 << 20;     // read after an early response, so that the client gets to see it
constexpr uint64_t kSlowestBytes = 16 << 10;  // of a body, a second
constexpr size_t kKeptBytes = 64 << 10;       // of a buffer between writes
constexpr size_t kLargeBytes = 1 << 20;       // of a body or a response
constexpr std::chrono::milliseconds kEndPoll(500);

ApiError overloaded(const std::string& message) {
    ApiError error(503, message, {}, "overloaded");
    error.retry_after = 1;
    return error;
}

class Connection final : public Occupant, public ResponseSink, public std::enable_shared_from_this<Connection> {
  public:
    Connection(Tcp::socket socket, ConnectionContext& context, bool in_reserve)
        : socket_(std::move(socket), context.tls),
          timer_(socket_.executor()),
          end_timer_(socket_.executor()),
          context_(context),
          address_(socket_.address()),
          body_(context.crowd.no_body()) {
        client = network = network_of(address_);
        reserved = in_reserve;
        context_.crowd.add(*this);
    }
    ~Connection() override {
        if (response_) socket_.cut();
        leave_crowd();
    }

    void begin();

    uint64_t body_bytes() const override { return response_ ? response_->body_bytes() : body_.bytes(); }
    uint64_t unread_bytes() const override { return response_ ? response_->unread_bytes() : 0; }
    void leave() override {
        const auto self = shared_from_this();
        lose();
    }
    bool give_up_body() override;

    void flush(const std::shared_ptr<PendingResponse>& response) override;
    void overflowed(const std::shared_ptr<PendingResponse>& response) override;
    void given_up(const std::shared_ptr<PendingResponse>& response) override;

  private:
    using Late = void (Connection::*)();

    void leave_crowd() {
        if (std::exchange(in_crowd_, false)) context_.crowd.remove(*this);
    }

    void wait_for_first(Late then, Late late);
    void shake_hands();
    void read_request();
    void read_some();
    void parse();
    void header_read();
    void read_body();
    void watch_body();
    void body_window_ended();
    void late_request();
    void refuse(HttpResponse response);
    void handle();
    void watch();
    bool read_ahead();
    void watch_end();
    void write_more(const std::shared_ptr<PendingResponse>& response);
    void written(const std::shared_ptr<PendingResponse>& response, bool failed);
    void answered();
    void discard();
    void late_reader();
    void lose();
    void close();
    void log_access(const PendingResponse& response);
    std::shared_ptr<PendingResponse> make_response(Headers headers, HeldBytes body);
    // Calls `late` unless deadline_ changes before.
    void set_deadline(std::chrono::milliseconds time, Late late);

    ClientSocket socket_;
    asio::steady_timer timer_, end_timer_;
    ConnectionContext& context_;
    std::string address_;
    RequestReader reader_;
    const Dialect* dialect_ = &kOpenAi;  // of the request
    HeldBytes body_;
    uint64_t window_bytes_ = 0;                  // of the body, when its deadline was set
    std::shared_ptr<PendingResponse> response_;  // being made or written
    std::string writing_;
    size_t sent_ = 0;  // of it
    bool writing_now_ = false;
    bool in_crowd_ = true;
    bool keep_alive_ = false;
    bool chunked_ = true;
    bool unread_ = false;    // part of the request
    uint64_t deadline_ = 0;  // changes when one is set or has been met
    uint64_t discarded_ = 0;
    Clock::time_point start_;
};

void Connection::set_deadline(std::chrono::milliseconds time, Late late) {
    const uint64_t number = ++deadline_;
    timer_.expires_after(time);
    timer_.async_wait([weak = weak_from_this(), number, late](const boost::system::error_code& error) {
        const auto self = weak.lock();
        if (!error && self && self->deadline_ == number) ((*self).*late)();
    });
}

void Connection::begin() {
    if (!socket_.begins_with_handshake()) return read_request();
    enter(Stage::kIdle);
    wait_for_first(&Connection::shake_hands, &Connection::close);
}

// Nothing is held for a connection that is silent. `then` begins with the first byte, and `late` ends what comes of it.
void Connection::wait_for_first(Late then, Late late) {
    set_deadline(context_.settings.idle_time, &Connection::close);
    socket_.wait(State::kWantsRead, [self = shared_from_this(), then, late](const boost::system::error_code& error) {
        if (error) return self->close();
        self->enter(Stage::kHeader);
        self->start_ = Clock::now();
        self->set_deadline(self->context_.settings.header_time, late);
        ((*self).*then)();
    });
}

void Connection::shake_hands() {
    const State state = socket_.shake_hands();
    if (state == State::kEnded) return close();
    if (state == State::kDone && !socket_.in_clear()) return read_request();
    if (state == State::kDone) {
        return refuse({400, "text/plain", "this port is for TLS alone: the address begins with https://\n", {}});
    }
    socket_.wait(state, [self = shared_from_this()](const boost::system::error_code& error) {
        if (error) return self->close();
        self->shake_hands();
    });
}

void Connection::read_request() {
    enter(Stage::kIdle);
    client = network;
    dialect_ = &kOpenAi;
    reader_.begin();
    start_ = Clock::now();
    if (reader_.unparsed() > 0) {
        enter(Stage::kHeader);
        set_deadline(context_.settings.header_time, &Connection::late_request);
        return parse();
    }
    wait_for_first(&Connection::read_some, &Connection::late_request);
}

void Connection::read_some() {
    socket_.wait(State::kWantsRead, [self = shared_from_this()](const boost::system::error_code& error) {
        // The request was refused meanwhile, and the refusal is to be sent.
        if (self->response_) return;
        if (error) return self->close();
        const ClientSocket::Moved moved = self->socket_.read(self->reader_.room());
        if (moved.state == State::kEnded) return self->close();
        if (moved.bytes == 0) return self->read_some();
        self->reader_.received(moved.bytes);
        self->progress(moved.bytes);
        self->parse();
    });
}

void Connection::parse() {
    try {
        if (reader_.has_header()) return read_body();
        if (!reader_.read_header()) return read_some();
        header_read();
    } catch (const ApiError& error) {
        refuse(to_response(error, *dialect_));
    } catch (const std::bad_alloc&) {
        refuse(to_response(overloaded("the server has no memory left for this request"), *dialect_));
    }
}

void Connection::header_read() {
    start_ = Clock::now();
    HttpRequest& request = reader_.request();
    request.number = ++context_.requests;
    request.address = address_;
    chunked_ = request.version >= 11;
    keep_alive_ = chunked_ && reader_.keep_alive() && !context_.closing && !reserved;
    Admission admission = context_.check(request, reserved);
    client = std::move(admission.client);
    dialect_ = admission.dialect;
    if (admission.refusal) return refuse(std::move(*admission.refusal));
    reader_.limit_body(admission.body_bytes);
    if (!reader_.has_body()) return read_body();
    enter(Stage::kBody);
    watch_body();
    const std::string* const expect = request.header("expect");
    if (!expect || !chunked_) return read_body();
    if (lower_case(*expect) != "100-continue")
        throw ApiError(417, "Expect: '100-continue' is all that is understood", "Expect");
    static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    // There is no room for so little if the client has left much unread: it does not wait for this.
    if (socket_.write(asio::buffer(kContinue)).bytes != kContinue.size()) return close();
    read_body();
}

// What has arrived counts, not what was announced: a client that announces much takes nothing from others.
void Connection::read_body() {
    const bool done = reader_.read_body();
    const uint64_t bytes = done ? reader_.request().body.size() : reader_.body_bytes();
    if (!context_.crowd.grow_body(*this, body_, bytes)) {
        throw overloaded(fmt::format("requests of {} bytes are being read, and this client has most of them",
                                     context_.crowd.held_bodies()));
    }
    if (done) return handle();
    read_some();
}

// A client that has begun to send goes on, or gives its share back.
void Connection::watch_body() {
    window_bytes_ = reader_.body_bytes();
    set_deadline(context_.settings.header_time, &Connection::body_window_ended);
}

void Connection::body_window_ended() {
    const auto seconds = static_cast<uint64_t>(context_.settings.header_time.count());
    if (reader_.body_bytes() - window_bytes_ >= kSlowestBytes * seconds) return watch_body();
    late_request();
}

void Connection::late_request() {
    refuse(to_response(ApiError(408, "the request did not arrive in time"), *dialect_));
}

std::shared_ptr<PendingResponse> Connection::make_response(Headers headers, HeldBytes body) {
    return std::make_shared<PendingResponse>(shared_from_this(), socket_.executor(), std::move(reader_.request()),
                                             std::move(headers), std::move(body), context_.crowd.unread(), keep_alive_,
                                             chunked_, *dialect_);
}

// Responds without having read all of the request; the connection ends.
void Connection::refuse(HttpResponse response) {
    Headers headers = context_.headers(reader_.request());
    if (!reader_.has_header()) {
        // For a line in the log and a response: it has a number and a sender alone.
        reader_.request() = {};
        reader_.request().number = ++context_.requests;
        reader_.request().address = address_;
    }
    enter(Stage::kRefused);
    keep_alive_ = false;
    unread_ = true;
    ++deadline_;
    socket_.cancel();
    body_.reset();
    response_ = make_response(std::move(headers), context_.crowd.no_body());
    response_->respond(std::move(response));
    reader_.clear();
}

bool Connection::give_up_body() {
    const auto self = shared_from_this();
    HttpResponse refusal = to_response(
        overloaded("the server has no more memory for requests, this client has most of it, and this one was slowest"),
        *dialect_);
    if (stage() == Stage::kBody && !response_) {
        refuse(std::move(refusal));
        return true;
    }
    if (!response_ || !response_->give_up_body()) return false;
    response_->respond(std::move(refusal));
    return true;
}

void Connection::handle() {
    enter(Stage::kResponse);
    ++deadline_;
    if (body_.bytes() > kLargeBytes) context_.freed_large = true;
    response_ = make_response(context_.headers(reader_.request()), std::move(body_));
    body_ = context_.crowd.no_body();
    unread_ = false;
    reader_.begin();
    watch();
    try {
        context_.handler(response_);
    } catch (...) {
        response_->respond(to_response(current_api_error(), *dialect_));
    }
}

// Until the response has ended: the client's end of the connection. What it sends meanwhile, its next request perhaps,
// is kept for later, or its end would not be seen behind it.
void Connection::watch() {
    if (reader_.unparsed() >= kReadAheadBytes) return watch_end();
    socket_.wait(State::kWantsRead,
                 [self = shared_from_this(), response = response_](const boost::system::error_code& error) {
                     if (self->response_ != response || error == asio::error::operation_aborted) return;
                     if (error || !self->read_ahead()) return self->lose();
                     self->watch();
                 });
}

// Never waits. False: the client has ended the connection.
bool Connection::read_ahead() {
    const auto moved = socket_.read(asio::buffer(reader_.room(), kReadAheadBytes - reader_.unparsed()));
    reader_.received(moved.bytes);
    return moved.state != State::kEnded;
}

// The same behind bytes that stay with the system: it tells of them alone, unless it is asked.
void Connection::watch_end() {
    if (socket_.peer_ended()) return lose();
    end_timer_.expires_after(kEndPoll);
    end_timer_.async_wait([weak = weak_from_this(), response = response_](const boost::system::error_code& error) {
        const auto self = weak.lock();
        if (!error && self && self->response_ == response) self->watch_end();
    });
}

void Connection::flush(const std::shared_ptr<PendingResponse>& response) {
    if (response_ == response && !writing_now_) progress(0);
    // More than all may have is there only until whoever reads most slowly has gone.
    if (context_.crowd.unread().used() > context_.crowd.unread().limit()) context_.crowd.relieve_unread();
    if (response_ != response || writing_now_) return;
    const bool ended = response->take(writing_);
    if (writing_.empty()) {
        if (ended) answered();
        return;
    }
    if (writing_.size() > kLargeBytes) context_.freed_large = true;
    writing_now_ = true;
    set_deadline(context_.settings.write_time, &Connection::late_reader);
    sent_ = 0;
    write_more(response);
}

void Connection::write_more(const std::shared_ptr<PendingResponse>& response) {
    const ClientSocket::Moved moved = socket_.write(asio::buffer(writing_) + sent_);
    sent_ += moved.bytes;
    if (moved.bytes > 0) progress(moved.bytes);
    if (moved.state == State::kEnded || sent_ == writing_.size())
        return written(response, moved.state == State::kEnded);
    // Also if there is room: others come between.
    const State wanted = moved.state == State::kDone ? State::kWantsWrite : moved.state;
    socket_.wait(wanted, [self = shared_from_this(), response](const boost::system::error_code& error) {
        if (error) return self->written(response, true);
        self->write_more(response);
    });
}

void Connection::written(const std::shared_ptr<PendingResponse>& response, bool failed) {
    writing_now_ = false;
    writing_.clear();
    if (writing_.capacity() > kKeptBytes) writing_.shrink_to_fit();
    if (response_ != response) return;
    ++deadline_;
    response->written(sent_);
    if (failed) return lose();
    flush(response);
}

// The whole response has been written.
void Connection::answered() {
    log_access(*response_);
    response_.reset();
    end_timer_.cancel();
    if (!keep_alive_ || context_.closing) {
        if (!unread_) return close();
        socket_.end_writing();
        set_deadline(std::chrono::seconds(2), &Connection::close);
        return discard();
    }
    socket_.cancel();
    read_request();
}

// What the client still sends is read, or the system would drop the response when the connection is closed.
void Connection::discard() {
    socket_.wait(State::kWantsRead, [self = shared_from_this()](const boost::system::error_code& error) {
        const ClientSocket::Moved moved = self->socket_.discard(self->reader_.room());
        self->discarded_ += moved.bytes;
        if (error || moved.state == State::kEnded || self->discarded_ > kDiscardBytes) return self->close();
        self->discard();
    });
}

void Connection::late_reader() {
    log().warn("request {}: {} did not read its answer in time and was disconnected", response_->request().number,
               address_);
    lose();
}

void Connection::overflowed(const std::shared_ptr<PendingResponse>& response) {
    if (response_ != response) return;
    log().warn("request {}: {} does not read its answer and was disconnected", response->request().number, address_);
    lose();
}

void Connection::given_up(const std::shared_ptr<PendingResponse>& response) {
    if (response_ != response) return;
    log().error("request {}: {} was disconnected: the server has no memory left for its answer",
                response->request().number, address_);
    lose();
}

// The client has gone, or has to go.
void Connection::lose() {
    if (const auto response = std::exchange(response_, nullptr)) {
        socket_.cut();
        response->lost();
        log_access(*response);
    }
    close();
}

void Connection::close() {
    leave_crowd();
    ++deadline_;
    timer_.cancel();
    end_timer_.cancel();
    body_.reset();
    socket_.close();
}

void Connection::log_access(const PendingResponse& response) {
    const std::optional<Usage> usage = response.usage();
    context_.log.write({&response.request(), response.status(), response.written_bytes(),
                        std::chrono::duration<double>(Clock::now() - start_).count(), usage ? &*usage : nullptr});
}

}  // namespace

void serve_connection(Tcp::socket socket, ConnectionContext& context, bool reserved) {
    std::make_shared<Connection>(std::move(socket), context, reserved)->begin();
}

}  // namespace tessera::server
