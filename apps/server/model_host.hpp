// The model that is served: being loaded, ready, or failed.
#pragma once

#include "apps/server/model_text.hpp"
#include "core/session/kept/page_identity.hpp"
#include "core/session/service.hpp"
#include "core/setup/settings.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

namespace tessera::server {

// A loaded model. Constant but for the service, so any thread may use it.
struct ServedModel : ModelText {
    int64_t created = 0;                   // seconds since 1970, when it was loaded
    std::string path;                      // of the file
    std::optional<uint32_t> draft_tokens;  // of drafts at most; nothing: none are made
    session::PageIdentity pages;           // what its cached pages are of, where they are kept or saved
    std::string chat_template;             // the file's, or the name that was given instead
    std::unique_ptr<Engine> engine;
    std::unique_ptr<session::Service> service;  // before the engine in destruction
};

// Any thread.
class ModelHost {
  public:
    void progress(uint64_t done, uint64_t total);
    void ready(std::shared_ptr<const ServedModel> model);
    void failed(std::string message);
    // No requests any more.
    void drain();

    // Throws ApiError(503) while there is none.
    std::shared_ptr<const ServedModel> model() const;

    enum class State { kLoading, kReady, kFailed, kDraining };
    struct Health {
        State state;
        uint64_t loaded_bytes, total_bytes;  // while it loads; of 0 bytes nothing is known yet
        std::string message;
        unsigned seconds_left;           // at least 1; while it loads, as fast as so far
        double loaded() const noexcept;  // 0 to 1
    };
    Health health() const;
    // Without waiting or throwing; null while there is none.
    std::shared_ptr<const ServedModel> peek() const;

  private:
    mutable std::mutex mutex_;
    State state_ = State::kLoading;
    uint64_t done_ = 0, total_ = 0;
    const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
    double seconds_ = 0;  // from the start until done_
    std::string message_;
    std::shared_ptr<const ServedModel> model_;
};

}  // namespace tessera::server
