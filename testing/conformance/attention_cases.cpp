// Cases of attention over paged caches, and of writing them. Tokens that no row may see are not numbers.
#include "cases.hpp"

#include <tessera/formats/formats.hpp>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace tessera::conformance {
namespace {

// Every type that rows can be written in.
std::vector<tsr_type> cache_types() {
    std::vector<tsr_type> types = weight_types();
    std::erase_if(types, [](tsr_type type) { return !formats::can_encode_rows(type); });
    return types;
}

// Rows of sequences, and pages given out in a scrambled order.
struct Batch {
    std::vector<int32_t> positions, sequences, lengths, table;
    int64_t pages_of_one = 0, pages = 0;

    struct Sequence {
        int32_t cached, rows;  // the last `rows` of the cached tokens are of this batch
    };
    explicit Batch(const std::vector<Sequence>& all) {
        for (const Sequence& s : all) {
            for (int32_t i = 0; i < s.rows; ++i) {
                positions.push_back(s.cached - s.rows + i);
                sequences.push_back(static_cast<int32_t>(lengths.size()));
            }
            lengths.push_back(s.cached);
            pages_of_one = std::max<int64_t>(pages_of_one, (s.cached + TSR_PAGE_TOKENS - 1) / TSR_PAGE_TOKENS + 1);
        }
        pages = pages_of_one * static_cast<int64_t>(lengths.size()) + 2;
        table.assign(static_cast<size_t>(pages_of_one) * lengths.size(), -1);
        auto next = static_cast<int32_t>(pages - 1);
        for (int64_t p = 0; p < pages_of_one; ++p) {
            for (size_t s = 0; s < lengths.size(); ++s) {
                if (p * TSR_PAGE_TOKENS < lengths[s])
                    table[s * static_cast<size_t>(pages_of_one) + static_cast<size_t>(p)] = next--;
            }
        }
    }
    int64_t rows() const { return static_cast<int64_t>(positions.size()); }
    // Row of a cache that holds a token.
    size_t cache_row(size_t sequence, int64_t token) const {
        const auto page =
            table[sequence * static_cast<size_t>(pages_of_one) + static_cast<size_t>(token / TSR_PAGE_TOKENS)];
        return static_cast<size_t>(page * TSR_PAGE_TOKENS + token % TSR_PAGE_TOKENS);
    }
    // Forgets the pages before those that rows see which see the last `window` tokens.
    void forget_before(int64_t window) {
        for (size_t s = 0; s < lengths.size(); ++s) {
            int64_t first = lengths[s];
            for (size_t r = 0; r < positions.size(); ++r) {
                if (sequences[r] == static_cast<int32_t>(s)) first = std::min(first, positions[r] - window + 1);
            }
            for (int64_t p = 0; p < first / TSR_PAGE_TOKENS; ++p)
                table[s * static_cast<size_t>(pages_of_one) + static_cast<size_t>(p)] = -1;
        }
    }
    bool has_page(size_t sequence, int64_t token) const {
        return table[sequence * static_cast<size_t>(pages_of_one) + static_cast<size_t>(token / TSR_PAGE_TOKENS)] >= 0;
    }
    void add_inputs(Case& c, int32_t range = kRows) const {
        Operand& p = c.input("positions", TSR_TYPE_I32, {rows()}, TSR_ROLE_INPUT, range);
        Operand& s = c.input("sequences", TSR_TYPE_I32, {rows()}, TSR_ROLE_INPUT, range);
        Operand& t =
            c.input("page_table", TSR_TYPE_I32, {pages_of_one, static_cast<int64_t>(lengths.size())}, TSR_ROLE_INPUT);
        std::copy(positions.begin(), positions.end(), p.integers(0));
        std::copy(sequences.begin(), sequences.end(), s.integers(0));
        std::copy(table.begin(), table.end(), reinterpret_cast<int32_t*>(t.bytes.data()));
    }
    Operand& add_cache(Case& c, const char* name, tsr_type type, int64_t elements) const {
        Operand& cache = c.input(name, type, {elements, TSR_PAGE_TOKENS, pages}, TSR_ROLE_CACHE);
        for (size_t s = 0; s < lengths.size(); ++s) {
            for (int64_t t = 0; t < lengths[s]; ++t) {
                if (!has_page(s, t)) continue;
                fill_rows(type, cache.row(cache.bytes, cache_row(s, t)), static_cast<size_t>(elements), 1, 1, c.random);
            }
        }
        return cache;
    }
};

struct Variant {
    const char* name;
    int64_t heads, kv_heads, dk, dv, latent;  // latent > 0: projected; else prefix where kv_heads is 0
};
constexpr Variant kVariants[] = {{"plain 64", 4, 2, 64, 64, 0},         {"plain 128", 4, 1, 128, 128, 0},
                                 {"plain 192/128", 3, 3, 192, 128, 0},  {"prefix 96/64", 5, 0, 96, 64, 0},
                                 {"prefix 576/512", 6, 0, 576, 512, 0}, {"projected 64", 3, 0, 64, 32, 64},
                                 {"projected 96", 2, 0, 64, 64, 96},    {"projected 512", 2, 0, 192, 128, 512}};
// As models have them: 16 heads, 128 heads, and groups that share keys.
constexpr Variant kModelVariants[] = {{"prefix 576/512, 16 heads", 16, 0, 576, 512, 0},
                                      {"plain 192/128, 16 heads", 16, 16, 192, 128, 0},
                                      {"plain 128, 8 heads of 2", 8, 2, 128, 128, 0}};
constexpr Variant kPromptVariants[] = {{"plain 64", 2, 1, 64, 64, 0},
                                       {"plain 192/128", 2, 2, 192, 128, 0},
                                       {"plain 128", 2, 1, 128, 128, 0},
                                       {"prefix 576/512", 3, 0, 576, 512, 0}};
// Of many heads a few rows are many tiles.
constexpr Variant kManyHeads = {"prefix 576/512, 128 heads", 128, 0, 576, 512, 0};
// Of which each does not begin at a multiple of 32 elements.
constexpr Variant kOddHeads = {"plain 48/24", 4, 2, 48, 24, 0};
constexpr int64_t kProjectedRope = 32, kProjectedRopeLarge = 64;
constexpr Variant kProjectedHeads = {"projected 128, 16 heads", 16, 0, 192, 128, 128};
constexpr Variant kProjectedManyHeads = {"projected 64, 128 heads", 128, 0, 64, 64, 64};

// What else an operation is asked for.
struct Variation {
    double q_size = 1;
    int64_t scratch_bytes = 64 << 20;
    bool hadamard = false;
    int32_t range = kRows;  // rows of prompts may have kernels of their own
    int64_t window = 0;
    bool sinks = false;
};
// Scratch memory in which keys and values of a page or two have room beside weights that a kernel has decoded, as f16
// and as f32: then it projects a longer sequence window by window. A kernel that needs more refuses it.
struct Windows {
    Variant variant;
    int64_t scratch_bytes;
};
constexpr Windows kWindows[] = {{{"projected 64", 3, 0, 64, 32, 64}, 128 << 10},
                                {{"projected 512", 2, 0, 192, 128, 512}, 640 << 10},
                                {{"projected 512", 2, 0, 192, 128, 512}, 1280 << 10}};
// Rows of a latent of one power of two, and of three blocks.
struct Hadamard {
    Variant variant;
    tsr_type cache, weight;
};
constexpr Hadamard kHadamard[] = {{{"projected 64", 3, 0, 64, 32, 64}, TSR_TYPE_F16, TSR_TYPE_F16},
                                  {{"projected 96", 2, 0, 64, 64, 96}, TSR_TYPE_F16, TSR_TYPE_Q8_0},
                                  {{"projected 512", 2, 0, 192, 128, 512}, TSR_TYPE_Q4_0, TSR_TYPE_F16}};

// Keys that are one or two in several rows, and a whole prompt of another length.
const std::vector<std::vector<Batch::Sequence>>& batches() {
    static const std::vector<std::vector<Batch::Sequence>> kBatches = {
        {{1, 1}}, {{70, 1}, {5, 1}, {64, 1}}, {{37, 37}}, {{130, 3}, {66, 4}}};
    return kBatches;
}

// One token of a long sequence; prompts that cross pages beside rows of generation.
const std::vector<std::vector<Batch::Sequence>>& model_batches() {
    static const std::vector<std::vector<Batch::Sequence>> kBatches = {{{333, 1}}, {{150, 23}, {65, 1}, {130, 2}}};
    return kBatches;
}

double tolerance_of_cache(tsr_type cache, tsr_type weight) {
    if (weight != TSR_TYPE_F32 && weight != TSR_TYPE_F16) return 3e-2;
    if (cache == TSR_TYPE_F32) return 2e-3;
    if (cache == TSR_TYPE_F16) return 5e-3;
    return 3e-2;
}

void attention_case(const std::string& op, const Variant& f, const Batch& batch, tsr_type cache, tsr_type weight,
                    const Use& use, const Variation& varied = {}) {
    const double q_size = varied.q_size;
    const bool projected = f.latent > 0, prefix = f.kv_heads == 0 && !projected;
    const int64_t kv_heads = std::max<int64_t>(f.kv_heads, 1);
    const int64_t rope = projected ? (f.latent > 100 ? kProjectedRopeLarge : kProjectedRope) : 0;
    const int64_t key_row = projected ? f.latent + rope : kv_heads * f.dk;
    char name[200];
    std::string what = q_size == 1 ? "" : q_size > 1 ? " large queries" : " small queries";
    if (varied.scratch_bytes != Variation{}.scratch_bytes)
        what += " in " + std::to_string(varied.scratch_bytes >> 10) + " KiB";
    if (varied.hadamard) what += " hadamard";
    if (varied.range == TSR_RANGE_PROMPT_ROWS) what += " prompts";
    if (varied.window > 0) what += " window " + std::to_string(varied.window);
    if (varied.sinks) what += " sinks";
    std::snprintf(name, sizeof name, "%s%s cache %s%s%s, %zu sequences, %lld rows", f.name, what.c_str(),
                  formats::format_name(cache), projected ? " weights " : "",
                  projected ? formats::format_name(weight) : "", batch.lengths.size(),
                  static_cast<long long>(batch.rows()));
    Case c(op, name);
    c.fill(c.input("q", TSR_TYPE_F32, {f.dk, f.heads, batch.rows()}, TSR_ROLE_ACTIVATION, varied.range),
           static_cast<float>(q_size));
    batch.add_cache(c, "k", cache, key_row);
    if (projected || prefix) {
        c.absent();
    } else {
        batch.add_cache(c, "v", cache, kv_heads * f.dv);
    }
    batch.add_inputs(c, varied.range);
    if (projected) {
        const float size = 1 / std::sqrt(static_cast<float>(f.latent));
        c.fill(c.input("wk", weight, {f.latent, f.dk - rope, f.heads}, TSR_ROLE_WEIGHT), size);
        c.fill(c.input("wv", weight, {f.latent, f.dv, f.heads}, TSR_ROLE_WEIGHT), size);
    } else {
        c.absent();
        c.absent();
    }
    if (varied.sinks) c.fill(c.input("sinks", TSR_TYPE_F32, {f.heads}, TSR_ROLE_WEIGHT), 2);
    c.output("out", TSR_TYPE_F32, {f.dv, f.heads, batch.rows()}, varied.range);
    if (varied.window > 0) c.attribute("window", varied.window);
    c.attribute("scale", 1 / std::sqrt(static_cast<double>(f.dk)) / q_size);
    c.attribute("kv_heads", kv_heads);
    c.attribute("head_dim_v", f.dv);
    c.attribute("scratch_bytes", varied.scratch_bytes);
    if (varied.hadamard) c.attribute("hadamard", int64_t{1});
    c.attribute("max_tokens", batch.pages_of_one * TSR_PAGE_TOKENS);
    c.tolerance = tolerance_of_cache(cache, weight);
    c.row_ranges(static_cast<int32_t>(batch.rows()));
    use(c);
}

}  // namespace

void attention_cases(const std::string& op, const Use& use) {
    constexpr tsr_type kWeights[] = {TSR_TYPE_F32, TSR_TYPE_F16, TSR_TYPE_Q8_0, TSR_TYPE_Q4_0};
    const std::vector<tsr_type> caches = cache_types();
    for (const Variant& variant : kVariants) {
        for (size_t b = 0; b < batches().size(); ++b) {
            const Batch batch(batches()[b]);
            for (const tsr_type cache : caches) {
                if (variant.latent == 0) {
                    // All batches with a type that all know, all types with one batch.
                    if (cache == TSR_TYPE_F16 || b == 3) attention_case(op, variant, batch, cache, TSR_TYPE_F32, use);
                    continue;
                }
                for (const tsr_type weight : kWeights) {
                    if (variant.latent % formats::listed_size(weight).elements != 0) continue;
                    const bool both = cache == TSR_TYPE_F16 && weight == TSR_TYPE_F16;
                    // Long rows are of the types' blocks what short ones are.
                    const bool any = variant.latent < 512 || cache == TSR_TYPE_Q8_0 || weight == TSR_TYPE_Q4_0;
                    if (both || (b == 3 && any && (cache == TSR_TYPE_F16 || weight == TSR_TYPE_F16)))
                        attention_case(op, variant, batch, cache, weight, use);
                }
            }
        }
    }
    for (const Variant& variant : kModelVariants) {
        for (const auto& sequences : model_batches())
            attention_case(op, variant, Batch(sequences), TSR_TYPE_F16, TSR_TYPE_F32, use);
    }
    // Prompts: all types with one variant, and of each variant a few.
    for (const Variant& variant : kPromptVariants) {
        const bool first = &variant == kPromptVariants;
        for (const tsr_type cache : caches) {
            if (first || cache == TSR_TYPE_F16 || cache == TSR_TYPE_BF16 || cache == TSR_TYPE_F32 ||
                cache == TSR_TYPE_Q5_1) {
                attention_case(op, variant, Batch({{150, 23}, {65, 1}, {130, 20}}), cache, TSR_TYPE_F32, use,
                               {.range = TSR_RANGE_PROMPT_ROWS});
            }
        }
    }
    attention_case(op, kPromptVariants[1], Batch({{300, 110}}), TSR_TYPE_F16, TSR_TYPE_F32, use,
                   {.range = TSR_RANGE_PROMPT_ROWS});
    attention_case(op, kManyHeads, Batch(model_batches()[0]), TSR_TYPE_F16, TSR_TYPE_F32, use);
    attention_case(op, kManyHeads, Batch({{70, 4}, {65, 2}}), TSR_TYPE_F16, TSR_TYPE_F32, use);
    attention_case(op, kOddHeads, Batch({{70, 4}, {65, 2}}), TSR_TYPE_F16, TSR_TYPE_F32, use);
    attention_case(op, kProjectedHeads, Batch({{66, 2}, {5, 1}}), TSR_TYPE_F16, TSR_TYPE_F16, use);
    attention_case(op, kProjectedManyHeads, Batch({{9, 2}, {5, 1}}), TSR_TYPE_F16, TSR_TYPE_F16, use);
    for (const Windows& of : kWindows) {
        attention_case(op, of.variant, Batch(batches()[3]), TSR_TYPE_F16, TSR_TYPE_F16, use,
                       {.scratch_bytes = of.scratch_bytes});
    }
    for (const Hadamard& of : kHadamard)
        attention_case(op, of.variant, Batch({{70, 2}, {5, 1}}), of.cache, of.weight, use, {.hadamard = true});
    // Pages before a window hold anything, and have no entry in the table.
    for (const Variant& variant : kVariants) {
        for (const int32_t range : {int32_t{kRows}, int32_t{TSR_RANGE_PROMPT_ROWS}}) {
            for (const int64_t window : {1, 50, 128}) {
                Batch batch({{150, 23}, {65, 1}, {333, 2}, {400, range == kRows ? 1 : 90}});
                batch.forget_before(window);
                attention_case(op, variant, batch, TSR_TYPE_F16, TSR_TYPE_F32, use,
                               {.range = range, .window = window, .sinks = window > 1});
            }
        }
    }
    // What arithmetic of 16 bits would not hold.
    for (const double size : {1e8, 1e-8})
        attention_case(op, kModelVariants[0], Batch(batches()[3]), TSR_TYPE_F16, TSR_TYPE_F32, use, {.q_size = size});
}

void cache_write_cases(const std::string& op, const Use& use) {
    for (const tsr_type type : cache_types()) {
        for (const int64_t elements : {64, 96, 576}) {
            const Batch batch(batches()[3]);
            char name[100];
            std::snprintf(name, sizeof name, "%s n=%lld", formats::format_name(type), static_cast<long long>(elements));
            Case c(op, name);
            c.fill(c.input("x", TSR_TYPE_F32, {elements, batch.rows()}, TSR_ROLE_ACTIVATION, kRows));
            batch.add_inputs(c);
            Operand& cache =
                c.output("cache", type, {elements, TSR_PAGE_TOKENS, batch.pages}, TSR_RANGE_FIXED, 0, TSR_ROLE_CACHE);
            c.fill(cache);
            cache.keeps_what_it_had = true;
            c.tolerance = type == TSR_TYPE_F32 ? 1e-6 : 2e-2;
            const size_t rows = cache.rows();
            c.written_rows = [batch, rows](const Ranges& ranges) {
                std::vector<bool> written(rows);
                for (int32_t r = ranges[kRows].begin; r < ranges[kRows].end; ++r) {
                    const auto at = static_cast<size_t>(r);
                    written[batch.cache_row(static_cast<size_t>(batch.sequences[at]), batch.positions[at])] = true;
                }
                return written;
            };
            c.row_ranges(static_cast<int32_t>(batch.rows()));
            use(c);
        }
    }
}

}  // namespace tessera::conformance
