// What the program and `tessera-constrain` say to each other. Both are of one build, so structures go as they lie in
// memory; the program checks every size and number that it is sent.
//
// The first process makes the vocabulary's tables. It forks one for each grammar, which compiles it, and that one for
// each answer: so limits of time and memory end what exceeds them and nothing else, and all begin with what is made.
//
//   program -> first process:   vocabulary (file: its tables), then grammars (files: a channel, the text)
//   program -> grammar:         answers (files: a channel, memory for the mask)
//   program -> answer:          tokens that were accepted
// Each process says on its channel who it is, then what became of each message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace tessera::structure {

// Where the helper finds its channel.
inline constexpr int kChannelNumber = 3;

inline constexpr size_t kMostTokens = 1 << 22;             // of a vocabulary
inline constexpr size_t kMostVocabularyBytes = 256 << 20;  // of all its tokens
inline constexpr size_t kMostGrammarBytes = 4 << 20;
inline constexpr size_t kMostForcedBytes = 256;

enum class Word : uint32_t {
    kVocabulary,
    kGrammar,
    kAnswer,
    kAccept,  // tokens follow, int32_t
    // Of the helper.
    kStarted,  // its process
    kReady,    // the vocabulary or the grammar is
    kMask,     // lies in the shared memory; `text`: the bytes that follow in any case
    kRefused,  // `text`: what is wrong with the grammar, or which limit it exceeds; also while an answer is generated
    kMissing,  // `text`: llguidance, which cannot be loaded
    kFailed,   // `text`: what else went wrong, which is not the grammar's fault
};

enum class GrammarKind : uint32_t { kJsonSchema, kRegex, kLark };

// Before the text of a message.
struct Header {
    Word word;
    GrammarKind kind = GrammarKind::kLark;  // of kGrammar
    int32_t process = 0;                    // of kStarted
    int32_t only_token = -1;                // of kMask: the one that is allowed, if it is the only one
    uint64_t bytes = 0;                     // of kReady and kMask: memory that the process has to itself
};
static_assert(std::is_trivially_copyable_v<Header>);

// The file of a vocabulary: this, lengths of its tokens (uint32_t), ends of texts (int32_t), all bytes. The bytes of
// what is no text begin with 0xff.
struct VocabularyHeader {
    uint64_t tokens, ends, bytes;
};

inline std::string message_of(const Header& header, std::string_view text = {}) {
    std::string bytes(sizeof header + text.size(), '\0');
    std::memcpy(bytes.data(), &header, sizeof header);
    std::memcpy(bytes.data() + sizeof header, text.data(), text.size());
    return bytes;
}

// Nothing: it is too short.
inline std::optional<Header> header_of(std::string_view message) {
    if (message.size() < sizeof(Header)) return std::nullopt;
    Header header;
    std::memcpy(&header, message.data(), sizeof header);
    return header;
}

inline std::string_view text_of(std::string_view message) {
    return message.substr(sizeof(Header));
}

}  // namespace tessera::structure
