#include "history.hpp"

#include <algorithm>

namespace tessera::cuda::emulated {
namespace {

bool same(const Moment& a, const Moment& b) {
    return a.stream == b.stream && a.index == b.index && a.node == b.node;
}

bool ordered(const Moment& earlier, const Execution& now) {
    const Moment& me = now.moment;
    if (earlier.stream != me.stream)
        return earlier.stream < now.known->size() && (*now.known)[earlier.stream] >= earlier.index;
    if (earlier.index != me.index) return earlier.index < me.index;
    return earlier.node == me.node || !now.ancestors || now.ancestors->before(earlier.node, me.node);
}

}  // namespace

void join(Clock& to, const Clock& from) {
    if (to.size() < from.size()) to.resize(from.size());
    for (size_t i = 0; i < from.size(); ++i) to[i] = std::max(to[i], from[i]);
}

Ancestors::Ancestors(const std::vector<std::vector<size_t>>& after)
    : words_((after.size() + 63) / 64), bits_(words_ * after.size()) {
    for (size_t i = 0; i < after.size(); ++i) {
        uint64_t* const row = &bits_[i * words_];
        for (const size_t before : after[i]) {
            for (size_t w = 0; w < words_; ++w) row[w] |= bits_[before * words_ + w];
            row[before / 64] |= uint64_t{1} << before % 64;
        }
    }
}

std::string describe(const Access& access) {
    return *access.what + " on stream " + std::to_string(access.moment.stream) + " of card " +
           std::to_string(access.moment.card);
}

History::Entries::iterator History::first_over(uintptr_t address) {
    auto at = entries_.upper_bound(address);
    if (at != entries_.begin() && std::prev(at)->second.end > address) --at;
    return at;
}

void History::split(uintptr_t at) {
    const auto over = first_over(at);
    if (over == entries_.end() || over->first >= at) return;
    Entry upper = over->second;
    over->second.end = at;
    entries_.emplace(at, std::move(upper));
}

// Neighbours in [begin, end], and those at its ends, that do not differ become one.
void History::merge(uintptr_t begin, uintptr_t end) {
    const auto equal = [](const Entry& a, const Entry& b) {
        if (a.writer.has_value() != b.writer.has_value() || a.readers.size() != b.readers.size()) return false;
        if (a.writer && !same(a.writer->moment, b.writer->moment)) return false;
        return std::equal(a.readers.begin(), a.readers.end(), b.readers.begin(),
                          [](const Access& x, const Access& y) { return same(x.moment, y.moment); });
    };
    auto at = first_over(begin);
    if (at != entries_.begin()) --at;
    while (at != entries_.end() && at->first <= end) {
        const auto next = std::next(at);
        if (next == entries_.end()) return;
        if (at->second.end == next->first && equal(at->second, next->second)) {
            at->second.end = next->second.end;
            entries_.erase(next);
        } else {
            at = next;
        }
    }
}

std::optional<Race> History::note(uintptr_t begin, uintptr_t end, bool written, const Execution& execution,
                                  const std::shared_ptr<const std::string>& what) {
    for (auto at = first_over(begin); at != entries_.end() && at->first < end; ++at) {
        const Entry& entry = at->second;
        const uintptr_t first = std::max(begin, at->first);
        if (entry.writer && !ordered(entry.writer->moment, execution)) return Race{*entry.writer, true, first};
        for (const Access& reader : entry.readers) {
            if (written && !ordered(reader.moment, execution)) return Race{reader, false, first};
        }
    }
    split(begin);
    split(end);
    const Access me{execution.moment, what};
    auto at = entries_.lower_bound(begin);
    if (written) {
        while (at != entries_.end() && at->first < end) at = entries_.erase(at);
        entries_.emplace(begin, Entry{end, me, {}});
    } else {
        uintptr_t done = begin;
        for (; done < end; done = at->second.end, ++at) {
            if (at == entries_.end() || at->first > done)
                at = entries_.emplace(done, Entry{at == entries_.end() ? end : std::min(end, at->first), {}, {}}).first;
            auto& readers = at->second.readers;
            std::erase_if(readers, [&](const Access& r) { return ordered(r.moment, execution); });
            readers.push_back(me);
        }
    }
    merge(begin, end);
    return std::nullopt;
}

void History::forget(uintptr_t begin, uintptr_t end) {
    split(begin);
    split(end);
    entries_.erase(entries_.lower_bound(begin), entries_.lower_bound(end));
}

bool History::written_since(uintptr_t address, const Clock& host) const {
    auto at = entries_.upper_bound(address);
    if (at == entries_.begin()) return false;
    const Entry& entry = (--at)->second;
    if (entry.end <= address || !entry.writer) return false;
    const Moment& writer = entry.writer->moment;
    return writer.stream >= host.size() || host[writer.stream] < writer.index;
}

}  // namespace tessera::cuda::emulated
