#include "apps/server/request_reader.hpp"

#include "apps/server/api_error.hpp"
#include "apps/server/http_text.hpp"
#include "core/base/text.hpp"

#include <boost/beast/http/error.hpp>
#include <boost/beast/http/message.hpp>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string_view>

namespace tessera::server {
namespace {

namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr size_t kSmallRead = 4 << 10;  // for headers: many connections send nothing else for long
constexpr size_t kLargeRead = 64 << 10;
constexpr size_t kFirstRoom = 256 << 10;  // of a body

std::string_view view_of(beast::string_view text) {
    return {text.data(), text.size()};
}

bool is_token_character(char c) {
    constexpr std::string_view others = "!#$%&'*+-.^_`|~";
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           others.find(c) != std::string_view::npos;
}

ApiError too_long(const char* what, uint64_t limit) {
    return ApiError(431, fmt::format("the request's {} more than {} bytes", what, limit));
}

}  // namespace

void RequestReader::Body::reader::init(const boost::optional<uint64_t>& length, boost::system::error_code& error) {
    length_ = length.value_or(0);
    error = {};
}

void RequestReader::Body::reader::append(const char* data, size_t bytes) {
    const size_t needed = body_.size() + bytes;
    if (needed > body_.capacity()) {
        // Four times as much, or what was announced: few copies, and no room for what never comes.
        const uint64_t wanted = std::max<uint64_t>(kFirstRoom, needed * uint64_t{4});
        body_.reserve(std::max<size_t>(needed, length_ ? std::min(wanted, length_) : needed * 2));
    }
    body_.append(data, bytes);
}

RequestReader::RequestReader() : buffer_(kHeaderBytes + kLargeRead) {
    begin();
}

RequestReader::~RequestReader() = default;

void RequestReader::begin() {
    parser_.reset();
    request_ = {};
    searched_ = 0;
    first_line_checked_ = has_header_ = has_body_ = keep_alive_ = false;
    announced_ = extension_bytes_ = 0;
    // Most connections are silent most of the time.
    if (buffer_.size() == 0) buffer_.shrink_to_fit();
}

void RequestReader::clear() {
    buffer_.consume(buffer_.size());
    begin();
}

boost::asio::mutable_buffer RequestReader::room() {
    const size_t wanted = has_body_ ? kLargeRead : kSmallRead;
    return buffer_.prepare(std::min(wanted, buffer_.max_size() - buffer_.size()));
}

void RequestReader::received(size_t bytes) {
    buffer_.commit(bytes);
}

bool RequestReader::read_header() {
    if (has_header_) return true;
    const auto text = [&] {
        const auto data = buffer_.cdata();
        return std::string_view(static_cast<const char*>(data.data()), data.size());
    };
    // Old clients send an empty line behind a body (RFC 9112, 2.2).
    while (searched_ == 0 && text().starts_with("\r\n")) buffer_.consume(2);
    if (!first_line_checked_) check_first_line();
    // The parser keeps each field on its own, which takes far more memory than its bytes: it gets whole headers alone.
    const size_t end = text().find("\r\n\r\n", searched_ > 3 ? searched_ - 3 : 0);
    if (end == std::string_view::npos ? buffer_.size() >= kHeaderBytes : end + 4 > kHeaderBytes)
        throw too_long("header has", kHeaderBytes);
    if (end == std::string_view::npos) {
        searched_ = text() == "\r" ? 0 : buffer_.size();
        return false;
    }
    if (std::ranges::count(text().substr(0, end), '\n') > static_cast<std::ptrdiff_t>(kHeaderLines))
        throw ApiError(431, fmt::format("the request's header has more than {} lines", kHeaderLines));
    // A field that goes on in the next line is read differently by others (RFC 9112, 5.2).
    if (const std::string_view header = text().substr(0, end);
        header.find("\r\n ") != std::string_view::npos || header.find("\r\n\t") != std::string_view::npos)
        throw ApiError(400, "a line of the request's header begins with a blank");
    parser_.emplace();
    parser_->header_limit(kHeaderBytes + kLargeRead);
    // Counted here: it holds for each route.
    parser_->body_limit(boost::none);
    on_chunk_ = [this](uint64_t bytes, beast::string_view extension, boost::system::error_code& error) {
        announced_ += std::min(bytes, UINT64_MAX - announced_);
        extension_bytes_ += extension.size();
        if (announced_ > body_limit_) {
            error = http::error::body_limit;
        } else if (extension_bytes_ > kExtensionBytes) {
            error = http::error::bad_chunk_extension;
        }
    };
    parser_->on_chunk_header(on_chunk_);
    parse();
    if (!parser_->is_header_done()) throw ApiError(400, "the request is not valid HTTP: its header does not end");
    auto& message = parser_->get();
    request_.version = message.version();
    request_.method = std::string(view_of(message.method_string()));
    const std::string_view host = split_target(view_of(message.target()), request_.path, request_.query);
    for (const auto& field : message)
        request_.headers.emplace_back(lower_case(view_of(field.name_string())), std::string(view_of(field.value())));
    // A target that names a host is what counts (RFC 9112, 3.2.2).
    for (auto& [name, value] : request_.headers) {
        if (name == "host" && !host.empty()) value = host;
    }
    check_framing();
    has_body_ = !parser_->is_done();
    keep_alive_ = parser_->keep_alive();
    announced_ = parser_->content_length().value_or(0);
    has_header_ = true;
    // They are in request_.
    message.base().clear();
    return true;
}

// What is no HTTP at all, as TLS, hears so at once.
void RequestReader::check_first_line() {
    const auto data = buffer_.cdata();
    const std::string_view text(static_cast<const char*>(data.data()), data.size());
    if (text.empty()) return;
    const size_t end = text.find("\r\n");
    const std::string_view line = text.substr(0, end);
    const size_t blank = std::min(line.find(' '), line.size());
    bool valid = std::ranges::all_of(line.substr(0, blank), is_token_character) || line == "\r";
    // Lines end in both; whoever sends one alone would wait for a response.
    valid = valid && line.find('\n') == std::string_view::npos;
    if (end != std::string_view::npos) {
        valid = valid && blank > 0 && (line.ends_with(" HTTP/1.1") || line.ends_with(" HTTP/1.0"));
        first_line_checked_ = true;
    }
    if (valid) return;
    if (text.starts_with("\x16\x03"))
        throw ApiError(400, "this is TLS, and the server speaks HTTP without it: use http://, or a proxy in front");
    throw ApiError(400, fmt::format("the request is not valid HTTP: it begins '{}', expected a method, a path and a "
                                    "version, 1.0 or 1.1",
                                    printable(line, 40)));
}

// RFC 9112, 6: whoever relayed the request may have found another end of it than this parser.
void RequestReader::check_framing() {
    const auto count = [&](std::string_view name) {
        return std::ranges::count(request_.headers, name, &Headers::value_type::first);
    };
    const auto lengths = count("content-length"), codings = count("transfer-encoding");
    if (lengths > 1 || (lengths == 1 && request_.header("content-length")->find(',') != std::string::npos))
        throw ApiError(400, "the header Content-Length has more than one value", "Content-Length");
    if (codings == 0) return;
    if (lengths > 0) {
        throw ApiError(400, "Content-Length and Transfer-Encoding are both there: one of them has the body's length",
                       "Transfer-Encoding");
    }
    if (request_.version < 11)
        throw ApiError(400, "HTTP/1.0 has no Transfer-Encoding: send Content-Length", "Transfer-Encoding");
    if (codings > 1) throw ApiError(400, "the header Transfer-Encoding is there more than once", "Transfer-Encoding");
    const std::string coding = lower_case(*request_.header("transfer-encoding"));
    if (coding == "chunked") return;
    throw ApiError(501,
                   fmt::format("Transfer-Encoding: '{}' is not understood; send 'chunked' alone, or Content-Length",
                               printable(coding, 40)),
                   "Transfer-Encoding", "not_supported");
}

void RequestReader::limit_body(uint64_t bytes) {
    body_limit_ = bytes;
    if (announced_ > bytes) throw ApiError(413, fmt::format("the request's body has more than {} bytes", bytes));
    // From here on each call takes all that it can.
    if (has_body_) parser_->eager(true);
}

bool RequestReader::read_body() {
    if (!parser_->is_done()) parse();
    if (!parser_->is_done()) {
        // Bytes of the body itself have been taken.
        if (buffer_.size() >= kFrameBytes) throw too_long("chunk has a line, or the body trailers, of", kFrameBytes);
        return false;
    }
    request_.body = std::move(parser_->get().body());
    return true;
}

uint64_t RequestReader::body_bytes() const noexcept {
    return parser_ ? parser_->get().body().size() : 0;
}

void RequestReader::parse() {
    boost::system::error_code error;
    while (!parser_->is_done() && buffer_.size() > 0) {
        const bool header = parser_->is_header_done();
        // Of chunks at least the last one follows, which has five bytes; Beast asserts that it gets them together.
        if (header && parser_->chunked() && buffer_.size() < 5) return;
        const size_t taken = parser_->put(buffer_.cdata(), error);
        buffer_.consume(taken);
        if (error == http::error::need_more) return;
        if (error == http::error::body_limit)
            throw ApiError(413, fmt::format("the request's body has more than {} bytes", body_limit_));
        if (error == http::error::bad_chunk_extension && extension_bytes_ > kExtensionBytes)
            throw too_long("chunks have extensions of", kExtensionBytes);
        if (error) throw ApiError(400, "the request is not valid HTTP: " + error.message());
        if (!header || taken == 0) return;
    }
}

}  // namespace tessera::server
