// The objects of the driver: cards, streams, events, modules, graphs. Handles that the functions of the driver give out
// are their addresses, looked up before use.
//
// One mutex protects all of them. Work that streams do (kernels, copies) is done without it.
#pragma once

#include "../emulator/emulator.hpp"
#include "../ptx/module.hpp"
#include "description.hpp"
#include "history.hpp"
#include "image.hpp"
#include "result.hpp"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace tessera::cuda::emulated {

using Address = unsigned long long;  // CUdeviceptr

struct Card;
struct Stream;
struct Capture;
struct Graph;
struct Node;

// What an operation ends with.
struct Ended {
    Result result = CUDA_SUCCESS;
    std::string report;
};
using Work = std::function<Ended(const Execution&)>;

// The primary context of a card; there are no others. Modules, and what they take of the card, end with it.
struct Context {
    Card* card;
    uint32_t retained = 0;
};

struct Module {
    Context* context;
    Image image;
    void* library = nullptr;  // of dlopen; stays open
    const simt::emulated::Module* kernels = nullptr;
    uintptr_t library_begin = 0, library_end = 0;
    std::unique_ptr<ptx::Module> ptx;  // that is run instead of a library's kernels
    uint64_t resident = 0;             // bytes of the card that its data and the code of its functions take
};

struct Function {
    std::shared_ptr<Module> module;
    const ImageKernel* image;
    // One of these executes it; the other is null.
    const simt::emulated::Kernel* kernel;
    const ptx::Program* program;
    uint32_t maximum_dynamic_shared;          // bytes that a launch may ask for
    std::shared_ptr<const std::string> what;  // "kernel scale"
};

struct Event {
    Context* context;
    bool timed;
    uint64_t recorded = 0, completed = 0;  // number of the last record, of the last one that has been done
    double seconds = 0;                    // when that was
    VectorClock clock;                     // work that is ordered before the last record
    // While the stream that it was last recorded in is being captured: the capture, and what it stands for there.
    std::shared_ptr<Capture> capture;
    std::vector<size_t> nodes;
};

struct Command {
    Work work;
    std::shared_ptr<Event> wait, record;
    uint64_t number = 0;  // of that record
    Execution execution;
};

struct Stream {
    explicit Stream(Context& of);
    ~Stream();
    void run();
    void enqueue(Command command);  // with the mutex

    Context& context;
    uint32_t number;     // counts the streams of the process
    VectorClock known;   // work that is ordered before what it is given next
    uint64_t works = 0;  // that it was given
    std::deque<Command> commands;
    uint64_t enqueued = 0, done = 0;
    bool stops = false;
    uint64_t random_state;
    uint64_t launches = 0;
    std::shared_ptr<Capture> capture;  // that it takes part in
    std::vector<size_t> tail;          // nodes there that its next work depends on
    std::thread thread;
};

struct Node {
    enum Kind { kKernel, kCopy, kSet, kEmpty } kind = kEmpty;
    std::vector<size_t> after;
    Work work;
    std::shared_ptr<Function> function;  // of a kernel
    std::vector<uint64_t> shape;         // what an update must leave as it is
    char* host = nullptr;                // page-locked memory that a copy reads, or writes
    uint64_t host_bytes = 0;
    bool to_host = false;
};

struct Graph {
    std::vector<std::shared_ptr<Node>> nodes;
};

struct ExecutableGraph {
    Context* context;
    std::vector<std::shared_ptr<Node>> nodes;
    std::shared_ptr<const Ancestors> ancestors;
};

struct Capture {
    Stream* origin;
    int mode;  // 0 global, 1 of the thread, 2 relaxed
    std::thread::id thread;
    bool invalid = false;
    std::vector<std::shared_ptr<Node>> nodes;
    std::set<Stream*> streams;
};

struct Allocation {
    uint64_t bytes, mapped;
};

struct Card {
    size_t number;
    CardDescription description;
    Context context;
    std::map<Address, Allocation> allocations;
    uint64_t large_bytes = 0, small_bytes = 0;  // taken by allocations, rounded as drivers do
    uint64_t code_bytes = 0;                    // taken by modules
    uint32_t local = 0;                         // bytes a thread: the most that a kernel has needed so far
    uint64_t reach = 0;                         // bit i: access to card i has been enabled
    Result error = CUDA_SUCCESS;                // sticky
    uint32_t executing = 0;                     // operations that its streams do right now, without the mutex
    bool lost = false;
    // Faults that were asked for: what happens at the n-th operation of its kind, or call of a function.
    uint64_t operations = 0, launches = 0, allocated = 0;
    std::map<std::string, uint64_t> calls;
    // Bytes that another process takes once NVML has been asked what is free; and has taken.
    uint64_t to_be_taken = 0, taken = 0;
    std::map<std::string, uint64_t> faults;

    uint64_t used() const noexcept;
    // Address space that allocations are taken from.
    uintptr_t space = 0;
    uint64_t space_bytes = 0, space_used = 0;
    std::multimap<uint64_t, uintptr_t> released;  // by size
};

enum class Policy { kRandom, kLate, kEager };

// What calls of one function did for one card.
struct Statistics {
    uint64_t calls = 0, bytes = 0;
    double seconds = 0;         // from call to return
    std::vector<double> after;  // processor time from each return to the thread's next call of any function
};

struct Driver {
    std::mutex mutex;
    std::condition_variable changed;  // whenever a stream has advanced, or a host thread begins to wait

    bool initialized = false;
    std::string trouble;  // why initialisation failed
    std::vector<std::unique_ptr<Card>> cards;
    emulator::Memory memory;
    std::set<uintptr_t> pinned;  // begins of memory from cuMemHostAlloc
    std::map<uintptr_t, uint64_t> registered;
    std::map<Stream*, std::shared_ptr<Stream>> streams;
    std::map<Event*, std::shared_ptr<Event>> events;
    std::map<Module*, std::shared_ptr<Module>> modules;
    std::map<Function*, std::shared_ptr<Function>> functions;
    std::map<Graph*, std::shared_ptr<Graph>> graphs;
    std::map<ExecutableGraph*, std::shared_ptr<ExecutableGraph>> executables;
    std::set<std::shared_ptr<Capture>> captures;

    Policy policy = Policy::kRandom;
    emulator::Options options;
    uint64_t seed = 1;
    bool held = false;     // streams do nothing
    uint32_t waiters = 0;  // host threads that wait for a stream
    uint64_t polls = 0;    // times that somebody asked whether work has ended

    bool check_streams = true;  // races between streams, and of the host with copies
    VectorClock host;           // work that the host has waited for
    History history;
    std::multimap<uintptr_t, uintptr_t> pending;  // page-locked memory of copies that are not done: begin, end

    std::string report;                                            // of the last fault
    std::map<std::pair<int, std::string>, Statistics> statistics;  // by card (-1: none) and function
    std::string statistics_file;
    // By module.kernel and the virtual architecture that it was made from: 61.
    std::map<std::pair<std::string, uint32_t>, emulator::Counters> counters;
    std::string counters_file;
    bool run_ptx = false;  // else kernels of emulated libraries
    std::vector<std::string> kernel_folders;
};

// That of the process; never destroyed, since streams may be used until it ends.
Driver& driver();

// Reads the environment. With the mutex.
Result initialize(Driver& d);

// ---- contexts (contexts.cpp) ----

// The calling thread's, if it has one that can be used.
Result current(Driver& d, Context*& context);
// The same for calls that a failed card refuses, counted as an operation of it.
Result current_for_work(Driver& d, Context*& context, const char* function);
// A call of a function of the driver for the card; its error, if the card is to be lost in this one or has been before.
Result lose_at(Driver& d, Card& card, const char* function);
// The card can do nothing more. With the mutex.
void fail(Driver& d, Card& card, Result result, const std::string& report);

// ---- streams (stream.cpp) ----

Result find_stream(Driver& d, void* handle, std::shared_ptr<Stream>& stream);
// Work on a stream: captured if it is being captured, else enqueued. With the mutex.
Result submit(Driver& d, Stream& stream, Node node);
// Puts `work` behind what the stream has been given, as one operation.
void enqueue(Driver& d, Stream& stream, Work work);
// Waits until `stream` has done what it has been given so far; releases the mutex meanwhile.
Result wait_for(Driver& d, const std::shared_ptr<Stream>& stream, std::unique_lock<std::mutex>& lock);
// The same for all streams of all cards: what a driver does before it releases memory.
void wait_for_all(Driver& d, std::unique_lock<std::mutex>& lock);

// ---- capture (capture.cpp) ----

// Calls that must not be made while the calling thread captures (or, in global mode, any thread) invalidate the
// capture.
Result refuse_while_capturing(Driver& d);
void invalidate(Driver& d, const std::shared_ptr<Capture>& capture);
Work replay(Driver& d, std::shared_ptr<ExecutableGraph> graph);  // with the mutex

// ---- races (races.cpp) ----

// What is known of the page-locked memory of a copy when it is called.
struct HostSide {
    std::vector<char> content;  // of what it will read
    bool poisoned = false;      // what it will write holds kPoison
};
// At the call. With the mutex.
std::shared_ptr<HostSide> watch_host(Driver& d, const Node& node);
// Does the node's work; a fault if the host has changed page-locked memory since the call. Without the mutex.
Ended run_node(const Node& node, const HostSide* host, const Execution& execution);
// Notes what an operation has read and written; a fault if earlier work that is not ordered before it touched the
// same bytes. Without the mutex.
Ended note_accesses(const Execution& execution, const std::shared_ptr<const std::string>& what,
                    const std::vector<emulator::Touched>& touched);

// ---- memory (memory_calls.cpp) ----

enum class Place { kUnknown, kCard, kPinned };
// Where [address, address + bytes) lies as a whole. kUnknown: pageable memory of the host, or beyond an allocation.
Place place_of(const emulator::Ranges& ranges, const void* address, uint64_t bytes, const emulator::Range** range);
// Gives an allocation's memory back to its card.
void release(Driver& d, Card& card, Address address);
// Takes memory for what a module loads, and for the local memory of all threads that can be resident.
Result take_for_code(Card& card, Module& module, uint64_t bytes);
Result take_for_local(Card& card, uint32_t bytes_of_thread);
// Whether any byte of it is a card's.
bool touches_card(const Driver& d, const void* address, uint64_t bytes);

// ---- calls (calls.cpp) ----

// What every function of the driver begins with: the mutex, what the function needs, and its share of the statistics.
struct Call {
    // A context of the calling thread; one whose card works, and the call counts as an operation of it; and no capture
    // that forbids such calls.
    enum Needs : unsigned { kNothing = 0, kContext = 1, kWork = 2, kNoCapture = 4 };

    explicit Call(unsigned needs, const char* function = __builtin_FUNCTION());
    // And a stream.
    Call(unsigned needs, void* stream, const char* function = __builtin_FUNCTION());
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    explicit operator bool() const noexcept { return result == CUDA_SUCCESS; }

    double begin;
    const char* function;
    Driver& d;
    std::unique_lock<std::mutex> lock;
    Context* context = nullptr;
    std::shared_ptr<Stream> stream;
    Result result = CUDA_SUCCESS;  // why the call cannot be done
    uint64_t bytes = 0;            // for the statistics
};

// What the driver does without a call, such as nodes of graphs, for the statistics. With the mutex.
void count(Driver& d, const Card& card, const char* what, uint64_t bytes);

double now_seconds();
uint64_t next_random(uint64_t& state) noexcept;

}  // namespace tessera::cuda::emulated

#define TSR_EXPORT extern "C" __attribute__((visibility("default")))
