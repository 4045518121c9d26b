// tessera-constrain: finds which tokens an answer may go on with. Started by other programs of the project, which speak
// to it as apps/structure/protocol.hpp says; its argument is the library of llguidance.
#include "apps/constrain/limits.hpp"
#include "apps/constrain/matcher.hpp"
#include "apps/structure/protocol.hpp"
#include "core/base/error.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace tessera;
using namespace tessera::constrain;
using namespace tessera::structure;

// Of a grammar's compilation and of one mask. A program waits longer for them, as the machine may be busy.
constexpr std::chrono::milliseconds kCompileTime(700), kMaskTime(500);
constexpr uint64_t kMemory = 512 << 20;

// Files of the parent that are not the child's would keep its channels open.
void close_others(int kept) {
    if (kept > kChannelNumber) close_range(kChannelNumber, static_cast<unsigned>(kept) - 1, 0);
    close_range(static_cast<unsigned>(std::max(kept, kChannelNumber - 1)) + 1, ~0u, 0);
}

void say(const OpenFile& channel, Word word, std::string_view text = {}, uint64_t bytes = 0, int32_t only_token = -1) {
    send_message(channel,
                 message_of({.word = word, .process = getpid(), .only_token = only_token, .bytes = bytes}, text));
}

// Calls `work` in a new process, which ends with it, and tells what it throws. False: there is none.
template <typename Work>
bool in_child(const OpenFile& channel, const Work& work) {
    const pid_t child = fork();
    if (child != 0) return child > 0;
    const auto say_last = [&](Word word, const std::string& text) {
        try {
            say(channel, word, text);
        } catch (const std::exception&) {
            // The program has closed its end.
        }
        _exit(1);
    };
    try {
        close_others(channel.number());
        limit_memory(kMemory, channel);
        say(channel, Word::kStarted);
        work();
    } catch (const Error& error) {
        if (error.code() == TSR_INVALID_ARGUMENT) say_last(Word::kRefused, std::string(error.what()) + "; simplify it");
        say_last(Word::kFailed, error.what());
    } catch (const std::bad_alloc&) {
        say_last(Word::kRefused, out_of_memory(kMemory));
    } catch (const std::exception& error) {
        say_last(Word::kFailed, error.what());
    }
    _exit(0);
}

// One answer: a mask at its beginning, and one behind all tokens of each message.
void run_answer(const OpenFile& channel, Matcher& matcher, const SharedMemory& memory) {
    const std::span<std::byte> bytes = memory.bytes();
    const std::span<uint32_t> mask(reinterpret_cast<uint32_t*>(bytes.data()), bytes.size() / 4);
    Growth growth;
    Message message;
    do {
        const TimeLimit limit(kMaskTime, "finding the tokens that may come next");
        if (!message.bytes.empty()) {
            const std::string_view text = text_of(message.bytes);
            std::vector<uint32_t> tokens(text.size() / 4);
            std::memcpy(tokens.data(), text.data(), 4 * tokens.size());
            matcher.accept(tokens);
        }
        matcher.fill_mask(mask);
        const Matcher::Forced forced = matcher.find_forced(mask);
        say(channel, Word::kMask, forced.bytes, growth.bytes(), forced.only_token);
    } while (receive_message(channel, message) == Received::kMessage && header_of(message.bytes));
}

void run_grammar(const OpenFile& channel, const Llguidance& library, const Vocabulary& vocabulary, GrammarKind kind,
                 const std::string& text) {
    std::unique_ptr<Matcher> matcher;
    try {
        const TimeLimit limit(kCompileTime, "compiling it");
        matcher = std::make_unique<Matcher>(library, vocabulary, kind, text);
        // Some faults show there alone.
        std::vector<uint32_t> mask((vocabulary.size() + 31) / 32);
        matcher->fill_mask(mask);
    } catch (const Error& error) {
        const bool refused = error.code() == TSR_INVALID_ARGUMENT;
        say(channel, refused ? Word::kRefused : Word::kFailed, error.what());
        return;
    }
    say(channel, Word::kReady, {}, own_memory());
    Message message;
    while (receive_message(channel, message) == Received::kMessage) {
        if (!message.files[0] || !message.files[1]) continue;
        const OpenFile answer = std::move(message.files[0]);
        // Mapped before, as the child closes all files but one.
        const SharedMemory mask = SharedMemory::opened(std::move(message.files[1]), (vocabulary.size() + 31) / 32 * 4);
        const bool made = in_child(answer, [&] { run_answer(answer, *matcher, mask); });
        if (!made) say(answer, Word::kFailed, "the system gave no more processes");
    }
}

void run(const OpenFile& channel, const std::string& path) {
    std::optional<Llguidance> loaded;
    try {
        loaded.emplace(path);
    } catch (const Error& error) {
        return say(channel, Word::kMissing, error.what());
    }
    const Llguidance& library = *loaded;
    Message message;
    if (receive_message(channel, message) != Received::kMessage || !message.files[0]) return;
    constexpr size_t most = sizeof(VocabularyHeader) + 8 * kMostTokens + kMostVocabularyBytes;
    const Vocabulary vocabulary(library, SharedMemory::opened(std::move(message.files[0]), most, false));
    say(channel, Word::kReady);
    while (receive_message(channel, message) == Received::kMessage) {
        const auto header = header_of(message.bytes);
        if (!header || !message.files[0] || !message.files[1]) continue;
        const OpenFile grammar = std::move(message.files[0]);
        const SharedMemory text = SharedMemory::opened(std::move(message.files[1]), kMostGrammarBytes, false);
        const bool made = in_child(grammar, [&] {
            run_grammar(grammar, library, vocabulary, header->kind,
                        {reinterpret_cast<const char*>(text.bytes().data()), text.bytes().size()});
        });
        if (!made) say(grammar, Word::kFailed, "the system gave no more processes");
    }
}

}  // namespace

int main(int count, char** words) {
    if (count != 2 || fcntl(kChannelNumber, F_GETFD) < 0) {
        static constexpr std::string_view text = "tessera-constrain is started by tessera and tessera-server alone\n";
        return write(STDERR_FILENO, text.data(), text.size()) < 0 ? 3 : 2;
    }
    close_others(kChannelNumber);
    std::signal(SIGCHLD, SIG_IGN);
    // Of a terminal, or whoever ends a service with all its processes: the program decides when this one ends, whose
    // answers may go on for a while.
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_IGN);
    const OpenFile channel(kChannelNumber);
    try {
        run(channel, words[1]);
        return 0;
    } catch (const std::exception& error) {
        try {
            say(channel, Word::kFailed, error.what());
        } catch (const std::exception&) {
            // Nobody listens any more.
        }
        return 1;
    }
}
