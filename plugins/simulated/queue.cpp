#include "queue.hpp"

#include "device.hpp"

#include <tessera/cpp/status.hpp>

#include <cstring>

namespace tessera::simulated {

Queue::Queue(Device& device) : device_(device) {
    commands_.reserve(kCapacity);
}

bool Queue::is_queue(const void* queue) noexcept {
    return queue && static_cast<const Queue*>(queue)->mark_ == kMark;
}

void Queue::put(const Command& command) {
    if (commands_.size() == kCapacity) flush();
    commands_.push_back(command);
}

void Queue::put_copy(char* to, const char* from, uint64_t bytes) {
    put({false, to, from, bytes, {}});
}

void Queue::put_launch(const Launch& launch) {
    put({true, nullptr, nullptr, 0, launch});
}

void Queue::compute(const Launch& launch) {
    tsr_run run{};
    run.struct_size = sizeof run;
    run.data = launch.data.data();
    run.ranges = launch.ranges;
    run.workspace = launch.workspace;
    run.workers = 1;
    launch.op->run(*launch.node, 1, run);
    device_.failures().computed(launch.op->name);
}

void Queue::flush() noexcept {
    try {
        for (const Command& command : commands_) {
            if (failure_code_ != TSR_OK) break;
            device_.failures().alive();
            if (command.launches) {
                compute(command.launch);
            } else {
                std::memmove(command.to, command.from, command.bytes);
            }
        }
    } catch (const sdk::Failure& failure) {
        failure_code_ = failure.code();
        failure_ = failure.what();
    } catch (const std::exception& error) {
        failure_code_ = TSR_INTERNAL;
        failure_ = error.what();
    }
    commands_.clear();
}

void Queue::finish() {
    flush();
    if (failure_code_ == TSR_OK) return;
    const sdk::Failure failure(failure_code_, failure_);
    failure_code_ = TSR_OK;
    failure_.clear();
    throw failure;
}

}  // namespace tessera::simulated
