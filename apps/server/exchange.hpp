// One request and its response, without HTTP.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::server {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
    uint64_t number = 0;    // no other of this process has it; the response's X-Request-Id
    unsigned version = 11;  // 10 of HTTP/1.0
    std::string method;     // "GET"
    std::string path;       // without query, as sent
    std::string query;      // behind '?'
    Headers headers;        // names in small letters
    std::string body;
    std::string address;  // of the client

    // nullptr: there is none. The first, if there are several.
    const std::string* header(std::string_view name) const noexcept;
};

// Adds a value to the header `name`: all of one name are in one line, "a, b". A value that is there already is left
// out; after 32 values "..." says that there are more. Bytes outside of printable ASCII, and commas, become '?'.
void add_header_value(Headers& headers, std::string_view name, std::string_view value);

struct HttpResponse {
    unsigned status = 200;
    std::string type = "application/json";
    std::string body;
    Headers headers;
};

inline HttpResponse json_response(std::string body) {
    return {200, "application/json", std::move(body), {}};
}

// What is written to the access log beside what HTTP knows.
struct Usage {
    uint32_t prompt_tokens = 0, reused_tokens = 0, new_tokens = 0;
    double first_token_seconds = 0;
    std::string finish;  // why generation ended; of an error its code
    // The token of the prompt that ended what was reused; nothing: the cached text itself ended.
    std::optional<uint32_t> differs_at = std::nullopt;
    uint32_t drafted_tokens = 0, accepted_tokens = 0;  // as of session::Answer
};

// Methods may be called from any thread. Either respond() or begin_stream(), send()..., end(). What is called after the
// end, or after the client has gone, has no effect.
class Exchange {
  public:
    virtual ~Exchange() = default;

    virtual const HttpRequest& request() const noexcept = 0;

    // Called by who is about to read the body. False: the request was refused meanwhile and its body is gone; there is
    // nothing to be done.
    virtual bool begin_work() = 0;

    // The request's body has been read and is empty from now on: it counts among the memory that all requests share.
    virtual void drop_body() = 0;

    // Adds a value to a header of the response, as add_header_value() does. Has no effect after the response has begun.
    virtual void add_header(std::string_view name, std::string_view value) = 0;

    // The whole response. Where there is no memory for it, or for a part, the connection is closed; neither throws
    // then.
    virtual void respond(HttpResponse response) = 0;

    // A response in parts, with status 200. Each is written at once; a client that does not read for long is
    // disconnected.
    virtual void begin_stream(std::string_view type) = 0;
    virtual void send(std::string part) = 0;
    virtual void end() = 0;

    // `gone` is called once, on the thread of I/O, if the client disconnects before the end; at once if it already has.
    virtual void when_gone(std::function<void()> gone) = 0;

    virtual void note(Usage usage) = 0;
};

using Handler = std::function<void(const std::shared_ptr<Exchange>&)>;

}  // namespace tessera::server
