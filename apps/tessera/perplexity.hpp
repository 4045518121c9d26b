// How well a model predicts a text, and how much it differs from another run on the same text.
//
// Perplexity over chunks, as users of llama-perplexity know it: a text is cut into chunks of one context each, the
// first token of a chunk is BOS where the vocabulary wants it, and the second half of each chunk is scored: token i + 1
// by the logits of token i, for i from context / 2 to context - 2.
#pragma once

#include "core/base/file.hpp"
#include "core/base/output_file.hpp"
#include "core/session/engine.hpp"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <vector>

namespace tessera::app {

// Of many values: their mean, and the standard error of that.
class Mean {
  public:
    void add(double value);
    uint64_t count() const noexcept { return count_; }
    double mean() const noexcept;
    double error() const noexcept;  // 0 for fewer than two

  private:
    uint64_t count_ = 0;
    double mean_ = 0, squares_ = 0;  // of the distances from the mean (Welford, Technometrics 4(3), 1962)
};

// Logarithm of the softmax of logits: logit - shift.
double log_sum_exp(std::span<const float> logits);

// Log probabilities of one position in 16 bits, as the files of llama-perplexity hold them: log p = minimum + step *
// code.
struct CodedLogProbs {
    float step = 0;
    float minimum = 0;
    std::vector<uint16_t> codes;  // one a token of the vocabulary

    double at(size_t token) const { return minimum + static_cast<double>(step) * codes[token]; }
};
// Values more than 24 below the largest are coded as the largest less 24.
CodedLogProbs code_log_probs(std::span<const float> logits);

// The positions that are scored in a chunk of `context` tokens: rows [first, end) of the logits.
struct Scored {
    uint32_t first, end;
    uint32_t count() const { return end - first; }
};
Scored scored_places(uint32_t context);

// A saved run: "_logits_", then context, vocabulary and chunks as i32, the tokens of all chunks as i32, and for each
// scored position step and minimum as f32, a code (u16) a token of the vocabulary, and two bytes of padding if that is
// odd. Little endian.
struct SavedRunHead {
    uint32_t context = 0, vocabulary = 0;
    std::vector<Token> tokens;  // of all chunks

    uint32_t chunks() const { return static_cast<uint32_t>(tokens.size() / context); }
};

// Throws what OutputFile throws. What is not finished leaves no file.
class SavedRunWriter {
  public:
    SavedRunWriter(const std::filesystem::path& path, const SavedRunHead& head);
    void add(std::span<const float> logits);
    void finish() { file_.finish(); }

  private:
    OutputFile file_;
};

class SavedRunReader {
  public:
    // Checks that the file has the size that its header implies. Throws what File throws, and Error(TSR_CORRUPT_DATA)
    // naming it.
    explicit SavedRunReader(const std::filesystem::path& path);
    const SavedRunHead& head() const noexcept { return head_; }
    // The next scored position.
    CodedLogProbs next();

  private:
    File file_;
    SavedRunHead head_;
    uint64_t at_ = 0;
};

// The result of comparing two runs.
struct Divergence {
    Mean nll, base_nll, nll_difference;       // -log p of the actual next token; this run's minus the base's
    Mean divergence;                          // Kullback-Leibler, of the base from this run
    Mean change, change_squared;              // of the actual next token's probability
    Mean same_best;                           // 1 where the same token is the most likely in both
    std::vector<float> divergences, changes;  // of every position

    void add(std::span<const float> logits, const CodedLogProbs& base, Token right);
};

// Evaluates a chunk and passes on the logits of each scored position with the token that follows. `stop` is checked
// between steps: throws Error(TSR_CANCELLED). The engine has one sequence, room for the chunk, and gives `output_rows`
// logits a step.
using OnPlace = std::function<void(std::span<const float> logits, Token next)>;
void score_chunk(Engine& engine, std::span<const Token> chunk, Token bos, uint32_t output_rows,
                 const std::atomic<bool>& stop, const OnPlace& on_place);

// The quantile `share` of the sorted values, interpolated linearly. There is at least one value.
double quantile(std::span<const float> sorted, double share);

}  // namespace tessera::app
