// Answers held to grammars, by llguidance in processes of its own (tessera-constrain).
#pragma once

#include "apps/structure/channel.hpp"
#include "apps/structure/process_memory.hpp"
#include "apps/structure/protocol.hpp"
#include "apps/structure/shared_memory.hpp"
#include "core/base/error.hpp"
#include "core/session/token_constraint.hpp"
#include "core/text/tokenizer.hpp"

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace tessera::structure {

class ForcedTokens;

// A grammar in one of llguidance's languages.
struct GrammarText {
    GrammarKind kind = GrammarKind::kLark;
    std::string text;
};

// A grammar that has been compiled. Any thread.
class Grammar {
  public:
    Grammar(OpenFile channel, int32_t process, const text::Tokenizer& tokenizer,
            std::shared_ptr<const ForcedTokens> forced, ProcessMemory::Share memory)
        : channel_(std::move(channel)),
          process_(process),
          tokenizer_(tokenizer),
          forced_(std::move(forced)),
          memory_(std::move(memory)) {}

    // Of an answer that begins; it waits for nothing. Throws Error(TSR_IO_ERROR) if the grammar's process has ended.
    std::unique_ptr<session::TokenConstraint> begin() const;

  private:
    const OpenFile channel_;
    const int32_t process_;
    const text::Tokenizer& tokenizer_;
    const std::shared_ptr<const ForcedTokens> forced_;
    const ProcessMemory::Share memory_;
};

// Any thread.
class Helper {
  public:
    // `tokenizer` outlives the helper and what it makes. `library`: llguidance's; nothing: the one that was installed
    // with this program. Starts nothing.
    explicit Helper(const text::Tokenizer& tokenizer, const std::optional<std::filesystem::path>& library = {});
    // As above, with a program and a library other than those beside this program.
    // `most_memory`: bytes of all processes together.
    Helper(const text::Tokenizer& tokenizer, std::filesystem::path program, std::filesystem::path library,
           uint64_t most_memory = ProcessMemory::kMost);
    ~Helper();
    Helper(const Helper&) = delete;
    Helper& operator=(const Helper&) = delete;

    // Why there is nothing to compile grammars with: the library or the program is missing. Empty: there is.
    std::string missing() const;

    // Starts the helper once and ends it. Returns why it does not work, as missing() or with what the library lacks;
    // empty: grammars can be compiled. Takes as long as reading the vocabulary.
    std::string check();

    // Throws Error: TSR_NOT_FOUND as missing() says, and where the library cannot be loaded; TSR_DOES_NOT_FIT while
    // other grammars and answers have the memory that all may have together; TSR_INVALID_ARGUMENT with the reason for a
    // grammar that is not understood, cannot be held to, or takes too long or too much memory; TSR_IO_ERROR where the
    // helper cannot be started or does not answer.
    std::shared_ptr<const Grammar> compile(const GrammarText& grammar);

  private:
    void start();
    void stop() noexcept;
    std::shared_ptr<const Grammar> try_compile(const GrammarText& grammar, bool& hangs);

    const text::Tokenizer& tokenizer_;
    const std::filesystem::path program_, library_;
    const std::shared_ptr<ProcessMemory> memory_;
    std::mutex mutex_;  // of all below
    OpenFile channel_;
    pid_t process_ = -1;
    std::shared_ptr<const ForcedTokens> forced_;
};

}  // namespace tessera::structure
