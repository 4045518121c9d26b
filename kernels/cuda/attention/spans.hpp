// Which tokens of a row a block attends to where several blocks share them. Spans follow the row's own position, so
// that its result does not depend on the rows beside it; windows follow the step.
#pragma once

#include "../rows.hpp"
#include "cache_rows.hpp"

namespace tessera::cuda_kernels {

// Tokens of one span of a row that sees `seen` tokens, where there are at most `splits` spans: whole pages, in steps of
// a fifth or less, so that rows of neighbouring positions have the same spans.
SIMT_DEVICE int span_tokens(int seen, int splits) {
    const int64_t of_all = int64_t{kPageTokens} * splits;
    int pages = static_cast<int>((seen + of_all - 1) / of_all), step = 1;
    while (pages > 8 * step) step *= 2;
    pages = (pages + step - 1) / step * step;
    return pages * kPageTokens;
}

struct TokenSpan {
    int first, last;  // none: first > last
    int sequence;     // -1 of a row whose position is none
    int spans;        // of the row
};

// Span `split` of row `row`. A position beyond the page table ends at the first token that has no page. Where a row
// sees the last tokens alone, spans are cut from the first page with one of them on.
SIMT_DEVICE TokenSpan span_of_row(const Attention& p, int64_t row, int split) {
    const int position = *at<int32_t>(p.positions, row * p.position);
    const int sequence = position < 0 ? -1 : *at<int32_t>(p.sequences, row * p.sequence);
    const int seen = simt::minimum(simt::maximum(position, 0), p.pages.positions * kPageTokens) + 1;
    if (p.window_pages > 0) {
        const bool known = sequence >= 0 && sequence < p.pages.sequences && position / kPageTokens < p.pages.positions;
        if (!known) return {0, -1, sequence, 2};
        // The window in tokens of this sequence.
        const int first = (p.window_page - p.page_starts[sequence]) * kPageTokens;
        const int end = simt::minimum(seen, first + p.window_pages * kPageTokens);
        return {simt::maximum(first, 0), end - 1, sequence, end == seen ? 1 : 2};
    }
    const int lowest = p.seen_tokens > 0 ? simt::maximum(seen - p.seen_tokens, 0) : 0;
    const int base = lowest / kPageTokens * kPageTokens;
    const int tokens = span_tokens(seen - base, p.splits);
    const int first = base + split * tokens;
    return {simt::maximum(first, lowest), simt::minimum(tokens, seen - first) + first - 1, sequence,
            (seen - base + tokens - 1) / tokens};
}

// The page of a token of the row's keys and values; -1 if there is none.
SIMT_DEVICE int key_page(const Attention& p, int token, int sequence) {
    if (p.window_pages > 0) return p.page_starts[sequence] - p.window_page + token / kPageTokens;
    return page_of(p.pages, token, sequence);
}

// The sum of weights of a row, and that of the head's sink.
SIMT_DEVICE float with_sink(const Attention& p, int head, float maximum, float sum) {
    if (!p.sinks) return sum;
    return sum + simt::exp2f(*at<float>(p.sinks, head * p.sink) * 1.44269504088896341f - maximum + p.sink_exponent);
}

// Whether windows before this one hold tokens of the row.
SIMT_DEVICE bool resumes(const Attention& p, int first) {
    return p.window_pages > 0 && first > 0;
}

// Maximum and sum of a row (counted from the first of the launch) and head, between windows.
SIMT_DEVICE float* running_of(const Attention& p, int64_t row, int head) {
    return static_cast<float*>(p.running) + (row * p.heads + head) * 2;
}

}  // namespace tessera::cuda_kernels
