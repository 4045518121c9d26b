#include "apps/structure/helper.hpp"

#include "apps/structure/answer_constraint.hpp"
#include "apps/structure/forced_tokens.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <utility>
#include <vector>

namespace tessera::structure {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// The helper limits its processor time by itself; these are for one that hangs, or a machine that is busy.
constexpr std::chrono::seconds kStartTime(30), kForkTime(5), kCompileTime(5);

fs::path beside_program(const fs::path& path) {
    std::error_code error;
    const fs::path executable = fs::read_symlink("/proc/self/exe", error);
    return (executable.parent_path() / path).lexically_normal();
}

[[noreturn]] void no_place() {
    fail(TSR_DOES_NOT_FIT,
         "grammars and answers that are held to them have all memory that they may have together; try "
         "again when some have ended");
}

SharedMemory vocabulary_file(const text::Tokenizer& tokenizer) {
    const auto size = static_cast<text::Token>(tokenizer.size());
    std::vector<uint32_t> lengths;
    std::string bytes;
    for (text::Token token = 0; token < size; ++token) {
        const text::TokenType type = tokenizer.type(token);
        const bool is_text =
            type == text::TokenType::kNormal || type == text::TokenType::kByte || type == text::TokenType::kUserDefined;
        const std::string_view spelt = tokenizer.bytes(token);
        std::string each(spelt);
        // What ends a text is none of it; an empty token would be allowed for ever.
        if (!is_text || spelt.empty() || tokenizer.ends_generation(token)) each = "\xff<" + std::to_string(token) + ">";
        lengths.push_back(static_cast<uint32_t>(each.size()));
        bytes += each;
    }
    std::vector<text::Token> ends = tokenizer.generation_ends();
    if (ends.empty()) fail(TSR_UNSUPPORTED, "the vocabulary has no token that ends an answer");
    const VocabularyHeader header{lengths.size(), ends.size(), bytes.size()};
    SharedMemory file("tessera-vocabulary", sizeof header + 4 * (lengths.size() + ends.size()) + bytes.size());
    std::byte* at = file.bytes().data();
    const auto put = [&at](const void* data, size_t count) {
        if (count > 0) std::memcpy(at, data, count);
        at += count;
    };
    put(&header, sizeof header);
    put(lengths.data(), 4 * lengths.size());
    put(ends.data(), 4 * ends.size());
    put(bytes.data(), bytes.size());
    return file;
}

}  // namespace

Helper::Helper(const text::Tokenizer& tokenizer, const std::optional<fs::path>& library)
    : Helper(tokenizer, beside_program("tessera-constrain"),
             library ? fs::absolute(*library) : beside_program(TSR_STRUCTURED_LIBRARY)) {}

Helper::Helper(const text::Tokenizer& tokenizer, fs::path program, fs::path library, uint64_t most_memory)
    : tokenizer_(tokenizer),
      program_(std::move(program)),
      library_(std::move(library)),
      memory_(std::make_shared<ProcessMemory>(most_memory)) {}

Helper::~Helper() {
    stop();
}

std::string Helper::missing() const {
    std::error_code error;
    if (!fs::exists(library_, error)) return library_.string() + " is missing";
    if (!fs::exists(program_, error)) return program_.string() + " is missing";
    return {};
}

std::string Helper::check() {
    if (std::string fault = missing(); !fault.empty()) return fault;
    const std::scoped_lock lock(mutex_);
    if (process_ >= 0) return {};
    try {
        start();
        stop();
        return {};
    } catch (const Error& error) {
        return error.what();
    }
}

// With mutex_ held.
void Helper::start() {
    auto [mine, theirs] = make_channel();
    const SharedMemory vocabulary = vocabulary_file(tokenizer_);
    if (!forced_) forced_ = std::make_shared<const ForcedTokens>(tokenizer_);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    // Where both are the same number, this makes the file one that is inherited. First, as its number may be one of
    // those below, where this program was started without such files.
    posix_spawn_file_actions_adddup2(&actions, theirs.number(), kChannelNumber);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    std::string program = program_.string(), library = library_.string();
    char* const words[] = {program.data(), library.data(), nullptr};
    pid_t process = -1;
    const int error = posix_spawn(&process, program.c_str(), &actions, nullptr, words, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) fail(TSR_IO_ERROR, "cannot start {}: {}", program, std::strerror(error));
    process_ = process;
    channel_ = std::move(mine);
    theirs = {};
    try {
        try {
            send_message(channel_, message_of({.word = Word::kVocabulary}), {vocabulary.file().number()});
        } catch (const Error&) {
            // It has ended, and may have said why.
        }
        Message message;
        const Received received = receive_message(channel_, message, Clock::now() + kStartTime);
        if (received == Received::kNothingYet) fail(TSR_IO_ERROR, "{} does not answer", program);
        if (received == Received::kClosed) fail(TSR_IO_ERROR, "{} ended at once", program);
        const auto header = header_of(message.bytes);
        if (header && header->word == Word::kMissing) fail(TSR_NOT_FOUND, "{}", text_of(message.bytes));
        if (!header || header->word != Word::kReady)
            fail(TSR_IO_ERROR, "{} does not work: {}", program, header ? text_of(message.bytes) : "it says nothing");
    } catch (...) {
        stop();
        throw;
    }
}

// With mutex_ held, or in the destructor.
void Helper::stop() noexcept {
    channel_ = {};
    if (process_ < 0) return;
    kill(process_, SIGKILL);
    while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
    process_ = -1;
}

std::shared_ptr<const Grammar> Helper::compile(const GrammarText& grammar) {
    if (const std::string fault = missing(); !fault.empty()) fail(TSR_NOT_FOUND, "{}", fault);
    if (grammar.text.size() > kMostGrammarBytes)
        fail(TSR_INVALID_ARGUMENT, "it has {} bytes; at most {} are accepted", grammar.text.size(), kMostGrammarBytes);
    if (grammar.text.find('\0') != std::string::npos) fail(TSR_INVALID_ARGUMENT, "it has a character U+0000");
    for (const bool last : {false, true}) {
        bool hangs = false;
        if (auto made = try_compile(grammar, hangs)) return made;
        if (last || !hangs) break;
    }
    fail(TSR_IO_ERROR, "{} does not answer, though it was started again", program_.string());
}

// Null with `hangs`: the first process does not work any more, and has been ended.
std::shared_ptr<const Grammar> Helper::try_compile(const GrammarText& grammar, bool& hangs) {
    if (memory_->has_no_place()) no_place();
    ProcessMemory::Share memory(memory_);
    auto [mine, theirs] = make_channel();
    const SharedMemory text("tessera-grammar", grammar.text.size());
    std::memcpy(text.bytes().data(), grammar.text.data(), grammar.text.size());
    Message message;
    std::shared_ptr<const ForcedTokens> forced;
    {
        const std::scoped_lock lock(mutex_);
        if (process_ < 0) start();
        forced = forced_;
        Received received = Received::kClosed;
        try {
            send_message(channel_, message_of({.word = Word::kGrammar, .kind = grammar.kind}),
                         {theirs.number(), text.file().number()});
            theirs = {};
            received = receive_message(mine, message, Clock::now() + kForkTime);
        } catch (const Error&) {
            // It is gone, as one that is closed.
        }
        if (received != Received::kMessage) {
            stop();
            hangs = true;
            return nullptr;
        }
    }
    auto header = header_of(message.bytes);
    // Before its process begins nothing is the grammar's fault.
    if (!header || header->word != Word::kStarted)
        fail(TSR_IO_ERROR, "{} does not work: {}", program_.string(),
             header ? text_of(message.bytes) : "it says nothing");
    const int32_t process = header->process;
    const Received received = receive_message(mine, message, Clock::now() + kCompileTime);
    if (received == Received::kNothingYet) end_process(mine, process);
    if (received != Received::kMessage) fail(TSR_INVALID_ARGUMENT, "it takes too long, or llguidance failed at it");
    header = header_of(message.bytes);
    if (!header || header->word != Word::kReady) {
        const bool failed = header && header->word == Word::kFailed;
        fail(failed ? TSR_IO_ERROR : TSR_INVALID_ARGUMENT, "{}",
             header ? text_of(message.bytes) : "llguidance failed at it");
    }
    memory.set(header->bytes);
    if (memory_->full()) no_place();
    return std::make_shared<const Grammar>(std::move(mine), process, tokenizer_, std::move(forced), std::move(memory));
}

std::unique_ptr<session::TokenConstraint> Grammar::begin() const {
    auto [mine, theirs] = make_channel();
    SharedMemory mask("tessera-mask", (tokenizer_.size() + 31) / 32 * 4);
    try {
        send_message(channel_, message_of({.word = Word::kAnswer}), {theirs.number(), mask.file().number()});
    } catch (const Error&) {
        fail(TSR_IO_ERROR, "the process that held the answer to its grammar has ended");
    }
    return std::make_unique<AnswerConstraint>(std::move(mine), std::move(mask), tokenizer_, forced_,
                                              ProcessMemory::Share(memory_.of()));
}

}  // namespace tessera::structure
