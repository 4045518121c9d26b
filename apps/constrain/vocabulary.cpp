#include "apps/constrain/vocabulary.hpp"

#include "apps/structure/protocol.hpp"
#include "core/base/error.hpp"

#include <cstring>

namespace tessera::constrain {

using namespace structure;

Vocabulary::Vocabulary(const Llguidance& library, SharedMemory file) : file_(std::move(file)) {
    const std::span<const std::byte> bytes = file_.bytes();
    VocabularyHeader header{};
    const auto check = [](bool good) {
        if (!good) fail(TSR_CORRUPT_DATA, "the vocabulary contradicts itself");
    };
    check(bytes.size() >= sizeof header);
    std::memcpy(&header, bytes.data(), sizeof header);
    check(header.tokens > 0 && header.tokens <= kMostTokens && header.ends > 0 && header.ends <= header.tokens &&
          header.bytes <= kMostVocabularyBytes);
    check(bytes.size() == sizeof header + 4 * (header.tokens + header.ends) + header.bytes);
    lengths_ = {reinterpret_cast<const uint32_t*>(bytes.data() + sizeof header), header.tokens};
    const std::span ends(lengths_.data() + header.tokens, header.ends);
    bytes_ = reinterpret_cast<const char*>(ends.data() + ends.size());
    size_t start = 0;
    for (const uint32_t length : lengths_) {
        starts_.push_back(start);
        start += length;
    }
    starts_.push_back(start);
    check(start == header.bytes);
    ends_text_.resize(header.tokens);
    for (const uint32_t end : ends) {
        check(end < header.tokens);
        ends_text_[end] = true;
    }
    LlgTokenizerInit init{};
    init.struct_size = sizeof init;
    init.vocab_size = static_cast<uint32_t>(header.tokens);
    init.tok_eos = ends[0];
    init.token_lens = lengths_.data();
    init.token_bytes = reinterpret_cast<const uint8_t*>(bytes_);
    init.use_approximate_greedy_tokenize_fn = true;
    init.tok_eos_extra = ends.data() + 1;
    init.tok_eos_extra_count = static_cast<uint32_t>(ends.size() - 1);
    char error[512] = "";
    tokenizer_ = library.new_tokenizer(&init, error, sizeof error);
    if (!tokenizer_) fail(TSR_UNSUPPORTED, "llguidance takes no such vocabulary: {}", error);
}

}  // namespace tessera::constrain
