// How requests end otherwise than with an answer: refused, cancelled, out of time, by failures and at the end.
#include "core/base/error.hpp"
#include "tests/session/service_fixture.hpp"

#include <gtest/gtest.h>

#include <future>

namespace tessera::session {
namespace {

TEST_F(ServiceTest, AStepThatFailsEndsItsOwnRequestsAlone) {
    load(64 + 3, 2, 1024);
    Result failing, later;
    bool fails = true;
    GeneratorOptions options;
    options.contain_errors = true;
    options.on_step = [&](std::span<const RequestId> requests) {
        if (!requests.empty() && std::exchange(fails, false)) fail(TSR_INTERNAL, "a kernel failed");
    };
    Generator generator(engine(), *tokenizer_, options);
    generator.add(request(question(0), failing));
    generator.step();
    generator.add(request(question(1), later));
    generator.run();
    EXPECT_EQ(failing.answer.reason, FinishReason::kFailed);
    EXPECT_EQ(failing.answer.error, "a kernel failed");
    EXPECT_NE(later.answer.reason, FinishReason::kFailed);
    EXPECT_FALSE(later.text.empty());
    EXPECT_EQ(generator.counters().failed_steps, 1u);
    EXPECT_EQ(engine().cache().free_pages() + generator.prefixes().size(), engine().cache().page_count());
}

TEST_F(ServiceTest, CancellingEndsARunningStepAndReleasesItsPages) {
    load(512, 2, 4096);
    Result result, other;
    serve({}, [&](Service& service) {
        std::promise<void> started, ended;
        std::string prompt = "<｜User｜>";
        for (int i = 0; i < 400; ++i) prompt += "box " + std::to_string(i) + " ";
        Request made = request(prompt, result, 4000);
        bool first = true;
        made.on_prompt = [&](const PromptProgress&) {
            if (std::exchange(first, false)) started.set_value();
        };
        made.on_finish = [&](const Answer& answer) { result.answer = answer, ended.set_value(); };
        const RequestId id = service.submit(std::move(made));
        started.get_future().wait();
        service.cancel(id);
        service.cancel(id + 1000);
        EXPECT_EQ(ended.get_future().wait_for(std::chrono::seconds(20)), std::future_status::ready);
        service.submit(request(question(1), other));
    });
    EXPECT_EQ(result.answer.reason, FinishReason::kCancelled);
    EXPECT_FALSE(other.text.empty());
}

TEST_F(ServiceTest, WhatIsTooMuchIsRefusedAtOnce) {
    load(64, 1, 256);
    ServiceOptions options;
    options.waiting_requests = 2;
    Service service(engine(), *tokenizer_, options);
    Result result;
    service.submit(request(question(0), result, 2));
    service.submit(request(question(1), result, 2));
    EXPECT_THROW(service.submit(request(question(2), result, 2)), QueueFull);
    Request large = request(question(0), result);
    large.prompt.assign(300, 5);
    try {
        service.submit(std::move(large));
        ADD_FAILURE() << "a prompt larger than the context was accepted";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_DOES_NOT_FIT);
    }
    Request wrong = request(question(0), result);
    wrong.sampling.top_p = 7;
    EXPECT_THROW(service.submit(std::move(wrong)), Error);
    service.close();
    EXPECT_THROW(service.submit(request(question(0), result)), Error);
    service.run();
    EXPECT_EQ(service.status().counters.finished, 2u);
}

TEST_F(ServiceTest, OfSeveralRequestsAllAreTakenOrNone) {
    load(64, 1, 256);
    ServiceOptions options;
    options.waiting_requests = 3;
    Service service(engine(), *tokenizer_, options);
    std::vector<Result> results(5);
    const auto requests = [&](size_t count) {
        std::vector<Request> made;
        for (size_t i = 0; i < count; ++i) made.push_back(request(question(0), results[i], 1));
        return made;
    };
    std::vector<Request> wrong = requests(2);
    wrong.back().prompt.clear();
    EXPECT_THROW(service.submit(std::move(wrong)), Error);
    EXPECT_EQ(service.status().waiting.requests, 0u);
    const RequestId first = service.submit(requests(1));
    EXPECT_THROW(service.submit(requests(3)), QueueFull);
    EXPECT_EQ(service.status().waiting.requests, 1u);
    EXPECT_EQ(service.submit(requests(2)), first + 1);
    EXPECT_THROW(service.submit(requests(1)), QueueFull);
    service.close();
    service.run();
    EXPECT_EQ(service.status().counters.finished, 3u);
}

TEST_F(ServiceTest, WhereNothingWaitsThereIsRoomForAnyNumber) {
    load(64, 1, 256);
    ServiceOptions options;
    options.waiting_requests = 2;
    Service service(engine(), *tokenizer_, options);
    Result result;
    std::vector<Request> requests;
    for (int i = 0; i < 5; ++i) requests.push_back(request(question(0), result, 1));
    service.submit(std::move(requests));
    service.close();
    service.run();
    EXPECT_EQ(service.status().counters.finished, 5u);
}

TEST_F(ServiceTest, RequestsOnTheirWayFromTheInboxCountAsWaiting) {
    load(64, 1, 256);
    ServiceOptions options;
    options.waiting_requests = 3;
    Service service(engine(), *tokenizer_, options);
    Result result;
    size_t waiting = 0;
    Request cancelled = request(question(0), result, 1);
    // The engine's thread calls this when it has taken all three and told nobody yet.
    cancelled.on_finish = [&](const Answer&) {
        waiting = service.status().waiting.requests;
        EXPECT_THROW(service.submit(request(question(0), result, 1)), QueueFull);
        service.close();
    };
    service.cancel(service.submit(std::move(cancelled)));
    service.submit(request(question(0), result, 1));
    service.submit(request(question(0), result, 1));
    service.run();
    EXPECT_EQ(waiting, 3u);
}

TEST_F(ServiceTest, StoppingEndsAllRequests) {
    load(64 + 3, 4, 4096);
    std::vector<Result> found(10);
    serve({}, [&](Service& service) {
        for (size_t i = 0; i < found.size(); ++i)
            service.submit(request(question(static_cast<int>(i)), found[i], 100000));
        service.stop();
    });
    EXPECT_EQ(ended_, 10u);
    for (const Result& result : found) EXPECT_NE(result.answer.reason, FinishReason::kFailed);
}

TEST_F(ServiceTest, AllRequestsFailWithTheirError) {
    load(64, 1, 1024);
    std::vector<Result> results(3);
    Generator generator(engine(), *tokenizer_);
    for (Result& result : results) generator.add(request(question(2), result, 30));
    for (int i = 0; i < 4; ++i) generator.step();
    generator.fail_all(Error(TSR_DOES_NOT_FIT, "no memory"));
    for (const Result& result : results) {
        EXPECT_EQ(result.answer.reason, FinishReason::kFailed);
        EXPECT_EQ(result.answer.error, "no memory");
        EXPECT_EQ(result.answer.error_code, TSR_DOES_NOT_FIT);
    }
    EXPECT_FALSE(generator.step());
}

TEST_F(ServiceTest, TimeEndsAnAnswerBehindALine) {
    load(64, 1, 1024);
    for (const char* allowed : {"un", "\n"}) {
        Result result;
        Generator generator(engine(), *tokenizer_);
        Request made = request(question(2), result, 30);
        made.line_seconds = 0;
        const Token token = tokenizer_->encode(allowed, {.add_special = false}).back();
        made.sampling.logit_bias = {{token, 1e6f}};
        generator.add(std::move(made));
        generator.run();
        const bool line = *allowed == '\n';
        EXPECT_EQ(result.answer.has_new_line, line);
        EXPECT_EQ(result.answer.reason, line ? FinishReason::kTimeUp : FinishReason::kLength) << allowed;
        EXPECT_EQ(result.answer.new_tokens < 30, line);
    }
}

}  // namespace
}  // namespace tessera::session
