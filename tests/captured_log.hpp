// What is logged while it lives.
#pragma once

#include "core/base/log.hpp"

#include <spdlog/sinks/ostream_sink.h>

#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace tessera {

class CapturedLog {
  public:
    CapturedLog() : sink_(std::make_shared<spdlog::sinks::ostream_sink_mt>(text_)) {
        before_ = log().sinks();
        log().sinks() = {sink_};
    }
    ~CapturedLog() { log().sinks() = before_; }
    CapturedLog(const CapturedLog&) = delete;
    CapturedLog& operator=(const CapturedLog&) = delete;

    std::string text() {
        log().flush();
        return text_.str();
    }

  private:
    std::ostringstream text_;
    std::shared_ptr<spdlog::sinks::sink> sink_;
    std::vector<spdlog::sink_ptr> before_;
};

}  // namespace tessera
