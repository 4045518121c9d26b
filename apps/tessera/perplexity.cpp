#include "apps/tessera/perplexity.hpp"

#include "core/base/error.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace tessera::app {
namespace {

constexpr char kMagic[8] = {'_', 'l', 'o', 'g', 'i', 't', 's', '_'};
constexpr uint32_t kHeadNumbers = 3;
// Bounds that no valid file exceeds, so that sizes cannot overflow.
constexpr uint32_t kMaximumNumber = 1u << 24;
constexpr float kDeepest = 24;
static_assert(std::endian::native == std::endian::little, "files are read as they lie");

uint64_t place_bytes(uint32_t vocabulary) {
    return 2 * sizeof(float) + (uint64_t{vocabulary} + 1) / 2 * 2 * sizeof(uint16_t);
}

}  // namespace

void Mean::add(double value) {
    ++count_;
    const double distance = value - mean_;
    mean_ += distance / static_cast<double>(count_);
    squares_ += distance * (value - mean_);
}

double Mean::mean() const noexcept {
    return mean_;
}

double Mean::error() const noexcept {
    const auto n = static_cast<double>(count_);
    return count_ < 2 ? 0 : std::sqrt(squares_ / (n * (n - 1)));
}

double log_sum_exp(std::span<const float> logits) {
    const float largest = *std::ranges::max_element(logits);
    double sum = 0;
    for (const float logit : logits) sum += std::exp(logit - largest);
    return largest + std::log(sum);
}

CodedLogProbs code_log_probs(std::span<const float> logits) {
    const auto [smallest, largest] = std::ranges::minmax(logits);
    const float minimum = std::max(smallest, largest - kDeepest);
    CodedLogProbs coded;
    coded.step = (largest - minimum) / 65535.0f;
    coded.minimum = static_cast<float>(minimum - log_sum_exp(logits));
    coded.codes.resize(logits.size());
    if (coded.step > 0) {
        for (size_t i = 0; i < logits.size(); ++i) {
            coded.codes[i] =
                static_cast<uint16_t>(std::clamp(std::nearbyint((logits[i] - minimum) / coded.step), 0.0f, 65535.0f));
        }
    }
    return coded;
}

Scored scored_places(uint32_t context) {
    return {context / 2, context - 1};
}

SavedRunWriter::SavedRunWriter(const std::filesystem::path& path, const SavedRunHead& head) : file_(path) {
    const std::array<uint32_t, kHeadNumbers> numbers = {head.context, head.vocabulary, head.chunks()};
    file_.append(std::as_bytes(std::span(kMagic)));
    file_.append(std::as_bytes(std::span(numbers)));
    file_.append(std::as_bytes(std::span(head.tokens)));
}

void SavedRunWriter::add(std::span<const float> logits) {
    CodedLogProbs coded = code_log_probs(logits);
    if (coded.codes.size() % 2 != 0) coded.codes.push_back(0);
    const std::array<float, 2> scale = {coded.step, coded.minimum};
    file_.append(std::as_bytes(std::span(scale)));
    file_.append(std::as_bytes(std::span(coded.codes)));
}

SavedRunReader::SavedRunReader(const std::filesystem::path& path) : file_(path) {
    const uint64_t head_bytes = sizeof kMagic + kHeadNumbers * sizeof(uint32_t);
    std::array<char, sizeof kMagic> magic{};
    if (file_.size() >= head_bytes) file_.pread_exact(0, std::as_writable_bytes(std::span(magic)));
    if (std::memcmp(magic.data(), kMagic, sizeof kMagic) != 0) {
        fail(TSR_CORRUPT_DATA, "{}: not a saved run of 'tessera perplexity --kl-divergence-base' or llama-perplexity",
             path.string());
    }
    std::array<uint32_t, kHeadNumbers> numbers{};
    file_.pread_exact(sizeof kMagic, std::as_writable_bytes(std::span(numbers)));
    const auto [context, vocabulary, chunks] = numbers;
    if (context < 4 || std::ranges::max(numbers) > kMaximumNumber || vocabulary == 0 || chunks == 0) {
        fail(TSR_CORRUPT_DATA, "{}: {} chunks of {} tokens of a vocabulary of {} cannot be", path.string(), chunks,
             context, vocabulary);
    }
    const uint64_t tokens = uint64_t{chunks} * context;
    const uint64_t places = uint64_t{chunks} * scored_places(context).count();
    // Divided, not multiplied: three numbers of 24 bits may exceed 64.
    const uint64_t rest = file_.size() - head_bytes;
    if (tokens > rest / sizeof(Token) || (rest - tokens * sizeof(Token)) / place_bytes(vocabulary) != places ||
        (rest - tokens * sizeof(Token)) % place_bytes(vocabulary) != 0) {
        fail(TSR_CORRUPT_DATA,
             "{}: {} bytes do not hold {} chunks of {} tokens of a vocabulary of {}: the run that wrote it did not "
             "finish",
             path.string(), file_.size(), chunks, context, vocabulary);
    }
    head_ = {context, vocabulary, std::vector<Token>(tokens)};
    file_.pread_exact(head_bytes, std::as_writable_bytes(std::span(head_.tokens)));
    for (const Token token : head_.tokens) {
        if (token < 0 || static_cast<uint32_t>(token) >= vocabulary)
            fail(TSR_CORRUPT_DATA, "{}: token {} is outside the vocabulary of {}", path.string(), token, vocabulary);
    }
    at_ = head_bytes + tokens * sizeof(Token);
}

CodedLogProbs SavedRunReader::next() {
    CodedLogProbs coded;
    std::array<float, 2> scale{};
    coded.codes.resize(head_.vocabulary);
    file_.pread_exact(at_, std::as_writable_bytes(std::span(scale)));
    file_.pread_exact(at_ + sizeof scale, std::as_writable_bytes(std::span(coded.codes)));
    at_ += place_bytes(head_.vocabulary);
    coded.step = scale[0];
    coded.minimum = scale[1];
    return coded;
}

void Divergence::add(std::span<const float> logits, const CodedLogProbs& base, Token right) {
    const double shift = log_sum_exp(logits);
    // Coded probabilities do not sum to exactly one; they are divided by their sum, so that no divergence is below
    // zero.
    double base_sum = 0, weighted = 0;
    size_t best = 0, base_best = 0;
    for (size_t i = 0; i < logits.size(); ++i) {
        if (logits[i] > logits[best]) best = i;
        if (base.codes[i] > base.codes[base_best]) base_best = i;
        const double log_base = base.at(i);
        const double p = std::exp(log_base);
        base_sum += p;
        weighted += p * (log_base - (logits[i] - shift));
    }
    const double apart = std::max(0.0, weighted / base_sum - std::log(base_sum));
    const auto token = static_cast<size_t>(right);
    const double log_p = logits[token] - shift, base_log_p = base.at(token);
    const double difference = std::exp(log_p) - std::exp(base_log_p);
    nll.add(-log_p);
    base_nll.add(-base_log_p);
    nll_difference.add(base_log_p - log_p);
    divergence.add(apart);
    change.add(difference);
    change_squared.add(difference * difference);
    same_best.add(best == base_best ? 1 : 0);
    divergences.push_back(static_cast<float>(apart));
    changes.push_back(static_cast<float>(difference));
}

void score_chunk(Engine& engine, std::span<const Token> chunk, Token bos, uint32_t output_rows,
                 const std::atomic<bool>& stop, const OnPlace& on_place) {
    std::vector<Token> tokens(chunk.begin(), chunk.end());
    if (bos >= 0) tokens.front() = bos;
    const Scored scored = scored_places(static_cast<uint32_t>(chunk.size()));
    const SequenceId sequence = engine.cache().create();
    try {
        for (uint32_t at = 0; at < scored.end;) {
            if (stop.load()) fail(TSR_CANCELLED, "stopped after {} of {} tokens", at, scored.end);
            const bool wanted = at >= scored.first;
            const uint32_t end = wanted ? scored.end : scored.first;
            const uint32_t count = std::min({end - at, engine.max_rows(), wanted ? output_rows : end});
            const BatchEntry entry{sequence, std::span(tokens).subspan(at, count), wanted, wanted};
            const auto logits = engine.step({&entry, 1});
            for (size_t i = 0; i < logits.size(); ++i) on_place(logits[i], chunk[at + i + 1]);
            at += count;
        }
    } catch (...) {
        engine.cache().remove(sequence);
        throw;
    }
    engine.cache().remove(sequence);
}

double quantile(std::span<const float> sorted, double share) {
    const double at = std::clamp(share, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<size_t>(at);
    const size_t above = std::min(below + 1, sorted.size() - 1);
    const double part = at - static_cast<double>(below);
    return (1 - part) * sorted[below] + part * sorted[above];
}

}  // namespace tessera::app
