#include "apps/tessera-server/connection.hpp"

#include "apps/tessera-server/api_error.hpp"
#include "apps/tessera-server/http_text.hpp"
#include "core/base/log.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace tessera::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using Tcp = asio::ip::tcp;
using Clock = std::chrono::steady_clock;

constexpr uint32_t kHeaderBytes = 64 << 10;
constexpr size_t kUnreadBytes = 16 << 20;     // of a stream that the client does not read, until it is disconnected
constexpr size_t kUnreadShare = 64 << 10;     // the same where all clients together have more than they may
constexpr size_t kReadAheadBytes = 16 << 10;  // of what follows a request, while it is answered
constexpr size_t kDiscardBytes = 1 << 20;     // read after an early answer, so that the client gets to see it
constexpr uint64_t kSlowestBytes = 16 << 10;  // of a body, a second
constexpr size_t kKeptBytes = 64 << 10;       // of a buffer between writes
constexpr unsigned kClientGone = 499;

class Connection : public std::enable_shared_from_this<Connection> {
  public:
    Connection(Tcp::socket socket, ConnectionContext& context)
        : socket_(std::move(socket)), timer_(socket_.get_executor()), context_(context) {
        boost::system::error_code error;
        const auto remote = socket_.remote_endpoint(error);
        if (!error) address_ = remote.address().to_string();
        socket_.set_option(Tcp::no_delay(true), error);
        ++context_.open;
    }
    ~Connection() {
        has_arrived();
        --context_.open;
    }

    void read_request();

  private:
    class Answer;

    void is_arriving();
    void has_arrived();
    void read_header();
    void header_read();
    void read_body();
    void read_more();
    void name_unread_request();
    void failed(const boost::system::error_code& error);
    void late_request();
    void refuse(HttpResponse response);
    void handle();
    void watch();
    bool read_ahead();
    void flush(const std::shared_ptr<Answer>& answer);
    void written(const std::shared_ptr<Answer>& answer, const boost::system::error_code& error, size_t bytes);
    void answered();
    void discard();
    void late_reader();
    void lose();
    void close();
    void log_access(const Answer& answer);
    // Calls `late` unless deadline_ changes before.
    void set_deadline(std::chrono::milliseconds time, void (Connection::*late)());

    Tcp::socket socket_;
    asio::steady_timer timer_;
    ConnectionContext& context_;
    std::string address_;
    std::optional<std::list<std::function<void()>>::iterator> arriving_;
    beast::flat_buffer buffer_;
    std::optional<http::request_parser<http::string_body>> parser_;
    HttpRequest request_;
    HeldBytes body_{context_.bodies};
    std::shared_ptr<Answer> answer_;  // being made or written
    std::string writing_;
    bool writing_now_ = false;
    bool keep_alive_ = false;
    bool chunked_ = true;
    bool unread_ = false;    // part of the request
    uint64_t deadline_ = 0;  // changes when one is set or has been met
    uint64_t discarded_ = 0;
    Clock::time_point start_;
};

// Its text is made by the threads that answer, and written by the thread of I/O.
class Connection::Answer final : public Exchange, public std::enable_shared_from_this<Answer> {
  public:
    Answer(std::shared_ptr<Connection> connection, HttpRequest request, HeldBytes body, bool keep_alive, bool chunked)
        : connection_(std::move(connection)),
          executor_(connection_->socket_.get_executor()),
          request_(std::move(request)),
          body_(std::move(body)),
          keep_alive_(keep_alive),
          chunked_(chunked),
          unread_(connection_->context_.unread),
          headers_{{"X-Request-Id", std::to_string(request_.number)}} {}

    // The last reference may be the engine's; a connection ends on the thread of I/O.
    ~Answer() override {
        asio::post(executor_, [connection = std::move(connection_)] {});
    }

    const HttpRequest& request() const noexcept override { return request_; }

    void drop_body() override {
        std::string().swap(request_.body);
        body_.reset();
    }

    void set_headers(Headers headers) override {
        const std::scoped_lock lock(mutex_);
        std::ranges::move(headers, std::back_inserter(headers_));
    }

    void respond(HttpResponse response) override {
        const std::scoped_lock lock(mutex_);
        if (ended_ || started_) return;
        if (response.body.size() > kUnreadShare && !unread_.add(response.body.size())) {
            ApiError error(503, "clients have not read so many bytes of answers that there is no memory for this one",
                           {}, "overloaded");
            error.retry_after = 1;
            response = to_response(error);
        }
        response.headers.insert(response.headers.end(), headers_.begin(), headers_.end());
        std::string text = response_head(response, keep_alive_);
        if (request_.method != "HEAD") text += response.body;
        status_ = response.status;
        pending_ += text;
        started_ = ended_ = true;
        schedule();
    }

    void begin_stream(std::string_view type) override {
        const std::scoped_lock lock(mutex_);
        if (ended_ || started_) return;
        started_ = true;
        status_ = 200;
        pending_ += stream_head(type, headers_, keep_alive_, chunked_);
        schedule();
    }

    void send(std::string part) override {
        const std::scoped_lock lock(mutex_);
        if (ended_ || !started_ || part.empty()) return;
        if (!unread_.add(part.size())) {
            unread_.add_always(part.size());
            overflow_ = overflow_ || unread_.bytes() > kUnreadShare;
        }
        if (unread_.bytes() > kUnreadBytes) overflow_ = true;
        if (chunked_) {
            append_chunk(pending_, part);
        } else {
            pending_ += part;
        }
        schedule();
    }

    void end() override {
        const std::scoped_lock lock(mutex_);
        if (ended_ || !started_) return;
        if (chunked_) pending_ += kLastChunk;
        ended_ = true;
        schedule();
    }

    void when_gone(std::function<void()> gone) override {
        {
            const std::scoped_lock lock(mutex_);
            if (ended_ && !gone_) return;
            if (!gone_) {
                on_gone_ = std::move(gone);
                return;
            }
        }
        gone();
    }

    void note(Usage usage) override {
        const std::scoped_lock lock(mutex_);
        usage_ = std::move(usage);
    }

    // On the thread of I/O: moves what waits to be written; true: that is the end of the answer.
    bool take(std::string& out) {
        const std::scoped_lock lock(mutex_);
        scheduled_ = false;
        out += pending_;
        pending_.clear();
        return ended_;
    }

    // On the thread of I/O: all that take() gave has been written.
    void written(size_t size) {
        const std::scoped_lock lock(mutex_);
        bytes += size;
        unread_.remove(unread_.bytes() - std::min<uint64_t>(unread_.bytes(), pending_.size()));
    }

    // On the thread of I/O: nothing can be written any more.
    void lost() {
        std::function<void()> gone;
        {
            const std::scoped_lock lock(mutex_);
            std::string().swap(pending_);
            unread_.reset();
            if (gone_) return;
            gone_ = true;
            if (!ended_) gone = std::move(on_gone_);
            if (!ended_) status_ = kClientGone;
            ended_ = true;
        }
        if (gone) gone();
    }

    unsigned status() const {
        const std::scoped_lock lock(mutex_);
        return status_;
    }
    std::optional<Usage> usage() const {
        const std::scoped_lock lock(mutex_);
        return usage_;
    }
    uint64_t bytes = 0;  // written; of the thread of I/O

  private:
    void schedule() {
        if (scheduled_) return;
        scheduled_ = true;
        asio::post(executor_, [self = shared_from_this()] {
            if (self->overflow_) {
                log().warn("request {}: {} does not read its answer and was disconnected", self->request_.number,
                           self->request_.address);
                self->connection_->lose();
            } else {
                self->connection_->flush(self);
            }
        });
    }

    std::shared_ptr<Connection> connection_;
    const Tcp::socket::executor_type executor_;
    HttpRequest request_;
    HeldBytes body_;
    const bool keep_alive_, chunked_;
    mutable std::mutex mutex_;  // of all below
    HeldBytes unread_;
    Headers headers_;
    std::string pending_;
    bool started_ = false, ended_ = false, gone_ = false, scheduled_ = false;
    std::atomic<bool> overflow_{false};
    std::function<void()> on_gone_;
    unsigned status_ = kClientGone;
    std::optional<Usage> usage_;
};

void Connection::set_deadline(std::chrono::milliseconds time, void (Connection::*late)()) {
    const uint64_t number = ++deadline_;
    timer_.expires_after(time);
    timer_.async_wait([weak = weak_from_this(), number, late](const boost::system::error_code& error) {
        const auto self = weak.lock();
        if (!error && self && self->deadline_ == number) ((*self).*late)();
    });
}

// As the last of those that may be closed for others' sake.
void Connection::is_arriving() {
    has_arrived();
    arriving_ = context_.arriving.insert(context_.arriving.end(), [this] { close(); });
}

void Connection::has_arrived() {
    if (arriving_) context_.arriving.erase(*arriving_);
    arriving_.reset();
}

void Connection::read_request() {
    is_arriving();
    parser_.emplace();
    parser_->header_limit(kHeaderBytes);
    parser_->body_limit(context_.settings.body_bytes);
    if (buffer_.size() > 0) return read_header();
    set_deadline(context_.settings.idle_time, &Connection::close);
    socket_.async_wait(Tcp::socket::wait_read, [self = shared_from_this()](const boost::system::error_code& error) {
        if (error) return self->close();
        self->read_header();
    });
}

void Connection::read_header() {
    start_ = Clock::now();
    set_deadline(context_.settings.header_time, &Connection::late_request);
    http::async_read_header(socket_, buffer_, *parser_,
                            [self = shared_from_this()](const boost::system::error_code& error, size_t) {
                                if (error) return self->failed(error);
                                self->header_read();
                            });
}

void Connection::header_read() {
    start_ = Clock::now();
    is_arriving();
    const auto& message = parser_->get();
    request_ = {};
    request_.number = ++context_.requests;
    request_.address = address_;
    request_.version = message.version();
    request_.method = std::string(message.method_string());
    split_target(std::string_view(message.target().data(), message.target().size()), request_.path, request_.query);
    for (const auto& field : message) {
        request_.headers.emplace_back(lower_case({field.name_string().data(), field.name_string().size()}),
                                      std::string(field.value()));
    }
    chunked_ = request_.version >= 11;
    keep_alive_ = chunked_ && message.keep_alive() && !context_.closing;
    if (auto refusal = context_.check(request_)) return refuse(std::move(*refusal));
    if (const std::string* expect = request_.header("expect"); expect && lower_case(*expect) == "100-continue") {
        static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
        asio::async_write(socket_, asio::buffer(kContinue),
                          [self = shared_from_this()](const boost::system::error_code& error, size_t) {
                              if (error) return self->close();
                              self->read_body();
                          });
        return;
    }
    read_body();
}

void Connection::read_body() {
    const uint64_t bytes = parser_->content_length().value_or(context_.settings.body_bytes);
    set_deadline(context_.settings.header_time + std::chrono::seconds(bytes / kSlowestBytes),
                 &Connection::late_request);
    parser_->eager(true);
    read_more();
}

// What has arrived counts, not what was announced: a client that announces much takes nothing from others.
void Connection::read_more() {
    if (parser_->is_done()) return handle();
    http::async_read_some(
        socket_, buffer_, *parser_, [self = shared_from_this()](const boost::system::error_code& error, size_t) {
            if (error) return self->failed(error);
            const uint64_t size = self->parser_->get().body().size();
            if (self->body_.add(size - std::min(size, self->body_.bytes()))) return self->read_more();
            self->parser_.reset();
            ApiError refused(503,
                             fmt::format("requests of {} bytes are being read, of {} that the server holds at once",
                                         self->context_.bodies.used(), self->context_.bodies.limit()),
                             {}, "overloaded");
            refused.retry_after = 1;
            self->refuse(to_response(refused));
        });
}

// For a line in the log and an answer: one whose header cannot be read has a number and a sender alone.
void Connection::name_unread_request() {
    request_ = {};
    request_.number = ++context_.requests;
    request_.address = address_;
}

void Connection::failed(const boost::system::error_code& error) {
    // The request was refused meanwhile, and the refusal is to be sent.
    if (answer_) return;
    unsigned status = 400;
    std::string message = "the request is not valid HTTP: " + error.message();
    if (error == http::error::end_of_stream || error == http::error::partial_message ||
        error.category() == asio::error::get_system_category() ||
        error.category() == asio::error::get_misc_category()) {
        return close();
    }
    if (error == http::error::header_limit) {
        status = 431;
        message = fmt::format("the request's header has more than {} bytes", kHeaderBytes);
    } else if (error == http::error::body_limit) {
        status = 413;
        message = fmt::format("the request's body has more than {} bytes", context_.settings.body_bytes);
    }
    if (!parser_->is_header_done()) name_unread_request();
    refuse(to_response(ApiError(status, message)));
}

void Connection::late_request() {
    if (!parser_->is_header_done()) name_unread_request();
    refuse(to_response(ApiError(408, "the request did not arrive in time")));
}

// Answers without having read all of the request; the connection ends.
void Connection::refuse(HttpResponse response) {
    has_arrived();
    keep_alive_ = false;
    ++deadline_;
    boost::system::error_code unused;
    socket_.cancel(unused);
    body_.reset();
    answer_ =
        std::make_shared<Answer>(shared_from_this(), std::move(request_), HeldBytes(context_.bodies), false, chunked_);
    unread_ = true;
    answer_->respond(std::move(response));
}

void Connection::handle() {
    has_arrived();
    ++deadline_;
    request_.body = std::move(parser_->get().body());
    parser_.reset();
    answer_ =
        std::make_shared<Answer>(shared_from_this(), std::move(request_), std::move(body_), keep_alive_, chunked_);
    request_ = {};
    unread_ = false;
    watch();
    try {
        context_.handler(answer_);
    } catch (...) {
        answer_->respond(to_response(current_api_error()));
    }
}

// Until the answer has ended: the client's end of the connection. What it sends meanwhile, its next request perhaps, is
// kept for later, or its end would not be seen behind it.
void Connection::watch() {
    if (buffer_.size() >= kReadAheadBytes) return;
    socket_.async_wait(Tcp::socket::wait_read,
                       [self = shared_from_this(), answer = answer_](const boost::system::error_code& error) {
                           if (self->answer_ != answer || error == asio::error::operation_aborted) return;
                           if (error || !self->read_ahead()) return self->lose();
                           self->watch();
                       });
}

// Never waits. False: there was nothing to read, so that the client has ended the connection.
bool Connection::read_ahead() {
    boost::system::error_code error;
    const size_t room = kReadAheadBytes - buffer_.size();
    const size_t bytes = std::min(socket_.available(error), room);
    if (error || bytes == 0) return false;
    buffer_.commit(socket_.read_some(buffer_.prepare(bytes), error));
    return !error;
}

void Connection::flush(const std::shared_ptr<Answer>& answer) {
    if (answer_ != answer || writing_now_) return;
    const bool ended = answer->take(writing_);
    if (writing_.empty()) {
        if (ended) answered();
        return;
    }
    writing_now_ = true;
    set_deadline(context_.settings.write_time, &Connection::late_reader);
    asio::async_write(socket_, asio::buffer(writing_),
                      [self = shared_from_this(), answer](const boost::system::error_code& error, size_t bytes) {
                          self->written(answer, error, bytes);
                      });
}

void Connection::written(const std::shared_ptr<Answer>& answer, const boost::system::error_code& error, size_t bytes) {
    writing_now_ = false;
    writing_.clear();
    if (writing_.capacity() > kKeptBytes) writing_.shrink_to_fit();
    if (answer_ != answer) return;
    ++deadline_;
    answer->written(bytes);
    if (error) return lose();
    flush(answer);
}

// The whole answer has been written.
void Connection::answered() {
    log_access(*answer_);
    answer_.reset();
    if (!keep_alive_ || context_.closing) {
        if (!unread_) return close();
        boost::system::error_code unused;
        socket_.shutdown(Tcp::socket::shutdown_send, unused);
        set_deadline(std::chrono::seconds(2), &Connection::close);
        return discard();
    }
    boost::system::error_code unused;
    socket_.cancel(unused);
    read_request();
}

// What the client still sends is read, or the system would drop the answer when the connection is closed.
void Connection::discard() {
    socket_.async_read_some(buffer_.prepare(4096),
                            [self = shared_from_this()](const boost::system::error_code& error, size_t bytes) {
                                self->discarded_ += bytes;
                                if (error || self->discarded_ > kDiscardBytes) return self->close();
                                self->discard();
                            });
}

void Connection::late_reader() {
    log().warn("request {}: {} did not read its answer in time and was disconnected", answer_->request().number,
               address_);
    lose();
}

// The client has gone, or has to go.
void Connection::lose() {
    if (const auto answer = std::exchange(answer_, nullptr)) {
        answer->lost();
        log_access(*answer);
    }
    close();
}

void Connection::close() {
    has_arrived();
    ++deadline_;
    timer_.cancel();
    boost::system::error_code unused;
    socket_.shutdown(Tcp::socket::shutdown_both, unused);
    socket_.close(unused);
}

void Connection::log_access(const Answer& answer) {
    const std::optional<Usage> usage = answer.usage();
    context_.log.write({&answer.request(), answer.status(), answer.bytes,
                        std::chrono::duration<double>(Clock::now() - start_).count(), usage ? &*usage : nullptr});
}

}  // namespace

void serve_connection(Tcp::socket socket, ConnectionContext& context) {
    std::make_shared<Connection>(std::move(socket), context)->read_request();
}

bool close_longest_arriving(ConnectionContext& context) {
    if (context.arriving.empty()) return false;
    const auto close = context.arriving.front();
    close();
    return true;
}

}  // namespace tessera::server
