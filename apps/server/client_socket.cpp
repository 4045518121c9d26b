#include "apps/server/client_socket.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <climits>

namespace tessera::server {
namespace {

using State = ClientSocket::State;

constexpr unsigned char kHandshakeRecord = 22;  // RFC 8446, 5.1: with it a client begins
constexpr size_t kMostWritten = 64 << 10;       // until others have had their turn

bool would_block(int error) {
    return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

ClientSocket::ClientSocket(Tcp::socket socket, const TlsIdentity* tls) : socket_(std::move(socket)), tls_(tls) {
    boost::system::error_code error;
    socket_.set_option(Tcp::no_delay(true), error);
    socket_.non_blocking(true, error);
}

std::string ClientSocket::address() const {
    boost::system::error_code error;
    const auto remote = socket_.remote_endpoint(error);
    return error ? std::string() : remote.address().to_string();
}

State ClientSocket::shake_hands() {
    if (!ssl_) {
        unsigned char first = 0;
        const ssize_t seen = ::recv(socket_.native_handle(), &first, 1, MSG_PEEK | MSG_DONTWAIT);
        if (seen < 0 && would_block(errno)) return State::kWantsRead;
        if (seen <= 0) return State::kEnded;
        in_clear_ = first != kHandshakeRecord;
        if (in_clear_) return State::kDone;
        ssl_ = tls_->connection();
        if (SSL_set_fd(ssl_.get(), socket_.native_handle()) != 1) throw std::bad_alloc();
    }
    ERR_clear_error();
    const int result = SSL_accept(ssl_.get());
    return result == 1 ? State::kDone : moved(result).state;
}

// What OpenSSL says of its last operation, which gave `result`.
ClientSocket::Moved ClientSocket::moved(int result) {
    if (result > 0) return {State::kDone, static_cast<size_t>(result)};
    switch (SSL_get_error(ssl_.get(), result)) {
        case SSL_ERROR_WANT_READ:
            return {State::kWantsRead};
        case SSL_ERROR_WANT_WRITE:
            return {State::kWantsWrite};
        case SSL_ERROR_ZERO_RETURN:
            return {State::kEnded};
        default:
            broken_ = true;
            return {State::kEnded};
    }
}

ClientSocket::Moved ClientSocket::receive(boost::asio::mutable_buffer room) {
    const ssize_t bytes = ::recv(socket_.native_handle(), room.data(), room.size(), MSG_DONTWAIT);
    if (bytes > 0) return {State::kDone, static_cast<size_t>(bytes)};
    return {bytes < 0 && would_block(errno) ? State::kWantsRead : State::kEnded};
}

ClientSocket::Moved ClientSocket::read(boost::asio::mutable_buffer room) {
    if (!ssl_) return receive(room);
    ERR_clear_error();
    return moved(SSL_read(ssl_.get(), room.data(), static_cast<int>(std::min<size_t>(room.size(), INT_MAX))));
}

ClientSocket::Moved ClientSocket::write(boost::asio::const_buffer bytes) {
    const size_t size = std::min(bytes.size(), kMostWritten);
    if (ssl_) {
        ERR_clear_error();
        return moved(SSL_write(ssl_.get(), bytes.data(), static_cast<int>(size)));
    }
    const ssize_t sent = ::send(socket_.native_handle(), bytes.data(), size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) return {State::kDone, static_cast<size_t>(sent)};
    return {sent < 0 && would_block(errno) ? State::kWantsWrite : State::kEnded};
}

ClientSocket::Moved ClientSocket::discard(boost::asio::mutable_buffer room) {
    // What has been decrypted goes first: wait() says of it at once that it is there.
    return holds_read() ? read(room) : receive(room);
}

// Decrypted, so that the socket does not tell of it.
bool ClientSocket::holds_read() const {
    return ssl_ && SSL_pending(ssl_.get()) > 0;
}

void ClientSocket::cancel() {
    boost::system::error_code unused;
    socket_.cancel(unused);
}

bool ClientSocket::peer_ended() const {
    pollfd state{const_cast<Tcp::socket&>(socket_).native_handle(), POLLRDHUP, 0};
    return poll(&state, 1, 0) > 0 && (state.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

// close_notify (RFC 8446, 6.1), without which a client cannot tell an end from a cut.
void ClientSocket::say_end() {
    if (!ssl_ || broken_ || !SSL_is_init_finished(ssl_.get())) return;
    ERR_clear_error();
    SSL_shutdown(ssl_.get());
}

void ClientSocket::end_writing() {
    say_end();
    boost::system::error_code unused;
    socket_.shutdown(Tcp::socket::shutdown_send, unused);
}

void ClientSocket::close() {
    if (!socket_.is_open()) return;
    say_end();
    ssl_.reset();
    broken_ = true;
    boost::system::error_code unused;
    socket_.shutdown(Tcp::socket::shutdown_both, unused);
    socket_.close(unused);
}

void ClientSocket::cut() noexcept {
    if (!socket_.is_open()) return;
    ssl_.reset();
    broken_ = true;
    boost::system::error_code unused;
    socket_.set_option(Tcp::socket::linger(true, 0), unused);
    socket_.close(unused);
}

}  // namespace tessera::server
