#include "apps/structure/answer_constraint.hpp"

#include "apps/structure/forced_tokens.hpp"
#include "apps/structure/protocol.hpp"

#include <poll.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <utility>

namespace tessera::structure {
namespace {

using Clock = std::chrono::steady_clock;

// The process limits the processor time of a mask by itself; this is for one that hangs, or a machine that is busy.
constexpr std::chrono::seconds kMaskTime(5);

// That an answer may have whatever others have.
constexpr uint64_t kOwnMemory = 32 << 20;

}  // namespace

void end_process(const OpenFile& channel, int32_t process) noexcept {
    // While its end is open the number is still that of the process.
    pollfd poll{channel.number(), 0, 0};
    if (process <= 1 || ::poll(&poll, 1, 0) < 0 || (poll.revents & (POLLHUP | POLLERR | POLLNVAL))) return;
    kill(process, SIGKILL);
}

AnswerConstraint::AnswerConstraint(OpenFile channel, SharedMemory mask, const text::Tokenizer& tokenizer,
                                   std::shared_ptr<const ForcedTokens> forced, ProcessMemory::Share memory)
    : channel_(std::move(channel)),
      shared_(std::move(mask)),
      tokenizer_(tokenizer),
      spelling_(std::move(forced)),
      memory_(std::move(memory)),
      asked_(Clock::now()),
      mask_(shared_.bytes().size() / 4) {}

AnswerConstraint::~AnswerConstraint() {
    // It may be at work, or hang.
    end_process(channel_, process_);
}

bool AnswerConstraint::wait(Clock::time_point until) {
    if (fault_) throw Error(*fault_);
    try {
        return receive(until);
    } catch (const Error& error) {
        // A message is received once, and who asks again has to hear of it, too.
        fault_ = error;
        throw;
    }
}

bool AnswerConstraint::receive(Clock::time_point until) {
    while (!known_) {
        Message message;
        switch (receive_message(channel_, message, until)) {
            case Received::kMessage:
                take(message.bytes);
                break;
            case Received::kClosed:
                fail(TSR_IO_ERROR, "the process that held the answer to its grammar has ended");
            case Received::kNothingYet:
                if (Clock::now() - asked_ < kMaskTime) return false;
                end_process(channel_, process_);
                fail(TSR_IO_ERROR, "the process that held the answer to its grammar did not answer for {} s",
                     kMaskTime.count());
        }
    }
    return true;
}

void AnswerConstraint::take(std::string_view message) {
    const auto header = header_of(message);
    if (!header) fail(TSR_CORRUPT_DATA, "the process that holds the answer to its grammar says nothing");
    const std::string_view text = text_of(message);
    switch (header->word) {
        case Word::kStarted:
            process_ = header->process;
            return;
        case Word::kMask:
            break;
        case Word::kRefused:
            fail(TSR_INVALID_ARGUMENT, "the grammar or schema cannot be enforced in the rest of the answer: {}", text);
        default:
            fail(TSR_IO_ERROR, "the process that enforces the answer's grammar failed: {}", text);
    }
    memory_.set(header->bytes);
    if (header->bytes > kOwnMemory && memory_.of()->full()) {
        end_process(channel_, process_);
        fail(TSR_DOES_NOT_FIT,
             "answers that are held to grammars have all memory that they may have together, and this "
             "one has {} MiB",
             header->bytes >> 20);
    }
    std::memcpy(mask_.data(), shared_.bytes().data(), shared_.bytes().size());
    forced_.clear();
    if (text.size() <= kMostForcedBytes) forced_ = spelling_->of(text);
    const int32_t only = header->only_token;
    if (forced_.empty() && only >= 0 && static_cast<size_t>(only) < tokenizer_.size()) forced_ = {only};
    // Only what the mask allows is taken without sampling.
    if (!forced_.empty()) {
        const auto first = static_cast<size_t>(forced_.front());
        if (first / 32 >= mask_.size() || !(mask_[first / 32] >> first % 32 & 1)) forced_.clear();
    }
    known_ = true;
}

void AnswerConstraint::accept(std::span<const int32_t> tokens) {
    known_ = false;
    asked_ = Clock::now();
    const std::string_view bytes(reinterpret_cast<const char*>(tokens.data()), tokens.size_bytes());
    try {
        // After a token that ends the text nothing is asked for.
        if (tokenizer_.ends_generation(tokens.back())) return;
        send_message(channel_, message_of({.word = Word::kAccept}, bytes));
    } catch (const Error&) {
        // wait() finds out why.
    }
}

}  // namespace tessera::structure
