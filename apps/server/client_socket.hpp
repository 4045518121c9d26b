// The socket of a client's connection, in the clear or by TLS.
#pragma once

#include "apps/server/tls_identity.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>

#include <cstddef>
#include <string>
#include <utility>

namespace tessera::server {

// Reads and writes what can be at once and says what has to be waited for: whether TLS is between makes no difference
// to whoever calls, and a silent connection holds no buffers. On the thread of I/O, which SIGPIPE must not reach.
class ClientSocket {
  public:
    using Tcp = boost::asio::ip::tcp;
    enum class State { kDone, kWantsRead, kWantsWrite, kEnded };
    struct Moved {
        State state = State::kEnded;  // kDone: so many bytes; kEnded: there will be no more
        size_t bytes = 0;
    };

    // `tls` outlives it; nullptr: all is in the clear.
    ClientSocket(Tcp::socket socket, const TlsIdentity* tls);

    // shake_hands() has to come first.
    bool begins_with_handshake() const noexcept { return tls_ != nullptr; }
    // Does what can be done of the handshake. kDone: it has ended, or in_clear(). Throws std::bad_alloc.
    State shake_hands();
    // The client has begun with something that is no TLS; from then on all is in the clear.
    bool in_clear() const noexcept { return in_clear_; }

    Moved read(boost::asio::mutable_buffer room);
    // Behind kWantsWrite the next call has to begin with the same bytes.
    Moved write(boost::asio::const_buffer bytes);
    // What the client has sent, without a look at it.
    Moved discard(boost::asio::mutable_buffer room);

    // Calls handler(error) when there is perhaps something to read, or room to write (kWantsWrite), on the executor.
    template <typename Handler>
    void wait(State wanted, Handler handler) {
        if (wanted == State::kWantsRead && holds_read()) {
            boost::asio::post(socket_.get_executor(), [handler = std::move(handler)]() mutable { handler({}); });
            return;
        }
        socket_.async_wait(wanted == State::kWantsWrite ? Tcp::socket::wait_write : Tcp::socket::wait_read,
                           std::move(handler));
    }
    // Those who wait are told so; who was told already may still be called.
    void cancel();

    // The client has ended its direction of the connection, perhaps behind bytes that were not read.
    bool peer_ended() const;
    std::string address() const;  // of the client; empty if it has gone
    boost::asio::any_io_executor executor() { return socket_.get_executor(); }

    // Nothing more is written.
    void end_writing();
    // Tells the client, if there is room for that, and never waits.
    void close();
    // Within a response: a reset in place of the end that a client could take for that of the response. What the system
    // has not sent yet is dropped.
    void cut() noexcept;

  private:
    bool holds_read() const;
    Moved moved(int result);
    Moved receive(boost::asio::mutable_buffer room);
    void say_end();

    Tcp::socket socket_;
    const TlsIdentity* const tls_;
    SslConnection ssl_;  // since the client's first byte
    bool in_clear_ = false;
    bool broken_ = false;  // TLS has failed, and says nothing more
};

}  // namespace tessera::server
