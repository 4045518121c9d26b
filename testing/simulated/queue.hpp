// A queue: commands that a thread of its own does one by one, whenever the scheduler says so.
//
// What passes between the threads: the host links commands (release) and the queue's thread follows the links
// (acquire); the queue's thread counts what it has completed (release), which waits acquire and all others read without
// ordering. The scheduler knows the counters alone.
#pragma once

#include "command.hpp"
#include "control.hpp"
#include "event.hpp"
#include "hidden.hpp"

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace tessera::simulated {

class Queue {
  public:
    // `control` outlives the queue. `number` rises with the queues of a device.
    Queue(Control& control, uint32_t number);
    // Drops what is left; its events complete.
    ~Queue();
    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;

    uint32_t number() const noexcept { return number_; }

    // ---- the host ----

    // Returns the number of the command: numbers rise by one. `command.record` of a kRecord is told its place.
    uint32_t put(std::unique_ptr<Command> command);
    uint32_t last() const noexcept { return put_.load(kHidden); }
    // Whether a command has ended, without ordering memory.
    bool seems_ended(uint32_t index) const noexcept { return !ahead(index, completed_.load(kHidden)); }
    // Whether nothing is under way, as far as the host can know: what an event stands for has ended when the event has.
    bool at_rest() const noexcept;
    // Blocks until the command has ended.
    void wait(uint32_t index);
    // Returns when all that is ready has ended, without ordering memory.
    void settle() const noexcept;
    // The first failure of the commands that have ended, once. Nothing is under way. Events that this queue waited for
    // are forgotten, too.
    const Fault* take_fault() noexcept;

    // ---- any thread ----

    // Somebody waits for the command.
    void demand(uint32_t index) noexcept;

    // ---- the scheduler ----

    bool busy() const noexcept { return !seems_ended(last()); }
    bool ready() const noexcept { return busy() && !blocked_on(); }
    // Commands that somebody waits for and that have not ended.
    uint32_t demanded() const noexcept;
    // The record that the next command waits for, if it is not complete.
    Record* blocked_on() const noexcept;
    // Demands what the next command waits for, which may be of another device.
    void demand_blocking() const noexcept;
    // Lets the queue's thread do up to `limit` commands, and returns when it has done so or can do no more.
    void proceed(uint32_t limit) noexcept;

  private:
    static constexpr uint32_t kStop = UINT32_MAX;

    // Whether number a comes after b.
    static bool ahead(uint32_t a, uint32_t b) noexcept { return static_cast<int32_t>(a - b) > 0; }

    void work() noexcept;
    bool do_next() noexcept;
    bool replay_next(const Recording& recording) noexcept;
    void execute(const Command& command) noexcept;
    void end_command(Command* done) noexcept;

    Control& control_;
    uint32_t number_;

    Command* last_put_;                    // the host's end of the list
    const Record* last_record_ = nullptr;  // of the last command, if it records an event
    std::atomic<uint32_t> put_{0};
    std::atomic<uint32_t> completed_{0};
    std::atomic<uint32_t> demanded_{0};
    std::atomic<Record*> blocked_on_{nullptr};
    std::atomic<const Fault*> fault_{nullptr};      // of this queue's commands
    std::atomic<const Fault*> inherited_{nullptr};  // of work that this queue waited for
    std::atomic<uint32_t> turn_{0};                 // commands that the queue's thread may do now

    // Of the queue's thread.
    Command* last_done_;   // a command that has ended, whose `next` is the next one
    size_t replayed_ = 0;  // commands of the recording that is being replayed

    std::thread thread_;
};

}  // namespace tessera::simulated
