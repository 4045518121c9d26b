#include "core/session/kept/slot_moves.hpp"

#include "core/base/error.hpp"
#include "core/session/kept/slot_file.hpp"

#include <chrono>
#include <exception>
#include <future>
#include <optional>
#include <vector>

namespace tessera::session {
namespace {

constexpr uint64_t kMovedAtOnce = 32 << 20;
constexpr std::chrono::seconds kRemoving(5);

}  // namespace

MovedSlot save_slot(Service& service, const PageIdentity& identity, const std::filesystem::path& path,
                    const std::string& space, uint32_t slot) {
    Slots::Opened opened;
    service.between_steps([&](Generator& generator) { opened = generator.slots().open(space, slot); });
    const auto close = [&] { service.between_steps([&](Generator& generator) { generator.slots().close(opened); }); };
    MovedSlot moved{static_cast<uint32_t>(opened.tokens.size()), 0};
    try {
        SlotWriter writer(path, identity, moved.tokens, static_cast<uint32_t>(opened.parts.size()));
        SlotPage last;
        for (size_t part = 0; part < opened.parts.size();) {
            std::vector<SlotPage> pages;
            service.between_steps([&](Generator& generator) {
                for (uint64_t bytes = 0; part < opened.parts.size() && bytes < kMovedAtOnce; ++part) {
                    generator.slots().copy(opened, part, last);
                    bytes += last.bytes.size();
                    pages.push_back(last);
                }
            });
            for (SlotPage& page : pages) writer.add(page);
        }
        moved.bytes = writer.finish();
    } catch (...) {
        try {
            close();
        } catch (const Error&) {
            // The service has ended, and its pages with it.
        }
        throw;
    }
    close();
    return moved;
}

MovedSlot restore_slot(Service& service, const PageIdentity& identity, std::span<const uint64_t> page_bytes,
                       const std::filesystem::path& path, const std::string& space, uint32_t slot) {
    if (std::filesystem::is_symlink(path)) fail(TSR_INVALID_ARGUMENT, "{}: it is a symbolic link", path.string());
    const File file(path);
    const gguf::FileSource source(file);
    SlotReader reader(source, identity, page_bytes);
    Slots::Restored restored;
    try {
        for (bool more = true; more;) {
            std::vector<SlotPage> pages;
            for (uint64_t bytes = 0; bytes < kMovedAtOnce; bytes += pages.back().bytes.size()) {
                more = reader.next(pages.emplace_back());
                if (!more) {
                    pages.pop_back();
                    break;
                }
            }
            service.between_steps([&](Generator& generator) {
                for (const SlotPage& page : pages) generator.slots().add(restored, page);
                if (!more) generator.slots().finish(restored, space, slot);
            });
        }
    } catch (...) {
        try {
            service.between_steps([&](Generator& generator) { generator.slots().give_up(restored); });
        } catch (const Error&) {
            // The service has ended, and its pages with it.
        }
        throw;
    }
    return {reader.tokens(), file.size()};
}

uint32_t erase_slot(Service& service, const std::string& space, uint32_t slot) {
    Slots::Erased erased;
    service.between_steps([&](Generator& generator) { erased = generator.erase_slot(space, slot); });
    const auto until = std::chrono::steady_clock::now() + kRemoving;
    for (const std::shared_future<void>& files : erased.files) {
        if (files.wait_until(until) != std::future_status::ready)
            fail(TSR_IO_ERROR, "it is forgotten, but its files could not be removed yet: the disk does not answer");
    }
    try {
        for (const std::shared_future<void>& files : erased.files) files.get();
    } catch (const std::exception&) {
        // The writer has logged it, with the folder's path, which is not for clients.
        fail(TSR_IO_ERROR, "it is forgotten, but files of it are left, which the next start finds: see the log");
    }
    return erased.tokens;
}

}  // namespace tessera::session
