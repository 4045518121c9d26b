#include "apps/server/kept_folder.hpp"

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"

#include <spdlog/fmt/fmt.h>

#include <chrono>
#include <exception>
#include <stop_token>
#include <utility>

namespace tessera::server {
namespace {

constexpr std::chrono::seconds kPatience(3);      // until the model is served without the folder
constexpr std::chrono::milliseconds kPause(100);  // until it is asked again whether all is to end

}  // namespace

std::shared_ptr<session::PageStore> KeptFolder::open(const ServerSettings& settings,
                                                     const session::PageIdentity& identity,
                                                     std::vector<uint64_t> page_bytes,
                                                     const std::atomic<bool>& stopping) {
    if (!settings.cache_dir) return nullptr;
    folder_ = *settings.cache_dir;
    limit_bytes_ = settings.cache_dir_bytes;
    std::packaged_task<Opened()> task(
        [folder = folder_, limit = limit_bytes_, identity, page_bytes = std::move(page_bytes)] {
            Opened opened;
            opened.store = std::make_shared<session::PageStore>(folder, limit, identity, page_bytes, opened.notes);
            return opened;
        });
    opened_ = task.get_future();
    std::thread(std::move(task)).detach();
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (opened_.wait_for(kPause) != std::future_status::ready) {
        if (stopping) fail(TSR_CANCELLED, "a signal ended loading");
        if (std::chrono::steady_clock::now() < until) continue;
        log().warn("the folder {} has not answered in {} s: no pages of the cache are read or kept until it has",
                   folder_.string(), kPatience.count());
        return nullptr;
    }
    return take();
}

// What has been opened; null: it cannot be used.
std::shared_ptr<session::PageStore> KeptFolder::take() {
    try {
        Opened opened = opened_.get();
        for (const std::string& note : opened.notes) say_(note);
        const session::PageStoreStatus status = opened.store->status();
        say_(fmt::format("pages of the cache are kept in {}, at most {}: {} of earlier runs ({})", folder_.string(),
                         size_text(limit_bytes_), status.pages, size_text(status.bytes)));
        return std::move(opened.store);
    } catch (const std::exception& error) {
        log().warn("no pages of the cache are kept: {}", error.what());
        return nullptr;
    }
}

void KeptFolder::give_later(session::Service& service) {
    if (!comes_later()) return;
    giver_ = std::jthread([this, &service](const std::stop_token& end) {
        while (opened_.wait_for(kPause) != std::future_status::ready) {
            if (end.stop_requested()) return;
        }
        try {
            const std::shared_ptr<session::PageStore> store = take();
            service.between_steps([&](session::Generator& generator) { generator.keep_in(store); });
        } catch (const std::exception& error) {
            if (!end.stop_requested()) log().warn("no pages of the cache are kept: {}", error.what());
        }
    });
}

}  // namespace tessera::server
