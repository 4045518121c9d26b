#include "state.hpp"

#include <ctime>

namespace tessera::cuda::emulated {
namespace {

struct Returned {
    Statistics* from = nullptr;
    double at = 0;  // processor time of the thread
};
thread_local Returned returned;

// Other processes on the machine do not show in it.
double processor_seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

Call::Call(unsigned needs, const char* name) : begin(now_seconds()), function(name), d(driver()), lock(d.mutex) {
    if (returned.from) returned.from->after.push_back(processor_seconds() - returned.at);
    if (needs & kWork)
        result = current_for_work(d, context, name);
    else if (needs & kContext)
        result = current(d, context);
    if (result == CUDA_SUCCESS && (needs & kNoCapture)) result = refuse_while_capturing(d);
}

Call::Call(unsigned needs, void* handle, const char* name) : Call(needs, name) {
    if (result != CUDA_SUCCESS) return;
    result = find_stream(d, handle, stream);
    if (result == CUDA_SUCCESS && !context) result = lose_at(d, *stream->context.card, name);
}

Call::~Call() {
    const Context* const of = stream ? &stream->context : context;
    // Nothing reads the host's memory any more once a caller knows that the card has failed, and may release it.
    if (of && of->card->error != CUDA_SUCCESS && lock.owns_lock())
        d.changed.wait(lock, [&] { return of->card->executing == 0; });
    if (d.statistics_file.empty()) return;
    Statistics& statistics = d.statistics[{of ? static_cast<int>(of->card->number) : -1, function}];
    statistics.calls += 1;
    statistics.bytes += bytes;
    statistics.seconds += now_seconds() - begin;
    returned = {&statistics, processor_seconds()};
}

void count(Driver& d, const Card& card, const char* what, uint64_t bytes) {
    if (d.statistics_file.empty()) return;
    Statistics& statistics = d.statistics[{static_cast<int>(card.number), what}];
    statistics.calls += 1;
    statistics.bytes += bytes;
}

}  // namespace tessera::cuda::emulated
