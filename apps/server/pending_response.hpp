// A response between the threads that make it and the one that writes it.
#pragma once

#include "apps/server/byte_budget.hpp"
#include "apps/server/dialect.hpp"
#include "apps/server/exchange.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace tessera::server {

class PendingResponse;

// Where a response goes: a connection. Its methods are called on the thread of I/O, with responses that are perhaps no
// longer its own.
class ResponseSink {
  public:
    virtual ~ResponseSink() = default;
    // There is something to take().
    virtual void flush(const std::shared_ptr<PendingResponse>& response) = 0;
    // The client has left more unread than one may.
    virtual void overflowed(const std::shared_ptr<PendingResponse>& response) = 0;
    // There was no memory for what it was to be sent.
    virtual void given_up(const std::shared_ptr<PendingResponse>& response) = 0;
};

class PendingResponse final : public Exchange, public std::enable_shared_from_this<PendingResponse> {
  public:
    static constexpr size_t kUnreadBytes = 16 << 20;  // of a stream that the client does not read

    // `headers`: of the response, beside its own. `dialect`: of the error that takes its place where it is too long;
    // constant. `unread` outlives the response; so does what `executor` runs on,
    // which is the thread of I/O.
    PendingResponse(std::shared_ptr<ResponseSink> sink, boost::asio::any_io_executor executor, HttpRequest request,
                    Headers headers, HeldBytes body, ByteBudget& unread, bool keep_alive, bool chunked,
                    const Dialect& dialect);
    ~PendingResponse() override;

    const HttpRequest& request() const noexcept override { return request_; }
    bool begin_work() override;
    void drop_body() override;
    void add_header(std::string_view name, std::string_view value) override;
    void respond(HttpResponse response) override;
    void begin_stream(std::string_view type) override;
    void send(std::string part) override;
    void end() override;
    void when_gone(std::function<void()> gone) override;
    void note(Usage usage) override;

    // The rest is of the thread of I/O.

    // Moves what waits to be written behind `out`. True: that is the end of the response.
    bool take(std::string& out);
    // All that take() gave has been written.
    void written(size_t bytes);
    // Nothing can be written any more.
    void lost();
    // Drops a body that no thread has begun to work on, and the work with it. False: one has.
    bool give_up_body();

    unsigned status() const;
    std::optional<Usage> usage() const;
    uint64_t body_bytes() const;
    uint64_t unread_bytes() const;
    uint64_t written_bytes() const noexcept { return written_; }

  private:
    enum class Work { kWaits, kBegun, kDropped };
    void schedule();
    void give_up() noexcept;

    std::shared_ptr<ResponseSink> sink_;
    const boost::asio::any_io_executor executor_;
    HttpRequest request_;
    const bool keep_alive_, chunked_;
    const Dialect& dialect_;
    uint64_t written_ = 0;      // of the thread of I/O
    mutable std::mutex mutex_;  // of all below
    Headers headers_;
    HeldBytes body_, unread_;
    Work work_ = Work::kWaits;
    std::string pending_;
    bool started_ = false, ended_ = false, gone_ = false, scheduled_ = false;
    std::atomic<bool> overflow_{false}, given_up_{false};
    std::function<void()> on_gone_;
    unsigned status_;
    std::optional<Usage> usage_;
    const uint64_t most_unread_;
};

}  // namespace tessera::server
