// What is logged while it lives.
#pragma once

#include "core/base/log.hpp"

#include <spdlog/sinks/base_sink.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace tessera {

// It outlives threads that may log; they go on with what they do while it is asked.
class CapturedLog {
  public:
    CapturedLog() : before_(log().sinks()) { log().sinks() = {sink_}; }
    ~CapturedLog() { log().sinks() = before_; }
    CapturedLog(const CapturedLog&) = delete;
    CapturedLog& operator=(const CapturedLog&) = delete;

    std::string text() const { return sink_->text(); }

  private:
    class Sink final : public spdlog::sinks::base_sink<std::mutex> {
      public:
        std::string text() const {
            const std::scoped_lock lock(own_);
            return text_;
        }

      private:
        void sink_it_(const spdlog::details::log_msg& message) override {
            spdlog::memory_buf_t line;
            formatter_->format(message, line);
            const std::scoped_lock lock(own_);
            text_.append(line.data(), line.size());
        }
        void flush_() override {}

        mutable std::mutex own_;  // ThreadSanitizer does not see what the library locks
        std::string text_;
    };

    const std::shared_ptr<Sink> sink_ = std::make_shared<Sink>();
    const std::vector<spdlog::sink_ptr> before_;
};

}  // namespace tessera
