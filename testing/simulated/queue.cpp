#include "queue.hpp"

#include <tessera/cpp/status.hpp>

#include <cstring>
#include <mutex>

namespace tessera::simulated {

using sdk::Failure;

namespace {

// Held while a scheduler reaches a queue of another device, which may be about to end. Schedulers do not touch what
// commands do, so this orders nothing that a program has to order itself.
std::mutex reaching;

}  // namespace

char* Copy::host() const noexcept {
    if (operation == TSR_SIMULATED_UPLOAD) return staged ? nullptr : from.memory;
    return operation == TSR_SIMULATED_DOWNLOAD ? to.memory : nullptr;
}

Queue::Queue(Control& control, uint32_t number) : control_(control), number_(number) {
    last_put_ = last_done_ = new Command;
    thread_ = std::thread([this] { work(); });
}

Queue::~Queue() {
    turn_.store(kStop, kHidden);
    wake_all(turn_);
    thread_.join();
    for (Command* at = last_done_; at;) {
        Command* next = at->next.load(std::memory_order_acquire);
        if (at != last_done_) {
            for (Held* held : at->held) held->leave_queue();
            if (at->record && at->kind == Command::Kind::kRecord) at->record->complete(nullptr);
            if (at->record) at->record->drop();
            if (at->recording) at->recording->replays.fetch_sub(1, kHidden);
        }
        delete at;
        at = next;
    }
    // Its records are complete: a scheduler that saw one of them open may still be here, later ones will not come.
    const std::lock_guard lock(reaching);
}

uint32_t Queue::put(std::unique_ptr<Command> command) {
    const uint32_t index = put_.load(std::memory_order_relaxed) + 1;
    for (Held* held : command->held) held->put_on_queue();
    if (command->kind == Command::Kind::kRecord) {
        command->record->index.store(index, std::memory_order_relaxed);
        command->record->queue.store(this, kHidden);
    }
    last_record_ = command->kind == Command::Kind::kRecord ? command->record : nullptr;
    if (command->record) command->record->hold();
    if (command->recording) command->recording->replays.fetch_add(1, kHidden);
    Command* linked = command.release();
    last_put_->next.store(linked, std::memory_order_release);
    last_put_ = linked;
    put_.store(index, kHidden);
    Bell::ring();
    return index;
}

void Queue::wait(uint32_t index) {
    demand(index);
    for (;;) {
        const uint32_t completed = completed_.load(std::memory_order_acquire);
        if (!ahead(index, completed)) return;
        sleep_while(completed_, completed);
    }
}

void Queue::settle() const noexcept {
    const uint32_t index = last();
    for (;;) {
        const uint32_t completed = completed_.load(kHidden);
        if (!ahead(index, completed) || blocked_on()) return;
        sleep_while(completed_, completed);
    }
}

const Fault* Queue::take_fault() noexcept {
    inherited_.store(nullptr, std::memory_order_relaxed);
    const Fault* fault = fault_.exchange(nullptr, std::memory_order_relaxed);
    if (fault) fault->returned.store(true, std::memory_order_relaxed);
    return fault;
}

void Queue::demand(uint32_t index) noexcept {
    uint32_t seen = demanded_.load(kHidden);
    while (ahead(index, seen)) {
        if (demanded_.compare_exchange_weak(seen, index, kHidden)) {
            Bell::ring();
            return;
        }
    }
}

bool Queue::at_rest() const noexcept {
    const uint32_t completed = completed_.load(kHidden);
    if (!ahead(last(), completed)) return true;
    if (last() - completed != 1 || !last_record_) return false;
    // The record completes a moment before the command that it belongs to. It may already serve another one.
    return last_record_->seems_done() || last_record_->queue.load(kHidden) != this ||
           last_record_->index.load(std::memory_order_relaxed) != last();
}

uint32_t Queue::demanded() const noexcept {
    const uint32_t demanded = demanded_.load(kHidden), completed = completed_.load(kHidden);
    return ahead(demanded, completed) ? demanded - completed : 0;
}

Record* Queue::blocked_on() const noexcept {
    Record* record = blocked_on_.load(kHidden);
    return record && !record->seems_done() ? record : nullptr;
}

void Queue::demand_blocking() const noexcept {
    const std::lock_guard lock(reaching);
    if (const Record* record = blocked_on())
        record->queue.load(kHidden)->demand(record->index.load(std::memory_order_relaxed));
}

void Queue::proceed(uint32_t limit) noexcept {
    turn_.store(limit, kHidden);
    wake_all(turn_);
    for (uint32_t turn; (turn = turn_.load(kHidden)) != 0;) sleep_while(turn_, turn);
}

void Queue::work() noexcept {
    for (;;) {
        const uint32_t limit = turn_.load(kHidden);
        if (limit == kStop) return;
        if (limit == 0) {
            sleep_while(turn_, 0);
            continue;
        }
        for (uint32_t i = 0; i < limit && do_next(); ++i) {
        }
        uint32_t expected = limit;
        turn_.compare_exchange_strong(expected, 0, kHidden);  // unless it is to stop
        wake_all(turn_);
    }
}

// One command, or one of a recording. False if there is none that can be done.
bool Queue::do_next() noexcept {
    Command* next = last_done_->next.load(std::memory_order_acquire);
    if (!next) return false;
    switch (next->kind) {
        case Command::Kind::kWait:
            if (!next->record->seems_done()) {
                blocked_on_.store(next->record, kHidden);
                wake_all(completed_);
                return false;
            }
            blocked_on_.store(nullptr, kHidden);
            // The edge from the work before the event to the work after this wait.
            static_cast<void>(next->record->done.load(std::memory_order_acquire));
            if (const Fault* fault = next->record->open_fault()) inherited_.store(fault, std::memory_order_relaxed);
            break;
        case Command::Kind::kRecord: {
            const Fault* own = fault_.load(std::memory_order_relaxed);
            next->record->complete(own ? own : inherited_.load(std::memory_order_relaxed));
            break;
        }
        case Command::Kind::kReplay:
            if (!replay_next(*next->recording)) return true;
            break;
        default:
            execute(*next);
    }
    end_command(next);
    return true;
}

// Whether that was the last command of the recording.
bool Queue::replay_next(const Recording& recording) noexcept {
    if (replayed_ < recording.commands.size()) execute(*recording.commands[replayed_++]);
    if (replayed_ < recording.commands.size()) return false;
    replayed_ = 0;
    return true;
}

// Does nothing after a failure of this queue.
void Queue::execute(const Command& command) noexcept {
    if (fault_.load(std::memory_order_relaxed)) return;
    try {
        for (const Held* held : command.held) {
            if (held->released()) {
                throw Failure(TSR_INVALID_ARGUMENT, held->describe() + " was released while queued work refers to it");
            }
        }
        if (command.kind == Command::Kind::kWork) {
            const Work& work = *command.work;
            if (control_.begin(TSR_SIMULATED_EXECUTE_KERNEL, work.op(), work.node())) work.run();
            return;
        }
        const Copy& copy = command.copy;
        if (!control_.begin(TSR_SIMULATED_EXECUTE_COPY, nullptr, std::to_string(copy.bytes) + " bytes")) return;
        std::memmove(copy.to.memory, copy.staged ? copy.staged.get() : copy.from.memory, copy.bytes);
    } catch (const Failure& failure) {
        fault_.store(&Fault::make(failure.code(), failure.what()), std::memory_order_relaxed);
    } catch (const std::exception& error) {
        fault_.store(&Fault::make(TSR_INTERNAL, error.what()), std::memory_order_relaxed);
    }
}

void Queue::end_command(Command* done) noexcept {
    for (Held* held : done->held) held->leave_queue();
    if (done->record) done->record->drop();
    if (done->recording) done->recording->replays.fetch_sub(1, kHidden);
    delete last_done_;
    last_done_ = done;
    completed_.fetch_add(1, std::memory_order_release);
    wake_all(completed_);
}

}  // namespace tessera::simulated
