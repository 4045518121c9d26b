// The folder of kept pages (--cache-dir), whose disk may not answer.
#pragma once

#include "apps/server/settings.hpp"
#include "core/session/kept/page_store.hpp"
#include "core/session/service.hpp"
#include "core/setup/loading.hpp"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace tessera::server {

// A thread of its own opens it, which others wait for no longer than a moment: where its disk is silent the model is
// served without it, and its pages come when it answers. A folder that cannot be used costs what it would have kept,
// and no more. What becomes of it is said. One thread calls this.
class KeptFolder {
  public:
    // `say` outlives this; threads call it, one at a time.
    explicit KeptFolder(const LineSink& say) : say_(say) {}
    // Waits for no disk; whoever still opens it is left behind, and closes it.
    ~KeptFolder() = default;
    KeptFolder(const KeptFolder&) = delete;
    KeptFolder& operator=(const KeptFolder&) = delete;

    // What the settings say of it, for such pages. Null: it cannot be used, or comes_later(). Throws
    // Error(TSR_CANCELLED) soon after `stopping` has become true.
    std::shared_ptr<session::PageStore> open(const ServerSettings& settings, const session::PageIdentity& identity,
                                             std::vector<uint64_t> page_bytes, const std::atomic<bool>& stopping);
    bool comes_later() const { return opened_.valid(); }
    // Where it does: gives it to the service, whose run() is about to begin and has ended, or been told to, before the
    // end of this.
    void give_later(session::Service& service);

  private:
    struct Opened {
        std::shared_ptr<session::PageStore> store;
        std::vector<std::string> notes;
    };
    std::shared_ptr<session::PageStore> take();

    const LineSink& say_;
    std::filesystem::path folder_;
    uint64_t limit_bytes_ = 0;
    std::future<Opened> opened_;
    std::jthread giver_;
};

}  // namespace tessera::server
