#include "tests/fuzz/http_target.hpp"

#include "apps/server/api_error.hpp"
#include "apps/server/request_reader.hpp"
#include "tests/fuzz/promises.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace tessera::fuzz {
namespace {

using namespace server;

constexpr uint64_t kBody = 300;

// What a connection that sends `input`, `most` bytes at once, is understood as: its requests, then how it ends.
std::vector<std::string> read(std::string_view input, size_t most) {
    RequestReader reader;
    std::vector<std::string> found;
    bool limited = false;
    const auto parse = [&] {
        for (;;) {
            if (!reader.read_header()) return;
            if (!limited) reader.limit_body(kBody);
            limited = true;
            if (!reader.read_body()) {
                expect(reader.body_bytes() <= kBody, "a body within its limit");
                return;
            }
            const HttpRequest& request = reader.request();
            expect(request.body.size() <= kBody, "a body within its limit");
            expect(request.headers.size() <= RequestReader::kHeaderLines, "so many headers");
            const auto count = [&](std::string_view name) {
                return std::ranges::count(request.headers, name, &Headers::value_type::first);
            };
            const std::string* const length = request.header("content-length");
            const std::string* const coding = request.header("transfer-encoding");
            expect(count("content-length") + count("transfer-encoding") <= 1, "one length");
            if (length) expect(std::stoull(*length) == request.body.size(), "as long as it says");
            if (coding) {
                std::string lower = *coding;
                std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
                expect(lower == "chunked" && request.version == 11, "chunks alone");
            }
            if (!length && !coding) expect(request.body.empty(), "no body without a length");
            std::string text = request.method + ' ' + request.path + '?' + request.query + '\n';
            for (const auto& [name, value] : request.headers) text += name + ": " + value + '\n';
            found.push_back(text + '\n' + request.body);
            reader.begin();
            limited = false;
        }
    };
    try {
        parse();
        while (!input.empty()) {
            const auto room = reader.room();
            expect(room.size() > 0, "room for more");
            expect(reader.unparsed() <= RequestReader::kHeaderBytes, "bounded memory");
            const size_t bytes = std::min({room.size(), most, input.size()});
            std::memcpy(room.data(), input.data(), bytes);
            reader.received(bytes);
            input.remove_prefix(bytes);
            parse();
        }
        found.emplace_back("more");
    } catch (const ApiError& error) {
        const unsigned status = error.status();
        expect(status == 400 || status == 413 || status == 431 || status == 501, "the client's fault");
        found.emplace_back("refused");
    }
    return found;
}

}  // namespace

void run_http(std::string_view input) {
    if (input.empty()) return;
    const size_t most = 1 + static_cast<uint8_t>(input[0]) % 64;
    input.remove_prefix(1);
    const auto whole = read(input, input.size() + 1), cut = read(input, most);
    // When it is refused may depend on how much was there; what was understood before does not.
    expect(whole.size() == cut.size() && std::equal(whole.begin(), whole.end() - 1, cut.begin()),
           "the same however it is cut");
    expect(cut.back() == "more" || whole.back() == "refused", "refused when read at once, too");
}

}  // namespace tessera::fuzz
