#include "touches.hpp"

#include <algorithm>

namespace tessera::cuda::ptx {

void Touches::clear() {
    pages_.clear();
    recent_.fill(nullptr);
}

Touches::Page& Touches::page(uint64_t number) {
    Page*& recent = recent_[number % recent_.size()];
    if (!recent || recent->number != number) {
        recent = &pages_[number];
        recent->number = number;
    }
    if (recent->block != block_) {
        recent->block = block_;
        recent->own = {};
    }
    return *recent;
}

template <class Act>
bool Touches::for_words(uint64_t address, uint64_t bytes, Kind kind, const Act& act) {
    while (bytes > 0) {
        const uint64_t first = address % 64, part = std::min<uint64_t>(bytes, 64 - first);
        const uint64_t mask = (part == 64 ? ~0ull : (1ull << part) - 1) << first;
        Page& of = page(address / kPageBytes);
        const uint64_t word = address % kPageBytes / 64;
        if (act(of.bits[kind][word], of.own[kind][word], mask)) return true;
        address += part;
        bytes -= part;
    }
    return false;
}

void Touches::note(uint64_t address, uint64_t bytes, Kind kind) {
    for_words(address, bytes, kind, [](uint64_t& word, uint64_t& own, uint64_t mask) {
        word |= mask;
        own |= mask;
        return false;
    });
}

bool Touches::any(uint64_t address, uint64_t bytes, Kind kind) {
    return for_words(address, bytes, kind, [](uint64_t word, uint64_t, uint64_t mask) { return (word & mask) != 0; });
}

// What both touched counts as the block's own.
bool Touches::any_elsewhere(uint64_t address, uint64_t bytes, Kind kind) {
    return for_words(address, bytes, kind,
                     [](uint64_t word, uint64_t own, uint64_t mask) { return (word & ~own & mask) != 0; });
}

std::vector<emulator::Touched> Touches::collect() const {
    std::vector<const Page*> sorted;
    for (const auto& [number, page] : pages_) sorted.push_back(&page);
    std::sort(sorted.begin(), sorted.end(), [](const Page* a, const Page* b) { return a->number < b->number; });
    std::vector<emulator::Touched> touched;
    const auto add = [&](uintptr_t begin, uint64_t bytes, bool written) {
        if (!touched.empty() && touched.back().end == begin && touched.back().written == written)
            touched.back().end = begin + bytes;
        else
            touched.push_back({begin, begin + bytes, written});
    };
    for (const Page* const page : sorted) {
        for (uint64_t w = 0; w < kPageBytes / 64; ++w) {
            const uint64_t written = page->bits[kWritten][w] | page->bits[kAtomic][w];
            const uint64_t read = (page->bits[kRead][w] | page->bits[kReadOnly][w]) & ~written;
            const uintptr_t begin = page->number * kPageBytes + w * 64;
            for (uint64_t i = 0; i < 64;) {
                const bool is_written = (written >> i & 1) != 0, is_read = (read >> i & 1) != 0;
                const uint64_t bits = (is_written ? written : is_read ? read : ~(written | read)) >> i;
                const uint64_t run =
                    ~bits == 0 ? 64 - i : std::min<uint64_t>(64 - i, static_cast<uint64_t>(__builtin_ctzll(~bits)));
                if (is_written || is_read) add(begin + i, run, is_written);
                i += run;
            }
        }
    }
    return touched;
}

}  // namespace tessera::cuda::ptx
