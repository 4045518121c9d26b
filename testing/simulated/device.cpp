#include "device.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace tessera::simulated {
namespace {

using sdk::Failure;

const tsr_host* g_host = nullptr;

std::mutex g_devices_mutex;
std::vector<Device*>& open_devices() {
    static auto& all = *new std::vector<Device*>;
    return all;
}

// What may be allocated: what is free where that is said.
uint64_t limit_of(const tsr_device_info& info) noexcept {
    return info.free_memory_bytes != 0 ? std::min(info.free_memory_bytes, info.memory_bytes) : info.memory_bytes;
}

bool allowed_while_recording(tsr_simulated_operation operation) noexcept {
    switch (operation) {
        case TSR_SIMULATED_CREATE_QUEUE:
        case TSR_SIMULATED_CREATE_EVENT:
        case TSR_SIMULATED_UPLOAD:
        case TSR_SIMULATED_DOWNLOAD:
        case TSR_SIMULATED_COPY:
        case TSR_SIMULATED_COPY_FROM_PEER:
        case TSR_SIMULATED_END_RECORDING:
        case TSR_SIMULATED_PREPARE:
        case TSR_SIMULATED_ENQUEUE:
        case TSR_SIMULATED_MEMORY_INFO:
            return true;
        default:
            return false;
    }
}

void add_held(std::vector<Held*>& all, Held* one) {
    if (one && std::ranges::find(all, one) == all.end()) all.push_back(one);
}

}  // namespace

void set_host(const tsr_host* host) noexcept {
    g_host = host;
}

Device::Device(const tsr_device_info& info)
    : id_(info.id ? info.id : "?"),
      control_(Control::of(id_)),
      options_(control_.options()),
      table_(make_table(info, this, options_.without)),
      memory_(limit_of(info), std::max<uint64_t>(info.allocation_alignment, 256), info.largest_allocation_bytes),
      random_(options_.seed),
      scheduler_(options_.policy, options_.seed) {
    control_.require_alive();
    const std::lock_guard lock(g_devices_mutex);
    open_devices().push_back(this);
}

Device::~Device() {
    {
        const std::lock_guard lock(g_devices_mutex);
        std::erase(open_devices(), this);
    }
    discard_recording();
    const bool lost = control_.lost();
    for (auto& [handle, queue] : queues_) {
        if (!queue->at_rest() && !lost) remember("closed with work under way on a queue");
        scheduler_.remove(*queue);
        HostMemory::instance().forget(*queue);
    }
    queues_.clear();
    for (auto& [handle, recording] : recordings_) kept_recordings_.push_back(std::move(recording));
    for (const auto& recording : kept_recordings_) {
        for (Held* held : recording->held) held->forget();
    }
    kept_recordings_.clear();
    kept_.clear();
    HostMemory::instance().release_all(this);
    control_.released(memory_.used());
    if (!mistake_.empty() && g_host && g_host->log)
        g_host->log(g_host, TSR_LOG_ERROR, "simulated", (id_ + ": " + mistake_).c_str());
}

Device& Device::of(const tsr_device* device, const char* what) {
    const std::lock_guard lock(g_devices_mutex);
    for (Device* open : open_devices()) {
        if (&open->table_ == device) return *open;
    }
    throw Failure(TSR_INVALID_ARGUMENT, std::string(what) +
                                            ": expected an open device of interop " TSR_SIMULATED_INTEROP "; found " +
                                            (!device           ? "NULL"
                                             : device->interop ? device->interop
                                                               : "a device without interop"));
}

// ---- mistakes and recording ----

void Device::remember(const std::string& mistake) noexcept {
    const std::lock_guard lock(mutex_);
    try {
        if (mistake_.empty()) mistake_ = mistake;
    } catch (const std::bad_alloc&) {
        // It is one message the less.
    }
}

void Device::tell_mistake() {
    const std::lock_guard lock(mutex_);
    if (mistake_.empty()) return;
    const Failure failure(TSR_INTERNAL, id_ + ": " + mistake_);
    mistake_.clear();
    throw failure;
}

void Device::refuse_while_recording(tsr_simulated_operation operation) const {
    if (!recording_here() || allowed_while_recording(operation)) return;
    throw Failure(TSR_INVALID_ARGUMENT, id_ + ": " + operation_name(operation) + " while recording");
}

void Device::spoil_recording(const char* reason) noexcept {
    if (is_spoilt_) return;
    is_spoilt_ = true;
    try {
        spoilt_ = reason;
    } catch (const std::bad_alloc&) {
        spoilt_.clear();
    }
}

void Device::refuse_address(const void* address, uint64_t bytes, const std::string& what) const {
    char where[32];
    std::snprintf(where, sizeof where, "%p", address);
    std::string message = id_ + ": " + what + ": " + std::to_string(bytes) + " bytes at " + where;
    if (!memory_.owns(address)) {
        message += address ? ", which is no address of this device (a host pointer?)" : ", which is NULL";
    } else if (const uint64_t left = memory_.left(address)) {
        message += " go past the end of an allocation, of which " + std::to_string(left) + " are left";
    } else {
        message += ", where nothing is allocated (any more)";
    }
    throw Failure(TSR_INVALID_ARGUMENT, message);
}

void Device::require_host(const void* pointer, const char* what) const {
    if (!pointer) throw Failure(TSR_INVALID_ARGUMENT, id_ + ": " + what + " is NULL");
    const std::lock_guard lock(g_devices_mutex);
    for (const Device* open : open_devices()) {
        if (open->memory_.owns(pointer)) {
            throw Failure(TSR_INVALID_ARGUMENT,
                          id_ + ": " + what + " is an address of " + open->id_ + ", not of the host");
        }
    }
}

// ---- queues ----

Queue& Device::queue(tsr_queue handle) {
    const auto found = queues_.find(handle);
    if (found == queues_.end()) throw Failure(TSR_INVALID_ARGUMENT, id_ + ": a queue that is none of this device's");
    return *found->second;
}

tsr_queue Device::create_queue() {
    auto made = std::make_unique<Queue>(control_, next_queue_++);
    Queue* queue = made.get();
    queues_.emplace(queue, std::move(made));
    scheduler_.add(*queue);
    return queue;
}

void Device::destroy_queue(tsr_queue handle) {
    const auto found = queues_.find(handle);
    if (found == queues_.end()) return remember("destroy_queue of a queue that is none of this device's");
    Queue& queue = *found->second;
    if (recording() && captured_on_ == &queue) {
        remember("destroy_queue of a queue that is being recorded");
        discard_recording();
    }
    if (!queue.at_rest() && !control_.lost()) remember("destroy_queue with work under way on the queue");
    scheduler_.remove(queue);
    HostMemory::instance().forget(queue);
    queues_.erase(found);
}

void Device::wait_queue(Queue& queue) {
    queue.wait(queue.last());
    if (const Fault* fault = queue.take_fault()) throw Failure(fault->code, id_ + ": " + fault->message);
}

void Device::drain(tsr_queue handle) noexcept {
    const auto found = queues_.find(handle);
    if (found != queues_.end() && !recording()) found->second->wait(found->second->last());
}

// Onto the queue, or into the recording that is being made of it.
void Device::submit(Queue& queue, std::unique_ptr<Command> command) {
    if (!recording()) return put(queue, std::move(command));
    if (&queue != captured_on_)
        throw Failure(TSR_INVALID_ARGUMENT, id_ + ": work for another queue than the one that is being recorded");
    for (Held* held : command->held) {
        if (std::ranges::find(captured_->held, held) != captured_->held.end()) continue;
        captured_->held.push_back(held);
        held->record();
    }
    captured_->commands.push_back(std::move(command));
}

void Device::put(Queue& queue, std::unique_ptr<Command> command) {
    std::vector<const Copy*> transfers;  // that read or write host memory
    const auto note = [&](const Command& one) {
        if (one.kind == Command::Kind::kCopy && one.copy.host()) transfers.push_back(&one.copy);
    };
    note(*command);
    if (command->kind == Command::Kind::kReplay) {
        for (const auto& recorded : command->recording->commands) note(*recorded);
    }
    std::vector<std::pair<char*, uint64_t>> places;
    for (const Copy* copy : transfers) {
        // What is read before a download has ended is no number. Not where copies under way still need the bytes.
        if (copy->operation == TSR_SIMULATED_DOWNLOAD && !HostMemory::instance().busy(copy->host(), copy->bytes))
            poison(copy->host(), copy->bytes);
        places.emplace_back(copy->host(), copy->bytes);
    }
    const uint32_t index = queue.put(std::move(command));
    for (const auto& [memory, bytes] : places) HostMemory::instance().transfer(memory, bytes, queue, index);
    control_.busy_queues(
        static_cast<uint64_t>(std::ranges::count_if(queues_, [](const auto& one) { return !one.second->at_rest(); })));
    if (options_.policy == TSR_SIMULATED_AT_ONCE) queue.settle();
}

// ---- events ----

tsr_event Device::create_event(bool timed) {
    auto made = std::make_unique<Event>();
    made->timed = timed;
    Event* event = made.get();
    const std::lock_guard lock(mutex_);
    events_.emplace(event, std::move(made));
    return event;
}

void Device::destroy_event(tsr_event handle) {
    {
        const std::lock_guard lock(mutex_);
        const auto found = events_.find(handle);
        if (found != events_.end()) {
            if (found->second->current) found->second->current->drop();
            events_.erase(found);
            return;
        }
    }
    remember("destroy_event of an event that is none of this device's");
}

void Device::require_event(tsr_event event) {
    const std::lock_guard lock(mutex_);
    if (!events_.contains(event)) throw Failure(TSR_INVALID_ARGUMENT, id_ + ": an event that is none of this device's");
}

// The event's record now, used once more; nullptr if it has none.
Record* Device::hold_record(tsr_event event) {
    const std::lock_guard lock(mutex_);
    const auto found = events_.find(event);
    if (found == events_.end()) throw Failure(TSR_INVALID_ARGUMENT, id_ + ": an event that is none of this device's");
    Record* record = found->second->current;
    if (record) record->hold();
    return record;
}

void Device::record_event(Queue& queue, tsr_event event) {
    require_event(event);
    auto command = std::make_unique<Command>();
    command->kind = Command::Kind::kRecord;
    Record& record = take_record();
    command->record = &record;
    try {
        submit(queue, std::move(command));  // so that its place is known before anybody can ask for the record
    } catch (...) {
        record.drop();
        throw;
    }
    const std::lock_guard lock(mutex_);
    Event& bound = *events_.at(event);
    if (bound.current) bound.current->drop();
    bound.current = &record;
}

void Device::queue_wait_event(Queue& queue, const tsr_device* owner, tsr_event event) {
    Device& other = Device::of(owner, "queue_wait_event, the owner of the event");
    Record* record = other.hold_record(event);
    if (!record) return;
    auto command = std::make_unique<Command>();
    command->kind = Command::Kind::kWait;
    command->record = record;
    try {
        submit(queue, std::move(command));
    } catch (...) {
        record->drop();
        throw;
    }
    record->drop();
}

uint32_t Device::query_event(tsr_event event) {
    Record* record = hold_record(event);
    if (!record) return 1;
    const uint32_t done = record->done.load(std::memory_order_acquire);
    // Who asks again and again waits.
    if (!done) record->queue.load(kHidden)->demand(record->index.load(std::memory_order_relaxed));
    record->drop();
    return done;
}

void Device::wait_event(tsr_event event) {
    Record* record = hold_record(event);
    if (!record) return;
    if (!record->seems_done()) record->queue.load(kHidden)->demand(record->index.load(std::memory_order_relaxed));
    while (record->done.load(std::memory_order_acquire) == 0) sleep_while(record->done, 0);
    const Fault* fault = record->open_fault();
    record->drop();
    if (fault) throw Failure(fault->code, id_ + ": " + fault->message);
}

double Device::event_seconds(tsr_event begin, tsr_event end) {
    const auto time = [&](tsr_event event, const char* which) {
        const std::lock_guard lock(mutex_);
        const auto found = events_.find(event);
        if (found == events_.end())
            throw Failure(TSR_INVALID_ARGUMENT, id_ + ": an event that is none of this device's");
        const Event& known = *found->second;
        if (!known.timed) throw Failure(TSR_INVALID_ARGUMENT, id_ + ": " + which + " event was not created as timed");
        if (!known.current || !known.current->seems_done())
            throw Failure(TSR_INVALID_ARGUMENT, id_ + ": " + which + " event is not recorded or not complete");
        return known.current->nanoseconds.load(std::memory_order_relaxed);
    };
    const int64_t first = time(begin, "the first"), last = time(end, "the second");
    return static_cast<double>(last - first) * 1e-9;
}

// ---- memory ----

void* Device::allocate(uint64_t bytes) {
    release_kept();
    try {
        void* address = memory_.allocate(bytes);
        control_.allocated(memory_.counted(bytes));
        return address;
    } catch (const Failure& failure) {
        throw Failure(failure.code(), id_ + ": " + failure.what());
    }
}

void Device::release(void* address) {
    if (!address) return;
    if (recording_here()) {
        remember("release while recording");
        spoil_recording("release while recording");
    }
    const Allocation* released = memory_.release(address);
    if (!released) return remember("release of an address at which nothing is allocated");
    control_.released(memory_.counted(released->bytes()));
    if (released->queued() && !control_.lost())
        remember("release of " + released->describe() + " that queued work refers to");
}

void Device::release_host(void* address, bool allocated) {
    if (!address) return;
    if (recording_here()) {
        remember("release of page-locked memory while recording");
        spoil_recording("release of page-locked memory while recording");
    }
    try {
        HostMemory::instance().release(this, address, allocated);
    } catch (const Failure& failure) {
        if (!control_.lost()) remember(failure.what());
    }
}

// A driver may read memory that is not page-locked at once, or as late as any.
bool Device::staged_at_once() noexcept {
    if (options_.policy != TSR_SIMULATED_RANDOM) return options_.policy == TSR_SIMULATED_AT_ONCE;
    random_ = random_ * 6364136223846793005 + 1442695040888963407;  // Knuth's MMIX generator
    return random_ >> 63;
}

void Device::copy(tsr_simulated_operation operation, Queue& queue, void* to, const void* from, uint64_t bytes,
                  Device* peer) {
    const std::string name = operation_name(operation);
    const auto part = [&](const char* which) { return [&name, which] { return name + ", " + which; }; };
    auto command = std::make_unique<Command>();
    Copy& copy = command->copy;
    copy.operation = operation;
    copy.bytes = bytes;
    const bool up = operation == TSR_SIMULATED_UPLOAD, down = operation == TSR_SIMULATED_DOWNLOAD;
    if (up || down) {
        const void* host = up ? from : to;
        require_host(host, up ? "the source of an upload" : "the target of a download");
        const bool locked = HostMemory::instance().locked(host, bytes);
        if (recording() && !locked && bytes > 0) {
            throw Failure(TSR_INVALID_ARGUMENT,
                          id_ + ": " + name + " while recording: expected page-locked memory of the host");
        }
        if (up && !locked && bytes > 0 && staged_at_once()) {
            copy.staged = std::make_unique<char[]>(bytes);
            std::memcpy(copy.staged.get(), from, bytes);
        }
    }
    if (bytes == 0) return;
    copy.to = down ? Place{nullptr, static_cast<char*>(to)} : resolve(to, bytes, part("target"));
    copy.from = up ? Place{nullptr, const_cast<char*>(static_cast<const char*>(from))}
                   : (peer ? *peer : *this).resolve(from, bytes, part("source"));
    if (operation == TSR_SIMULATED_COPY && copy.to.memory < copy.from.memory + bytes &&
        copy.from.memory < copy.to.memory + bytes) {
        throw Failure(TSR_INVALID_ARGUMENT, id_ + ": copy between ranges that overlap");
    }
    add_held(command->held, copy.to.allocation);
    add_held(command->held, copy.from.allocation);
    submit(queue, std::move(command));
    control_.copying(operation, bytes);
}

void Device::launch(Queue& queue, std::unique_ptr<Work> work, std::vector<Held*> held) {
    auto command = std::make_unique<Command>();
    command->kind = Command::Kind::kWork;
    command->work = std::move(work);
    for (Held* one : held) add_held(command->held, one);
    submit(queue, std::move(command));
}

// ---- recordings ----

void Device::begin_recording(Queue& queue) {
    if (recording()) throw Failure(TSR_INVALID_ARGUMENT, id_ + ": begin_recording while another thread records");
    captured_ = std::make_unique<Recording>();
    captured_on_ = &queue;
    recorder_ = std::this_thread::get_id();
    is_spoilt_ = false;
    spoilt_.clear();
}

Recording* Device::end_recording(tsr_queue handle) {
    if (!recording()) throw Failure(TSR_INVALID_ARGUMENT, id_ + ": end_recording without begin_recording");
    if (!recording_here()) throw Failure(TSR_INVALID_ARGUMENT, id_ + ": end_recording by another thread than began it");
    if (captured_on_ != handle)
        throw Failure(TSR_INVALID_ARGUMENT, id_ + ": end_recording of another queue than the one that is recorded");
    // What was captured is there until end_recording with NULL discards it.
    if (is_spoilt_) throw Failure(TSR_DEVICE_ERROR, id_ + ": what was captured cannot be used: " + spoilt_);
    Recording* made = captured_.get();
    recordings_.emplace(made, std::move(captured_));
    captured_on_ = nullptr;
    recorder_ = std::thread::id();
    return made;
}

void Device::discard_recording() noexcept {
    if (!captured_) return;
    for (Held* held : captured_->held) held->forget();
    captured_.reset();
    captured_on_ = nullptr;
    recorder_ = std::thread::id();
}

void Device::destroy_recording(tsr_recording handle) {
    const auto found = recordings_.find(handle);
    if (found == recordings_.end()) return remember("destroy_recording of a recording that is none of this device's");
    if (found->second->replays.load(kHidden) != 0) {
        if (!control_.lost()) remember("destroy_recording while it is being replayed");
        kept_recordings_.push_back(std::move(found->second));
    } else {
        for (Held* held : found->second->held) held->forget();
    }
    recordings_.erase(found);
}

void Device::replay(Queue& queue, tsr_recording handle) {
    const auto found = recordings_.find(handle);
    if (found == recordings_.end())
        throw Failure(TSR_INVALID_ARGUMENT, id_ + ": a recording that is none of this device's");
    for (const Held* held : found->second->held) {
        if (held->released()) {
            throw Failure(TSR_INVALID_ARGUMENT,
                          id_ + ": replay: " + held->describe() + " was released since it was recorded");
        }
    }
    auto command = std::make_unique<Command>();
    command->kind = Command::Kind::kReplay;
    command->recording = found->second.get();
    command->held = found->second->held;
    submit(queue, std::move(command));
}

// ---- what is kept ----

void Device::keep(std::unique_ptr<Held> held) {
    release_kept();
    kept_.push_back(std::move(held));
}

void Device::release_kept() noexcept {
    std::erase_if(kept_, [](const auto& one) { return one->free(); });
}

}  // namespace tessera::simulated
