#include "memory.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <new>
#include <stdexcept>

namespace tessera::conformance {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kAlignment = 64;
constexpr auto kMargin = std::byte{0xA5};
constexpr size_t kSignalStack = 64 << 10;

// What the signal handler knows of a buffer.
struct Known {
    std::atomic<uintptr_t> map{0};  // 0: free
    std::atomic<uintptr_t> map_end{0}, data{0}, data_end{0};
    std::atomic<const char*> name{nullptr};
    std::atomic<bool> is_protected{false};
};
std::array<Known, 64> g_buffers;
std::atomic<int> g_descriptor{-1};

size_t round_up(size_t bytes, size_t to) {
    return (bytes + to - 1) / to * to;
}

class Line {
  public:
    void add(const char* text) noexcept {
        while (*text && size_ < sizeof text_) text_[size_++] = *text++;
    }
    void add(uintptr_t number) noexcept {
        char digits[24];
        size_t at = sizeof digits;
        digits[--at] = '\0';
        do digits[--at] = static_cast<char>('0' + number % 10);
        while ((number /= 10) != 0);
        add(digits + at);
    }
    void write_to(int descriptor) const noexcept {
        [[maybe_unused]] const ssize_t written = ::write(descriptor, text_, size_);
    }

  private:
    char text_[600];
    size_t size_ = 0;
};

const char* signal_name(int number) noexcept {
    switch (number) {
        case SIGSEGV:
            return "SIGSEGV";
        case SIGBUS:
            return "SIGBUS";
        case SIGILL:
            return "SIGILL: an illegal instruction";
        case SIGFPE:
            return "SIGFPE: an arithmetic error";
        default:
            return "SIGABRT: abort, or an uncaught exception";
    }
}

void on_fault(int number, siginfo_t* info, void* context) {
    Line line;
    line.add("fault\t");
    const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
    const Known* buffer = nullptr;
    for (const Known& known : g_buffers) {
        if ((number == SIGSEGV || number == SIGBUS) && known.map != 0 && address >= known.map &&
            address < known.map_end)
            buffer = &known;
    }
#if defined(__x86_64__)
    const bool writes = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2;
#else
    const bool writes = false;
    (void)context;
#endif
    if (!buffer) {
        line.add(signal_name(number));
        if (number == SIGSEGV || number == SIGBUS)
            line.add(writes ? ": writes to an invalid address" : ": reads an invalid address");
    } else {
        line.add(writes ? "writes " : "reads ");
        if (address >= buffer->data && address < buffer->data_end) {
            line.add("byte ");
            line.add(address - buffer->data);
            line.add(" of ");
            line.add(buffer->name);
            line.add(", which is not to be written");
        } else if (address < buffer->data) {
            line.add(buffer->data - address);
            line.add(" bytes before ");
            line.add(buffer->name);
        } else {
            line.add(address - buffer->data_end);
            line.add(" bytes past the end of ");
            line.add(buffer->name);
        }
    }
    line.add("\n");
    line.write_to(g_descriptor);
    for (;;) syscall(SYS_exit_group, kFaultExit);  // at once, without the handlers of exit
}

}  // namespace

GuardedBuffer::GuardedBuffer(std::string name, size_t bytes)
    : name_(std::move(name)), bytes_(bytes), mapped_(round_up(std::max<size_t>(bytes, 1), kPage) + 2 * kPage) {
    void* map = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) throw std::bad_alloc();
    map_ = static_cast<std::byte*>(map);
    mprotect(map_ + kPage, mapped_ - 2 * kPage, PROT_READ | PROT_WRITE);
    std::fill(map_ + kPage, map_ + mapped_ - kPage, kMargin);
    data_ = map_ + mapped_ - kPage - round_up(bytes, kAlignment);
    for (slot_ = 0; slot_ < g_buffers.size(); ++slot_) {
        Known& known = g_buffers[slot_];
        if (known.map != 0) continue;
        known.map_end = reinterpret_cast<uintptr_t>(map_) + mapped_;
        known.data = reinterpret_cast<uintptr_t>(data_);
        known.data_end = known.data + bytes_;
        known.name = name_.c_str();
        known.map = reinterpret_cast<uintptr_t>(map_);
        break;
    }
}

GuardedBuffer::~GuardedBuffer() {
    if (slot_ < g_buffers.size()) g_buffers[slot_].map = 0;
    munmap(map_, mapped_);
}

void GuardedBuffer::protect(bool on) noexcept {
    mprotect(map_ + kPage, mapped_ - 2 * kPage, on ? PROT_READ : PROT_READ | PROT_WRITE);
}

void GuardedBuffer::check_margins() const {
    const auto intact = [](std::byte b) { return b == kMargin; };
    if (!std::all_of(map_ + kPage, data_, intact)) throw std::runtime_error("writes before " + name_);
    const std::byte* end = map_ + mapped_ - kPage;
    const std::byte* const wrong = std::find_if_not(static_cast<const std::byte*>(data_) + bytes_, end, intact);
    if (wrong != end) {
        throw std::runtime_error("writes " + std::to_string(wrong - data_ - static_cast<ptrdiff_t>(bytes_)) +
                                 " bytes past the end of " + name_);
    }
}

void report_faults_to(int descriptor) noexcept {
    static char stack[kSignalStack];
    g_descriptor = descriptor;
    stack_t alternate{};
    alternate.ss_sp = stack;
    alternate.ss_size = sizeof stack;
    sigaltstack(&alternate, nullptr);
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) sigaction(number, &action, nullptr);
}

}  // namespace tessera::conformance
