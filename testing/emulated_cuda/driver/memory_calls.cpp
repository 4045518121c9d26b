// Memory of cards and page-locked memory of the host; copies.
//
// Copies from page-locked memory read it when the stream comes to them, which may be late. Pageable memory is copied
// during the call, as drivers do, and a copy to it ends before the call returns.
#include "state.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace tessera::cuda::emulated {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kGap = 64 << 10;        // between allocations, without access
constexpr uint64_t kGranule = 2ull << 20;  // of what allocations take of a card
constexpr uint64_t kSmall = 1ull << 20;    // smaller ones share granules
constexpr uint64_t kCodeUnit = 512;
constexpr uint64_t kPattern = 64ull << 20;

uint64_t rounded(uint64_t bytes, uint64_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

// A file full of 0xFF bytes: mapped privately, large allocations are poisoned without being touched.
int pattern_file() {
    static const int file = [] {
        const int made = memfd_create("tessera-emulated", MFD_CLOEXEC);
        if (made < 0 || ftruncate(made, kPattern) != 0) return -1;
        void* const memory = mmap(nullptr, kPattern, PROT_READ | PROT_WRITE, MAP_SHARED, made, 0);
        if (memory == MAP_FAILED) return -1;
        std::memset(memory, 0xFF, kPattern);
        munmap(memory, kPattern);
        return made;
    }();
    return file;
}

bool poison(uintptr_t at, uint64_t bytes) {
    void* const memory = reinterpret_cast<void*>(at);
    if (bytes <= kPattern) {
        if (mprotect(memory, bytes, PROT_READ | PROT_WRITE) != 0) return false;
        std::memset(memory, 0xFF, bytes);
        return true;
    }
    const int file = pattern_file();
    for (uint64_t i = 0; i < bytes; i += kPattern) {
        void* const part = reinterpret_cast<void*>(at + i);
        if (mmap(part, std::min(kPattern, bytes - i), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
                 file, 0) == MAP_FAILED)
            return false;
    }
    return true;
}

void conceal(uintptr_t at, uint64_t bytes) {
    mmap(reinterpret_cast<void*>(at), bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}

// Room in the card's address space; that of released memory only when there is no other, so that its use is noticed.
uintptr_t take_space(Card& card, uint64_t bytes) {
    if (card.space_bytes - card.space_used >= bytes) {
        const uintptr_t at = card.space + card.space_used;
        card.space_used += bytes;
        return at;
    }
    const auto fits = card.released.lower_bound(bytes);
    if (fits == card.released.end()) return 0;
    const auto [size, at] = *fits;
    card.released.erase(fits);
    if (size > bytes) card.released.emplace(size - bytes, at + bytes);
    return at;
}

}  // namespace

uint64_t Card::used() const noexcept {
    const uint64_t threads = uint64_t{description.processors} * description.limits.threads_per_processor;
    return description.taken + taken + large_bytes + rounded(small_bytes, kGranule) + code_bytes +
           rounded(local * threads, kGranule) + (context.retained > 0 ? description.context_bytes : 0);
}

// Code is counted by the kernel, not in steps that kernels share as drivers have them: each one that is loaded late
// shows.
Result take_for_code(Card& card, Module& module, uint64_t bytes) {
    const uint64_t taken = rounded(bytes, kCodeUnit);
    if (card.used() + taken > card.description.memory) return CUDA_ERROR_OUT_OF_MEMORY;
    card.code_bytes += taken;
    module.resident += taken;
    return CUDA_SUCCESS;
}

Result take_for_local(Card& card, uint32_t bytes_of_thread) {
    const uint32_t before = card.local;
    card.local = std::max(before, bytes_of_thread);
    if (card.used() <= card.description.memory || card.local == before) return CUDA_SUCCESS;
    card.local = before;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

Place place_of(const emulator::Ranges& ranges, const void* address, uint64_t bytes, const emulator::Range** range) {
    const auto at = reinterpret_cast<uintptr_t>(address);
    *range = emulator::range_before(ranges, at);
    if (!*range || !(*range)->holds(at, bytes)) return Place::kUnknown;
    return (*range)->device == emulator::kHost ? Place::kPinned : Place::kCard;
}

void release(Driver& d, Card& card, Address address) {
    const auto found = card.allocations.find(address);
    const auto [bytes, mapped] = found->second;
    const bool small = bytes < kSmall;
    (small ? card.small_bytes : card.large_bytes) -= small ? rounded(bytes, 512) : rounded(bytes, kGranule);
    d.memory.remove(address);
    d.history.forget(address, address + bytes);
    conceal(address, mapped);
    card.released.emplace(mapped + kGap, address);
    card.allocations.erase(found);
}

bool touches_card(const Driver& d, const void* address, uint64_t bytes) {
    const auto at = reinterpret_cast<uintptr_t>(address);
    return std::any_of(d.cards.begin(), d.cards.end(), [&](const auto& card) {
        return at < card->space + card->space_bytes && at + bytes > card->space;
    });
}

}  // namespace tessera::cuda::emulated

using namespace tessera::cuda::emulated;
using tessera::cuda::emulator::kHost;
using tessera::cuda::emulator::Range;

TSR_EXPORT Result cuMemAlloc_v2(Address* made, size_t bytes) {
    Call call(Call::kWork | Call::kNoCapture);
    if (!call) return call.result;
    Driver& d = call.d;
    call.bytes = bytes;
    if (!made || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    Card& card = *call.context->card;
    const auto fault = card.faults.find("memory");
    if (fault != card.faults.end() && ++card.allocated == fault->second) return CUDA_ERROR_OUT_OF_MEMORY;
    const bool small = bytes < kSmall;
    const uint64_t taken = small ? rounded(bytes, 512) : rounded(bytes, kGranule);
    (small ? card.small_bytes : card.large_bytes) += taken;
    const uint64_t mapped = rounded(bytes, kPage);
    uintptr_t at = 0;
    if (bytes > card.description.memory || card.used() > card.description.memory ||
        (at = take_space(card, mapped + kGap)) == 0 || !poison(at, mapped)) {
        (small ? card.small_bytes : card.large_bytes) -= taken;
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    d.memory.add(at, bytes, static_cast<int>(card.number));
    card.allocations[at] = {bytes, mapped};
    *made = at;
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuMemFree_v2(Address address) {
    Call call(Call::kWork | Call::kNoCapture);
    if (!call) return call.result;
    Driver& d = call.d;
    if (address == 0) return CUDA_SUCCESS;
    wait_for_all(d, call.lock);
    for (const auto& card : d.cards) {
        const auto found = card->allocations.find(address);
        if (found == card->allocations.end()) continue;
        release(d, *card, address);
        return call.context->card->error;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

TSR_EXPORT Result cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
    const Call call(Call::kWork);
    if (!call) return call.result;
    if (!free_bytes || !total) return CUDA_ERROR_INVALID_VALUE;
    const Card& card = *call.context->card;
    *total = card.description.memory;
    *free_bytes = card.description.memory - std::min(card.used(), card.description.memory);
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuMemHostAlloc(void** made, size_t bytes, unsigned flags) {
    Call call(Call::kWork | Call::kNoCapture);
    if (!call) return call.result;
    Driver& d = call.d;
    call.bytes = bytes;
    if (!made || bytes == 0 || flags > 7) return CUDA_ERROR_INVALID_VALUE;
    if (bytes > (1ull << 46)) return CUDA_ERROR_OUT_OF_MEMORY;
    void* const memory =
        mmap(nullptr, rounded(bytes, kPage), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    std::memset(memory, 0xFF, bytes);
    const auto at = reinterpret_cast<uintptr_t>(memory);
    d.memory.add(at, bytes, kHost);
    d.pinned.insert(at);
    *made = memory;
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuMemFreeHost(void* memory) {
    Call call(Call::kWork | Call::kNoCapture);
    if (!call) return call.result;
    Driver& d = call.d;
    const auto at = reinterpret_cast<uintptr_t>(memory);
    if (!d.pinned.contains(at)) return CUDA_ERROR_INVALID_VALUE;
    wait_for_all(d, call.lock);
    d.pinned.erase(at);
    const Range removed = d.memory.remove(at);
    d.history.forget(at, at + removed.bytes);
    munmap(memory, rounded(removed.bytes, kPage));
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuMemHostRegister_v2(void* memory, size_t bytes, unsigned flags) {
    Call call(Call::kWork | Call::kNoCapture);
    if (!call) return call.result;
    Driver& d = call.d;
    call.bytes = bytes;
    if (!memory || bytes == 0 || flags > 15) return CUDA_ERROR_INVALID_VALUE;
    if (touches_card(d, memory, bytes)) return CUDA_ERROR_INVALID_VALUE;
    const auto at = reinterpret_cast<uintptr_t>(memory);
    if (!d.memory.add(at, bytes, kHost)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    d.registered[at] = bytes;
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuMemHostUnregister(void* memory) {
    Call call(Call::kWork | Call::kNoCapture);
    if (!call) return call.result;
    Driver& d = call.d;
    const auto at = reinterpret_cast<uintptr_t>(memory);
    if (!d.registered.contains(at)) return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    wait_for_all(d, call.lock);
    d.registered.erase(at);
    d.history.forget(at, at + d.memory.remove(at).bytes);
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuPointerGetAttribute(void* value, int which, Address address) {
    const Call call(Call::kContext);
    if (!call) return call.result;
    const Range* range = nullptr;
    const auto ranges = call.d.memory.ranges();
    const Place place = place_of(*ranges, reinterpret_cast<void*>(address), 1, &range);
    if (!value || place == Place::kUnknown) return CUDA_ERROR_INVALID_VALUE;
    constexpr int kMemoryType = 2, kOrdinal = 9;
    constexpr unsigned kTypeHost = 1, kTypeDevice = 2;
    if (which == kMemoryType) {
        *static_cast<unsigned*>(value) = place == Place::kPinned ? kTypeHost : kTypeDevice;
        return CUDA_SUCCESS;
    }
    if (which == kOrdinal) {
        *static_cast<int*>(value) = place == Place::kPinned ? 0 : range->device;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_SUPPORTED;
}

namespace {

// One side of a copy that lies on a card which `stream` reaches.
Result card_side(Driver& d, const Stream& stream, Address address, size_t bytes, bool any_card, Range& found) {
    const Range* range = nullptr;
    const auto ranges = d.memory.ranges();
    if (place_of(*ranges, reinterpret_cast<void*>(address), bytes, &range) != Place::kCard)
        return CUDA_ERROR_INVALID_VALUE;
    if (!any_card && !(stream.context.card->reach >> range->device & 1)) return CUDA_ERROR_INVALID_VALUE;
    found = *range;
    return CUDA_SUCCESS;
}

void mark(const Range& to, Address address, size_t bytes) {
    to.written->mark(address - to.begin, bytes);
}

std::shared_ptr<const std::string> name(const char* text) {
    return std::make_shared<const std::string>(text);
}

Result copy_up(Call& call, Address to, const void* from, size_t bytes) {
    if (!call) return call.result;
    Driver& d = call.d;
    Stream& stream = *call.stream;
    call.bytes = bytes;
    if (bytes == 0) return CUDA_SUCCESS;
    Range target;
    if (const Result result = card_side(d, stream, to, bytes, false, target); result != CUDA_SUCCESS) return result;
    if (!from || touches_card(d, from, bytes)) return CUDA_ERROR_INVALID_VALUE;
    const Range* source = nullptr;
    const auto ranges = d.memory.ranges();
    static const auto what = name("a copy from the host");
    Node node;
    node.kind = Node::kCopy;
    node.shape = {1, bytes};
    const auto begin = reinterpret_cast<uintptr_t>(from);
    if (place_of(*ranges, from, bytes, &source) == Place::kPinned) {
        node.host = const_cast<char*>(static_cast<const char*>(from));
        node.host_bytes = bytes;
        node.work = [=](const Execution& execution) -> Ended {
            std::memcpy(reinterpret_cast<void*>(to), from, bytes);
            mark(target, to, bytes);
            return note_accesses(execution, what, {{begin, begin + bytes, false}, {to, to + bytes, true}});
        };
    } else {
        if (stream.capture) {  // what a graph would read later is not known to stay
            invalidate(d, stream.capture);
            return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
        const auto* const first = static_cast<const char*>(from);
        auto staged = std::make_shared<std::vector<char>>(first, first + bytes);
        node.work = [=](const Execution& execution) -> Ended {
            std::memcpy(reinterpret_cast<void*>(to), staged->data(), bytes);
            mark(target, to, bytes);
            return note_accesses(execution, what, {{to, to + bytes, true}});
        };
    }
    return submit(d, stream, std::move(node));
}

Result copy_down(Call& call, void* to, Address from, size_t bytes) {
    if (!call) return call.result;
    Driver& d = call.d;
    Stream& stream = *call.stream;
    call.bytes = bytes;
    if (bytes == 0) return CUDA_SUCCESS;
    Range source;
    if (const Result result = card_side(d, stream, from, bytes, false, source); result != CUDA_SUCCESS) return result;
    if (!to || touches_card(d, to, bytes)) return CUDA_ERROR_INVALID_VALUE;
    const Range* target = nullptr;
    const auto ranges = d.memory.ranges();
    const bool pinned = place_of(*ranges, to, bytes, &target) == Place::kPinned;
    if (!pinned && stream.capture) {
        invalidate(d, stream.capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    static const auto what = name("a copy to the host");
    Node node;
    node.kind = Node::kCopy;
    node.shape = {2, bytes};
    if (pinned) {
        node.host = static_cast<char*>(to);
        node.host_bytes = bytes;
        node.to_host = true;
    }
    const auto begin = reinterpret_cast<uintptr_t>(to);
    node.work = [=](const Execution& execution) -> Ended {
        std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
        if (!pinned) return note_accesses(execution, what, {{from, from + bytes, false}});
        return note_accesses(execution, what, {{from, from + bytes, false}, {begin, begin + bytes, true}});
    };
    const Result result = submit(d, stream, std::move(node));
    return result != CUDA_SUCCESS || pinned ? result : wait_for(d, call.stream, call.lock);
}

Result copy_within(Call& call, Address to, Address from, size_t bytes, bool any_card) {
    if (!call) return call.result;
    Driver& d = call.d;
    Stream& stream = *call.stream;
    call.bytes = bytes;
    if (bytes == 0) return CUDA_SUCCESS;
    Range target, source;
    if (const Result result = card_side(d, stream, to, bytes, any_card, target); result != CUDA_SUCCESS) return result;
    if (const Result result = card_side(d, stream, from, bytes, any_card, source); result != CUDA_SUCCESS)
        return result;
    static const auto what = name("a copy between cards or within one");
    Node node;
    node.kind = Node::kCopy;
    node.shape = {3, bytes};
    node.work = [=](const Execution& execution) -> Ended {
        std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
        target.written->copy(to - target.begin, *source.written, from - source.begin, bytes);
        return note_accesses(execution, what, {{from, from + bytes, false}, {to, to + bytes, true}});
    };
    return submit(d, stream, std::move(node));
}

}  // namespace

TSR_EXPORT Result cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t bytes, void* stream) {
    Call call(Call::kWork, stream);
    return copy_up(call, to, from, bytes);
}

TSR_EXPORT Result cuMemcpyDtoHAsync_v2(void* to, Address from, size_t bytes, void* stream) {
    Call call(Call::kWork, stream);
    return copy_down(call, to, from, bytes);
}

TSR_EXPORT Result cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, void* stream) {
    Call call(Call::kWork, stream);
    return copy_within(call, to, from, bytes, false);
}

// Works for any two cards: through the host where they do not reach each other.
TSR_EXPORT Result cuMemcpyPeerAsync(Address to, void* to_context, Address from, void* from_context, size_t bytes,
                                    void* stream) {
    Call call(Call::kWork, stream);
    if (!to_context || !from_context) return CUDA_ERROR_INVALID_CONTEXT;
    return copy_within(call, to, from, bytes, true);
}

TSR_EXPORT Result cuMemsetD8Async(Address to, unsigned char value, size_t bytes, void* handle) {
    Call call(Call::kWork, handle);
    if (!call) return call.result;
    call.bytes = bytes;
    if (bytes == 0) return CUDA_SUCCESS;
    Range target;
    if (const Result result = card_side(call.d, *call.stream, to, bytes, false, target); result != CUDA_SUCCESS)
        return result;
    static const auto what = name("a memset");
    Node node;
    node.kind = Node::kSet;
    node.shape = {bytes};
    node.work = [=](const Execution& execution) -> Ended {
        std::memset(reinterpret_cast<void*>(to), value, bytes);
        mark(target, to, bytes);
        return note_accesses(execution, what, {{to, to + bytes, true}});
    };
    return submit(call.d, *call.stream, std::move(node));
}
