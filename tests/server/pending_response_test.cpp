#include "apps/server/pending_response.hpp"

#include "apps/server/dialects/anthropic/dialect.hpp"
#include "apps/server/dialects/ollama/dialect.hpp"

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TSR_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TSR_SANITIZED
#endif

namespace tessera::server {
namespace {

class Sink final : public ResponseSink {
  public:
    void flush(const std::shared_ptr<PendingResponse>&) override { ++flushed; }
    void overflowed(const std::shared_ptr<PendingResponse>&) override { ++overflows; }
    void given_up(const std::shared_ptr<PendingResponse>&) override { ++gone; }
    int flushed = 0, overflows = 0, gone = 0;
};

// No more of the address space than there is, and so much.
class LittleMemory {
  public:
    explicit LittleMemory(rlim_t more) {
        getrlimit(RLIMIT_AS, &before_);
        rlim_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        const rlimit now{pages * static_cast<rlim_t>(getpagesize()) + more, before_.rlim_max};
        setrlimit(RLIMIT_AS, &now);
    }
    ~LittleMemory() { setrlimit(RLIMIT_AS, &before_); }

  private:
    rlimit before_{};
};

struct Made {
    explicit Made(Headers headers = {}, const Dialect& dialect = kOpenAi, uint64_t most = uint64_t{1} << 40)
        : budget{most},
          answer(std::make_shared<PendingResponse>(sink, io.get_executor(), HttpRequest{}, std::move(headers),
                                                   HeldBytes(budget), budget, true, true, dialect)) {}
    boost::asio::io_context io;
    ByteBudget budget;
    std::shared_ptr<Sink> sink = std::make_shared<Sink>();
    std::shared_ptr<PendingResponse> answer;
};

TEST(PendingResponse, HasItsHeadersWhateverItSays) {
    for (const unsigned status : {200u, 400u, 503u}) {
        Made made(Headers{{"X-Of-All", "yes"}});
        made.answer->respond({status, "application/json", "{}", {}});
        std::string text;
        EXPECT_TRUE(made.answer->take(text));
        EXPECT_NE(text.find("X-Of-All: yes\r\n"), std::string::npos);
        EXPECT_NE(text.find("X-Request-Id: "), std::string::npos);
        made.io.run();
    }
}

TEST(PendingResponse, SaysInTheFormOfItsApiThatItIsTooLong) {
    for (const Dialect* dialect : {&kOpenAi, &ollama::kOllama, &anthropic::kAnthropic}) {
        Made made({}, *dialect, 1000);
        made.answer->respond({200, "application/json", std::string(1001, 'a'), {}});
        std::string text;
        EXPECT_TRUE(made.answer->take(text));
        EXPECT_TRUE(text.starts_with("HTTP/1.1 503 ")) << text;
        const ApiError error(503, "the answer has more bytes than the server holds (--held-limit)", {}, "overloaded");
        EXPECT_TRUE(text.ends_with("\r\n\r\n" + dialect->error_json(error))) << text;
        made.io.run();
    }
}

TEST(PendingResponse, WithoutMemoryItsConnectionEndsAndNothingElse) {
#ifdef TSR_SANITIZED
    GTEST_SKIP() << "sanitizers need the address space";
#endif
    for (const bool stream : {false, true}) {
        Made made;
        std::string text(size_t{256} << 20, 'a');
        {
            const LittleMemory little(16 << 20);
            if (stream) {
                made.answer->begin_stream("text/event-stream");
                made.answer->send(std::move(text));
            } else {
                made.answer->respond({200, "application/json", std::move(text), {}});
            }
        }
        made.io.run();
        EXPECT_GE(made.sink->gone, 1);
        EXPECT_EQ(made.sink->flushed, 0);
    }
}

}  // namespace
}  // namespace tessera::server
