// An answer that a process of its own holds to a grammar.
#pragma once

#include "apps/structure/channel.hpp"
#include "apps/structure/process_memory.hpp"
#include "apps/structure/shared_memory.hpp"
#include "core/base/error.hpp"
#include "core/session/token_constraint.hpp"
#include "core/text/tokenizer.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace tessera::structure {

class ForcedTokens;

// Kills the process that said on its channel that this is its number, if it still is there.
void end_process(const OpenFile& channel, int32_t process) noexcept;

class AnswerConstraint final : public session::TokenConstraint {
  public:
    // The process is about to begin.
    AnswerConstraint(OpenFile channel, SharedMemory mask, const text::Tokenizer& tokenizer,
                     std::shared_ptr<const ForcedTokens> forced, ProcessMemory::Share memory);
    // Ends the process where it is.
    ~AnswerConstraint() override;

    // Throws Error, and the same again in later calls: TSR_INVALID_ARGUMENT with the reason where the grammar allows
    // nothing more or exceeds a limit; TSR_IO_ERROR if the process has ended or hangs, or failed at something else;
    // TSR_DOES_NOT_FIT if it has more memory than its share, and all processes together have reached their limit.
    bool wait(std::chrono::steady_clock::time_point until) override;
    std::span<const int32_t> forced() override { return forced_; }
    session::TokenMask allowed() override { return mask_; }
    void accept(std::span<const int32_t> tokens) override;

  private:
    bool receive(std::chrono::steady_clock::time_point until);
    void take(std::string_view message);

    OpenFile channel_;
    const SharedMemory shared_;
    const text::Tokenizer& tokenizer_;
    const std::shared_ptr<const ForcedTokens> spelling_;
    ProcessMemory::Share memory_;
    int32_t process_ = 0;  // 0: not known yet
    bool known_ = false;
    std::optional<Error> fault_;  // for which the answer has failed
    std::chrono::steady_clock::time_point asked_;
    std::vector<uint32_t> mask_;  // what the process wrote, which it cannot change any more
    std::vector<int32_t> forced_;
};

}  // namespace tessera::structure
