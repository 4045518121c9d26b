#include "history.hpp"

namespace tessera::cuda::emulated {
namespace {

bool ordered(const Moment& earlier, const Execution& now) {
    const Moment& me = now.moment;
    if (earlier.stream != me.stream) return reaches(*now.known, earlier.stream, earlier.index);
    if (earlier.index != me.index) return earlier.index < me.index;
    return earlier.node == me.node || !now.ancestors || now.ancestors->before(earlier.node, me.node);
}

}  // namespace

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

std::optional<Race> History::note(uintptr_t begin, uintptr_t end, bool written, const Execution& execution,
                                  const std::shared_ptr<const std::string>& what) {
    const auto before = [&](const Access& earlier) { return ordered(earlier.moment, execution); };
    std::optional<Race> race;
    accesses_.conflicts(begin, end, written, before, [&](const Access& other, bool with_write, uintptr_t address) {
        race = Race{other, with_write, address};
        return false;
    });
    if (!race) accesses_.note(begin, end, written, {execution.moment, what}, before);
    return race;
}

bool History::written_since(uintptr_t address, const VectorClock& host) const {
    const auto* const bytes = accesses_.find(address);
    return bytes && bytes->writer && !reaches(host, bytes->writer->moment.stream, bytes->writer->moment.index);
}

}  // namespace tessera::cuda::emulated
