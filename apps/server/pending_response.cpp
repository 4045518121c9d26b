#include "apps/server/pending_response.hpp"

#include "apps/server/api_error.hpp"
#include "apps/server/http_text.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <utility>

namespace tessera::server {
namespace {

constexpr unsigned kClientGone = 499;

}  // namespace

PendingResponse::PendingResponse(std::shared_ptr<ResponseSink> sink, boost::asio::any_io_executor executor,
                                 HttpRequest request, Headers headers, HeldBytes body, ByteBudget& unread,
                                 bool keep_alive, bool chunked, const Dialect& dialect)
    : sink_(std::move(sink)),
      executor_(std::move(executor)),
      request_(std::move(request)),
      keep_alive_(keep_alive),
      chunked_(chunked),
      dialect_(dialect),
      headers_(std::move(headers)),
      body_(std::move(body)),
      unread_(unread),
      status_(kClientGone),
      most_unread_(unread.limit()) {
    headers_.emplace_back("X-Request-Id", std::to_string(request_.number));
}

// The last reference may be the engine's; a connection ends on the thread of I/O.
PendingResponse::~PendingResponse() {
    boost::asio::post(executor_, [sink = std::move(sink_)] {});
}

bool PendingResponse::begin_work() {
    const std::scoped_lock lock(mutex_);
    if (work_ == Work::kWaits) work_ = Work::kBegun;
    return work_ == Work::kBegun;
}

void PendingResponse::drop_body() {
    std::string().swap(request_.body);
    const std::scoped_lock lock(mutex_);
    body_.reset();
}

bool PendingResponse::give_up_body() {
    const std::scoped_lock lock(mutex_);
    if (work_ != Work::kWaits) return work_ == Work::kDropped;
    work_ = Work::kDropped;
    std::string().swap(request_.body);
    body_.reset();
    return true;
}

void PendingResponse::add_header(std::string_view name, std::string_view value) {
    const std::scoped_lock lock(mutex_);
    if (started_ || ended_) return;
    add_header_value(headers_, name, value);
}

// Its callers are threads that serve everybody: want of memory for one response ends that one alone.
void PendingResponse::respond(HttpResponse response) try {
    const std::scoped_lock lock(mutex_);
    if (ended_ || started_) return;
    if (response.body.size() > most_unread_) {
        response = to_response(
            ApiError(503, "the answer has more bytes than the server holds (--held-limit)", {}, "overloaded"),
            dialect_);
    }
    unread_.add_always(response.body.size());
    response.headers.insert(response.headers.end(), headers_.begin(), headers_.end());
    pending_ += response_head(response, keep_alive_);
    if (request_.method != "HEAD") pending_ += response.body;
    status_ = response.status;
    started_ = ended_ = true;
    schedule();
} catch (const std::exception&) {
    give_up();
}

void PendingResponse::begin_stream(std::string_view type) {
    const std::scoped_lock lock(mutex_);
    if (ended_ || started_) return;
    started_ = true;
    status_ = 200;
    pending_ += stream_head(type, headers_, keep_alive_, chunked_);
    schedule();
}

void PendingResponse::send(std::string part) try {
    const std::scoped_lock lock(mutex_);
    if (ended_ || !started_ || part.empty()) return;
    unread_.add_always(part.size());
    if (unread_.bytes() > kUnreadBytes) overflow_ = true;
    if (chunked_) {
        append_chunk(pending_, part);
    } else {
        pending_ += part;
    }
    schedule();
} catch (const std::exception&) {
    give_up();
}

void PendingResponse::end() {
    const std::scoped_lock lock(mutex_);
    if (ended_ || !started_) return;
    if (chunked_) pending_ += kLastChunk;
    ended_ = true;
    schedule();
}

void PendingResponse::when_gone(std::function<void()> gone) {
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

void PendingResponse::note(Usage usage) {
    const std::scoped_lock lock(mutex_);
    usage_ = std::move(usage);
}

bool PendingResponse::take(std::string& out) {
    const std::scoped_lock lock(mutex_);
    scheduled_ = false;
    if (out.empty()) {
        out.swap(pending_);
    } else {
        out += pending_;
    }
    pending_.clear();
    return ended_;
}

void PendingResponse::written(size_t bytes) {
    const std::scoped_lock lock(mutex_);
    written_ += bytes;
    unread_.remove(unread_.bytes() - std::min<uint64_t>(unread_.bytes(), pending_.size()));
}

void PendingResponse::lost() {
    std::function<void()> gone;
    give_up_body();
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

unsigned PendingResponse::status() const {
    const std::scoped_lock lock(mutex_);
    return status_;
}

std::optional<Usage> PendingResponse::usage() const {
    const std::scoped_lock lock(mutex_);
    return usage_;
}

uint64_t PendingResponse::body_bytes() const {
    const std::scoped_lock lock(mutex_);
    return body_.bytes();
}

uint64_t PendingResponse::unread_bytes() const {
    const std::scoped_lock lock(mutex_);
    return unread_.bytes();
}

// With mutex_ held.
void PendingResponse::schedule() {
    if (std::exchange(scheduled_, true)) return;
    boost::asio::post(executor_, [self = shared_from_this()] {
        if (self->given_up_) return self->sink_->given_up(self);
        if (self->overflow_) return self->sink_->overflowed(self);
        self->sink_->flush(self);
    });
}

// Part of a response would look like all of it, so the connection ends.
void PendingResponse::give_up() noexcept {
    given_up_ = true;
    try {
        // Whether or not one is on its way already: that one may not have come to it.
        boost::asio::post(executor_, [self = shared_from_this()] { self->sink_->given_up(self); });
    } catch (const std::exception&) {
        // What was written last finds the flag.
    }
}

}  // namespace tessera::server
