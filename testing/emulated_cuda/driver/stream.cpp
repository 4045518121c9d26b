// Streams have a thread each. When one goes on is up to the policy: a driver may do work late, and in any order between
// streams.
#include "state.hpp"

#include <algorithm>
#include <chrono>

namespace tessera::cuda::emulated {

double now_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// xorshift64* (Vigna, 2016).
uint64_t next_random(uint64_t& state) noexcept {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545F4914F6CDD1D >> 32;
}

Stream::Stream(Context& of) : context(of) {
    static uint32_t made = 0;
    number = made++;
    random_state = (driver().seed + made) * 0x9E3779B97F4A7C15 | 1;
    thread = std::thread([this] { run(); });
}

Stream::~Stream() {
    if (thread.joinable()) thread.join();
}

void Stream::enqueue(Command command) {
    commands.push_back(std::move(command));
    ++enqueued;
    driver().changed.notify_all();
}

namespace {

// Returns when the policy lets the stream do its next operation.
void wait_for_permission(Driver& d, Stream& stream, std::unique_lock<std::mutex>& lock) {
    const auto urgent = [&] { return d.waiters > 0 || stream.stops; };
    switch (d.policy) {
        case Policy::kEager:
            return;
        case Policy::kLate:
            d.changed.wait(lock, [&] { return urgent() || d.polls > 0; });
            if (!urgent()) --d.polls;
            return;
        case Policy::kRandom:
            break;
    }
    if (next_random(stream.random_state) % 8 != 0) return;
    const auto delay = std::chrono::microseconds(next_random(stream.random_state) % (urgent() ? 60 : 300));
    d.changed.wait_for(lock, delay, [] { return false; });
}

}  // namespace

void Stream::run() {
    Driver& d = driver();
    std::unique_lock lock(d.mutex);
    while (true) {
        d.changed.wait(lock, [&] { return stops || !commands.empty(); });
        if (commands.empty()) return;
        wait_for_permission(d, *this, lock);
        d.changed.wait(lock, [&] { return !d.held; });
        Command command = std::move(commands.front());
        Card& card = *context.card;
        if (command.wait) {
            d.changed.wait(lock, [&] {
                return command.wait->completed >= command.number || card.error != CUDA_SUCCESS ||
                       command.wait->context->card->error != CUDA_SUCCESS;
            });
        } else if (command.work && card.error == CUDA_SUCCESS) {
            ++card.executing;
            lock.unlock();
            Ended ended = command.work(command.execution);
            command.work = nullptr;
            lock.lock();
            --card.executing;
            if (ended.result != CUDA_SUCCESS) fail(d, card, ended.result, ended.report);
        }
        if (command.record) {
            command.record->completed = std::max(command.record->completed, command.number);
            command.record->seconds = now_seconds();
        }
        commands.pop_front();
        ++done;
        d.changed.notify_all();
    }
}

Result find_stream(Driver& d, void* handle, std::shared_ptr<Stream>& stream) {
    const auto found = d.streams.find(static_cast<Stream*>(handle));
    if (found == d.streams.end()) return CUDA_ERROR_INVALID_HANDLE;  // the default stream is not emulated
    stream = found->second;
    if (stream->context.retained == 0) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    return stream->context.card->error;
}

void enqueue(Driver& d, Stream& stream, Work work) {
    join(stream.known, d.host);
    if (stream.known.size() <= stream.number) stream.known.resize(stream.number + 1);
    Execution execution{
        &stream, {stream.context.card->number, stream.number, ++stream.works, 0}, nullptr, nullptr, nullptr};
    execution.known = std::make_shared<const VectorClock>(stream.known);
    execution.host = std::make_shared<const VectorClock>(d.host);
    stream.known[stream.number] = stream.works;
    stream.enqueue({std::move(work), nullptr, nullptr, 0, std::move(execution)});
}

Result submit(Driver& d, Stream& stream, Node node) {
    Card& card = *stream.context.card;
    if (card.error != CUDA_SUCCESS) return card.error;
    if (stream.capture) {
        if (stream.capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        node.after = stream.tail;
        stream.capture->nodes.push_back(std::make_shared<Node>(std::move(node)));
        stream.tail = {stream.capture->nodes.size() - 1};
        return CUDA_SUCCESS;
    }
    auto host = watch_host(d, node);
    enqueue(d, stream, [node = std::move(node), host = std::move(host)](const Execution& execution) {
        return run_node(node, host.get(), execution);
    });
    return CUDA_SUCCESS;
}

Result wait_for(Driver& d, const std::shared_ptr<Stream>& stream, std::unique_lock<std::mutex>& lock) {
    const uint64_t target = stream->enqueued;
    const VectorClock known = stream->known;
    ++d.waiters;
    d.changed.notify_all();
    d.changed.wait(lock, [&] { return stream->done >= target; });
    --d.waiters;
    join(d.host, known);
    return stream->context.card->error;
}

void wait_for_all(Driver& d, std::unique_lock<std::mutex>& lock) {
    std::vector<std::pair<std::shared_ptr<Stream>, uint64_t>> targets;
    VectorClock known;
    for (const auto& [handle, stream] : d.streams) {
        targets.emplace_back(stream, stream->enqueued);
        join(known, stream->known);
    }
    ++d.waiters;
    d.changed.notify_all();
    d.changed.wait(lock, [&] {
        return std::all_of(targets.begin(), targets.end(), [](const auto& t) { return t.first->done >= t.second; });
    });
    --d.waiters;
    join(d.host, known);
}

}  // namespace tessera::cuda::emulated

using namespace tessera::cuda::emulated;

TSR_EXPORT Result cuStreamCreate(void** made, unsigned flags) {
    const Call call(Call::kWork);
    if (!call) return call.result;
    if (!made || flags > 1) return CUDA_ERROR_INVALID_VALUE;
    auto stream = std::make_shared<Stream>(*call.context);
    *made = stream.get();
    call.d.streams.emplace(stream.get(), std::move(stream));
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuStreamCreateWithPriority(void** made, unsigned flags, int) {
    return cuStreamCreate(made, flags);
}

// What it has been given is still done.
TSR_EXPORT Result cuStreamDestroy_v2(void* handle) {
    Call call(Call::kNothing);
    Driver& d = call.d;
    const auto found = d.streams.find(static_cast<Stream*>(handle));
    if (found == d.streams.end()) return CUDA_ERROR_INVALID_HANDLE;
    const std::shared_ptr<Stream> stream = found->second;
    if (stream->capture) {
        invalidate(d, stream->capture);
        stream->capture->streams.erase(stream.get());
        stream->capture = nullptr;
    }
    stream->stops = true;
    d.streams.erase(found);
    ++d.waiters;
    d.changed.notify_all();
    call.lock.unlock();
    stream->thread.join();
    call.lock.lock();
    --d.waiters;
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuStreamSynchronize(void* handle) {
    Call call(Call::kNothing, handle);
    if (!call) return call.result;
    if (call.stream->capture) {
        invalidate(call.d, call.stream->capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (const Result result = refuse_while_capturing(call.d); result != CUDA_SUCCESS) return result;
    return wait_for(call.d, call.stream, call.lock);
}

TSR_EXPORT Result cuStreamQuery(void* handle) {
    const Call call(Call::kNothing, handle);
    if (!call) return call.result;
    Driver& d = call.d;
    Stream& stream = *call.stream;
    if (stream.capture) {
        invalidate(d, stream.capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (stream.done == stream.enqueued) {
        join(d.host, stream.known);
        return CUDA_SUCCESS;
    }
    ++d.polls;
    d.changed.notify_all();
    return CUDA_ERROR_NOT_READY;
}

TSR_EXPORT Result cuEventCreate(void** made, unsigned flags) {
    const Call call(Call::kWork);
    if (!call) return call.result;
    constexpr unsigned kBlocking = 1, kWithoutTiming = 2;
    if (!made || (flags & ~(kBlocking | kWithoutTiming)) != 0) return CUDA_ERROR_INVALID_VALUE;
    auto event = std::make_shared<Event>();
    event->context = call.context;
    event->timed = (flags & kWithoutTiming) == 0;
    *made = event.get();
    call.d.events.emplace(event.get(), std::move(event));
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuEventDestroy_v2(void* handle) {
    const Call call(Call::kNothing);
    return call.d.events.erase(static_cast<Event*>(handle)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

namespace {

Result find_event(const Call& call, void* handle, std::shared_ptr<Event>& event) {
    const auto found = call.d.events.find(static_cast<Event*>(handle));
    if (found == call.d.events.end()) return CUDA_ERROR_INVALID_HANDLE;
    event = found->second;
    return lose_at(call.d, *event->context->card, call.function);
}

}  // namespace

TSR_EXPORT Result cuEventRecord(void* handle, void* stream_handle) {
    Call call(Call::kNothing);
    std::shared_ptr<Event> event;
    if (const Result result = find_event(call, handle, event); result != CUDA_SUCCESS) return result;
    if (const Result result = find_stream(call.d, stream_handle, call.stream); result != CUDA_SUCCESS) return result;
    Stream& stream = *call.stream;
    if (event->context != &stream.context) return CUDA_ERROR_INVALID_HANDLE;
    if (stream.capture) {
        if (stream.capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        event->capture = stream.capture;
        event->nodes = stream.tail;
        return CUDA_SUCCESS;
    }
    event->capture = nullptr;
    event->clock = stream.known;
    stream.enqueue({nullptr, nullptr, event, ++event->recorded, {}});
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuStreamWaitEvent(void* stream_handle, void* handle, unsigned flags) {
    const Call call(Call::kNothing, stream_handle);
    if (!call) return call.result;
    Driver& d = call.d;
    const std::shared_ptr<Stream>& stream = call.stream;
    const auto found = d.events.find(static_cast<Event*>(handle));
    if (found == d.events.end()) return CUDA_ERROR_INVALID_HANDLE;
    const std::shared_ptr<Event> event = found->second;
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (event->capture && d.captures.contains(event->capture)) {
        Capture& capture = *event->capture;
        if (stream->capture && stream->capture != event->capture) {
            invalidate(d, stream->capture);
            invalidate(d, event->capture);
            return CUDA_ERROR_STREAM_CAPTURE_MERGE;
        }
        if (capture.invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
        if (!stream->capture) {
            stream->capture = event->capture;
            stream->tail.clear();
            capture.streams.insert(stream.get());
        }
        for (const size_t node : event->nodes) {
            if (std::find(stream->tail.begin(), stream->tail.end(), node) == stream->tail.end())
                stream->tail.push_back(node);
        }
        return CUDA_SUCCESS;
    }
    if (stream->capture) {
        invalidate(d, stream->capture);
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (event->capture) return CUDA_ERROR_CAPTURED_EVENT;  // of a capture that has ended
    if (event->recorded == 0) return CUDA_SUCCESS;
    join(stream->known, event->clock);
    stream->enqueue({nullptr, event, nullptr, event->recorded, {}});
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuEventQuery(void* handle) {
    const Call call(Call::kNothing);
    Driver& d = call.d;
    std::shared_ptr<Event> event;
    if (const Result result = find_event(call, handle, event); result != CUDA_SUCCESS) return result;
    if (event->capture) return CUDA_ERROR_CAPTURED_EVENT;
    if (const Result result = refuse_while_capturing(d); result != CUDA_SUCCESS) return result;
    if (event->completed >= event->recorded) {
        join(d.host, event->clock);
        return CUDA_SUCCESS;
    }
    ++d.polls;
    d.changed.notify_all();
    return CUDA_ERROR_NOT_READY;
}

TSR_EXPORT Result cuEventSynchronize(void* handle) {
    Call call(Call::kNothing);
    Driver& d = call.d;
    std::shared_ptr<Event> event;
    if (const Result result = find_event(call, handle, event); result != CUDA_SUCCESS) return result;
    if (event->capture) return CUDA_ERROR_CAPTURED_EVENT;
    if (const Result result = refuse_while_capturing(d); result != CUDA_SUCCESS) return result;
    const uint64_t target = event->recorded;
    const VectorClock known = event->clock;
    ++d.waiters;
    d.changed.notify_all();
    d.changed.wait(call.lock, [&] { return event->completed >= target; });
    --d.waiters;
    join(d.host, known);
    return event->context->card->error;
}

TSR_EXPORT Result cuEventElapsedTime(float* milliseconds, void* begin_handle, void* end_handle) {
    const Call call(Call::kNothing);
    std::shared_ptr<Event> begin, end;
    if (const Result result = find_event(call, begin_handle, begin); result != CUDA_SUCCESS) return result;
    if (const Result result = find_event(call, end_handle, end); result != CUDA_SUCCESS) return result;
    if (!milliseconds) return CUDA_ERROR_INVALID_VALUE;
    if (!begin->timed || !end->timed || begin->recorded == 0 || end->recorded == 0) return CUDA_ERROR_INVALID_HANDLE;
    if (begin->completed < begin->recorded || end->completed < end->recorded) return CUDA_ERROR_NOT_READY;
    *milliseconds = static_cast<float>(1e3 * (end->seconds - begin->seconds));
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuEventElapsedTime_v2(float* milliseconds, void* begin, void* end) {
    return cuEventElapsedTime(milliseconds, begin, end);
}
