#include "core/gguf/source.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <algorithm>

namespace tessera::gguf {

std::string FileSource::name() const {
    return printable(file_.path().native(), 4096);
}

void MemorySource::read(uint64_t offset, std::span<std::byte> out) const {
    if (offset > size_ || out.size() > size_ - offset) {
        fail(TSR_INTERNAL, "{}: {} bytes at {} asked of {}", name_, out.size(), offset, size_);
    }
    const auto there = bytes_.subspan(std::min<uint64_t>(offset, bytes_.size()));
    const auto copied = there.first(std::min(there.size(), out.size()));
    std::ranges::copy(copied, out.begin());
    std::ranges::fill(out.subspan(copied.size()), std::byte{0});
}

}  // namespace tessera::gguf
