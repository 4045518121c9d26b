// From the bytes of a connection to its requests: HTTP/1.1 (RFC 9112), in bounded memory.
#pragma once

#include "apps/server/exchange.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/buffer_traits.hpp>
#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace tessera::server {

// Reads one request after another. Whatever is sent, it holds the bytes of one header (kHeaderBytes), of one line or
// trailer between chunks (kFrameBytes) and of one body (limit_body()) at most, beside what a read brings. A message
// whose length two recipients could understand differently is refused: what follows it could not be trusted. One thread
// at a time.
class RequestReader {
  public:
    static constexpr size_t kHeaderBytes = 64 << 10;
    static constexpr size_t kHeaderLines = 256;
    static constexpr size_t kFrameBytes = 16 << 10;      // a chunk's line with its extension; all trailers
    static constexpr size_t kExtensionBytes = 16 << 10;  // of all chunks of a request

    RequestReader();
    ~RequestReader();

    // Forgets the request; bytes that were received behind it are the beginning of the next.
    void begin();

    // Forgets the request and all that was received.
    void clear();

    // Where the next bytes go: never empty.
    boost::asio::mutable_buffer room();
    // So many were put there.
    void received(size_t bytes);
    // Received and not parsed yet.
    size_t unparsed() const noexcept { return buffer_.size(); }

    // Parses what was received. True: the header is complete, and request() has all but the body. Throws ApiError: what
    // was sent is no request that is understood; nothing more can be read from the connection then.
    bool read_header();
    bool has_header() const noexcept { return has_header_; }
    bool has_body() const noexcept { return has_body_; }
    bool keep_alive() const noexcept { return keep_alive_; }
    // Bytes that a body may have; after the header. Throws ApiError(413) if it is announced to have more.
    void limit_body(uint64_t bytes);
    // Parses what was received. True: the request is complete. Throws as read_header() does.
    bool read_body();
    // Bytes of the body that were received.
    uint64_t body_bytes() const noexcept;

    HttpRequest& request() noexcept { return request_; }

  private:
    // A body in a string that grows with what arrives, not with what is announced.
    struct Body {
        using value_type = std::string;
        class reader {
          public:
            template <bool is_request, class Fields>
            reader(boost::beast::http::header<is_request, Fields>&, std::string& body) : body_(body) {}
            void init(const boost::optional<uint64_t>& length, boost::system::error_code& error);
            template <class Buffers>
            size_t put(const Buffers& buffers, boost::system::error_code& error) {
                error = {};
                for (const boost::asio::const_buffer part : boost::beast::buffers_range_ref(buffers))
                    append(static_cast<const char*>(part.data()), part.size());
                return boost::beast::buffer_bytes(buffers);
            }
            void finish(boost::system::error_code& error) { error = {}; }

          private:
            void append(const char* data, size_t bytes);
            std::string& body_;
            uint64_t length_ = 0;
        };
    };
    using Parser = boost::beast::http::request_parser<Body>;

    void check_first_line();
    void check_framing();
    void parse();

    boost::beast::flat_buffer buffer_;
    size_t searched_ = 0;  // bytes in which the end of the header is not
    bool first_line_checked_ = false;
    std::optional<Parser> parser_;
    HttpRequest request_;
    bool has_header_ = false, has_body_ = false, keep_alive_ = false;
    uint64_t body_limit_ = 0, announced_ = 0, extension_bytes_ = 0;
    std::function<void(uint64_t, boost::beast::string_view, boost::system::error_code&)> on_chunk_;
};

}  // namespace tessera::server
