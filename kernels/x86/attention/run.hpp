// One run of an attention node: units of work, and the strips of tokens in each.
#pragma once

#include "../kit.hpp"
#include "../past_caches.hpp"
#include "ahead.hpp"
#include "asking.hpp"
#include "cached_rows.hpp"
#include "expand.hpp"
#include "few_lanes.hpp"
#include "load.hpp"
#include "merge.hpp"
#include "streams.hpp"
#include "write.hpp"

#include <tessera/cpu/exponential.hpp>

#include <climits>
#include <cmath>

namespace tessera::x86::attention {

template <class Isa, class Arithmetic>
class Run {
  public:
    static constexpr int kLanes = Isa::kLanes;
    static constexpr int kPanel = Arithmetic::kPanel;
    using Few = FewLanes<typename Isa::Plain>;
    using Loads = Load<Isa, Arithmetic>;
    using Merges = Merge<Isa, Arithmetic>;

    Run(const State& state, const tsr_run& run) noexcept
        : state_(state),
          problem_(state.problem),
          shape_(state.problem.shape),
          run_(run),
          operands_(state, run),
          spans_(state.problem),
          takes_few_(takes_few()) {}

    // Throws before the first barrier, in all workers alike.
    void go() {
        check_rows();
        Arena arena(static_cast<char*>(run_.workspace) + run_.worker * state_.budget.worker_bytes);
        slots_ = static_cast<char*>(run_.workspace) + state_.budget.workers * state_.budget.worker_bytes;
        if (run_.worker < static_cast<uint32_t>(state_.budget.workers)) {
            scratch_ = Scratch<Arithmetic>::take(arena, problem_);
            panels_ = arena.take<Panel<Arithmetic>>(state_.budget.panels_of_block);
            for (int i = 0; i < state_.budget.panels_of_block; ++i)
                panels_[i] = Panel<Arithmetic>::take(arena, problem_);
            attend();
        }
        if (!spread_) return;
        run_.barrier(run_.team, run_.worker);
        merge_spread();
    }

  private:
    using SliceList = Slices<Arithmetic>;

    SliceList slices() const noexcept { return operands_.template slices<Arithmetic>(takes_few_); }
    uint32_t workers() const noexcept { return std::min(run_.workers, static_cast<uint32_t>(state_.budget.workers)); }

    void check_rows() {
        SliceList list = slices();
        for (Slice s; list.next(s);) {
            operands_.check(s);
            if (s.first_slot >= 0) spread_ = true;
        }
    }

    // Units are numbered slice by slice, group of keys by group, blocks of panels before spans.
    void attend() noexcept {
        int64_t count = 0;
        SliceList list = slices();
        for (Slice s; list.next(s);) count += int64_t{s.units()} * s.key_groups;
        // A worker's own units ascend, so the search continues from the current slice; units of others start it
        // again.
        Slice s;
        int64_t first = 0, end = 0;  // of the slice's units
        list = slices();
        sdk::for_pieces(run_, run_.worker, workers(), count, [&](int64_t index) {
            if (index < first) {
                list = slices();
                end = 0;
            }
            while (index >= end) {
                list.next(s);
                first = end;
                end += int64_t{s.units()} * s.key_groups;
            }
            const auto group = static_cast<int>((index - first) / s.units());
            const auto unit_of_group = static_cast<int>((index - first) % s.units());
            const int span = s.first_slot < 0 ? 0
                                              : dealt_span(unit_of_group / s.blocks, s.first_span, s.spans_end,
                                                           static_cast<int>(workers()));
            unit(s, block_of(s, group, unit_of_group % s.blocks), span);
        });
        leave_gathered();
    }

    // What a unit computes: some panels of one key head, or the only panel of each of several.
    struct Block {
        int key, keys;
        int64_t first_panel;
        int panels;  // of each key head
        bool operator==(const Block&) const = default;
        int count() const noexcept { return keys * panels; }
        int key_of(int i) const noexcept { return key + i / panels; }
        int64_t panel_of(int i) const noexcept { return first_panel + i % panels; }
    };
    Block block_of(const Slice& s, int group, int block) const noexcept {
        const int key = group * s.keys;
        const int64_t first = int64_t{block} * s.block_panels;
        return {key, std::min(s.keys, problem_.key_units - key), first,
                static_cast<int>(std::min<int64_t>(s.block_panels, s.panels - first))};
    }

    void load_panel(const Slice& s, int key, int64_t panel, Panel<Arithmetic>& to) const noexcept {
        const float* rows[kPanel];
        Loads::panel(operands_, s, key, panel, to, rows);
        if (s.few) {
            const int padded = Few::padded(to.lanes);
            std::fill(rows + to.lanes, rows + padded, rows[0]);
            Few::load_queries(rows, padded, shape_.key, problem_.scale, to.few_queries);
        } else {
            Arithmetic::load_queries(to.queries, shape_, rows, to.vectors, problem_.scale);
        }
    }

    void unit(const Slice& s, const Block& b, int span) noexcept {
        if constexpr (!Arithmetic::kBytePages) {
            if (problem_.variant == Variant::kProjected)
                Expand<Isa, Arithmetic>::projections(operands_, scratch_, b.key);
        }
        // Spans of one block often follow each other.
        if (loaded_slice_ != s.begin || loaded_ != b) {
            for (int i = 0; i < b.count(); ++i) load_panel(s, b.key_of(i), b.panel_of(i), panels_[i]);
            loaded_slice_ = s.begin;
            loaded_ = b;
        }
        if (s.first_slot >= 0) {
            gather(s, b, span);
        } else if (s.spans() == 1) {
            attend_span(s, b, s.first_span);
            for (int i = 0; i < b.count(); ++i) write(s, b.key_of(i), b.panel_of(i), panels_[i].out);
        } else {
            // All spans of the block by one worker, merged in the same order as by several.
            leave_gathered();
            for (int p = s.first_span; p < s.spans_end; ++p) {
                attend_to_group(s, b, p, p % kSpansOfGroup == 0 || p == s.first_span);
                const bool ends = p + 1 == std::min(end_of_group(p), s.spans_end);
                for (int i = 0; ends && i < b.count(); ++i)
                    join(panels_[i].total, panels_[i].group, p < end_of_group(s.first_span), lies(s, b.panel_of(i)));
            }
            for (int i = 0; i < b.count(); ++i) write(s, b.key_of(i), b.panel_of(i), panels_[i].total);
        }
    }

    // Attends a span. Its result becomes the panels' `group` if it begins that, and is joined to it if not.
    void attend_to_group(const Slice& s, const Block& b, int span, bool begins) noexcept {
        // A span of one strip that the only panel sees is added as a later strip of a span is: with the same bits, but
        // without a result of its own.
        const int64_t strip = spans_.begin(span);
        const bool adds = !begins && b.panels == 1 && !s.few && spans_.begin(span + 1) == strip + 1 &&
                          strip * kStrip <= panels_[0].limits[kPanel - 1];
        const auto swap = [&] {
            for (int i = 0; i < b.count(); ++i) std::swap(panels_[i].out, panels_[i].group);
        };
        if (adds) {
            swap();
            attend_strips(s, b, span);
            swap();
            return;
        }
        attend_span(s, b, span);
        for (int i = 0; i < b.count(); ++i) join(panels_[i].group, panels_[i].out, begins, lies(s, b.panel_of(i)));
    }

    // `later` joined to `result`, or in its place if it is the first. What `later` holds then is of no use.
    void join(float*& result, float*& later, bool first, const Result& lies) const noexcept {
        if (first)
            std::swap(result, later);
        else
            Merges::whole(result, later, shape_, lies);
    }

    // What a worker has merged of a group, from its first span on, or one span of another place: in the panels'
    // `group`.
    struct Gathered {
        Slice slice;
        Block block;
        int span, count = 0;
    };
    // Attends a span and gathers its result.
    void gather(const Slice& s, const Block& b, int span) noexcept {
        Gathered& g = gathered_;
        const bool goes_on = g.count > 0 && g.slice.begin == s.begin && g.block == b &&
                             (g.span % kSpansOfGroup == 0 || g.span == s.first_span) && span == g.span + g.count &&
                             span % kSpansOfGroup != 0;
        if (!goes_on) {
            leave_gathered();
            g = {s, b, span, 0};
        }
        attend_to_group(s, b, span, !goes_on);
        ++g.count;
    }
    // To its slot.
    void leave_gathered() noexcept {
        Gathered& g = gathered_;
        if (g.count == 0) return;
        for (int i = 0; i < g.block.count(); ++i) {
            const int64_t panel = g.block.panel_of(i);
            float* to = slot(g.slice, g.block.key_of(i), panel, g.span);
            const float* from = panels_[i].group;
            const Result order = lies(g.slice, panel);
            const int vectors = Lanes<Isa, Arithmetic>::vectors(g.slice, panel);
            const int lanes = order.by_lane ? order.lanes : vectors * kLanes;
            const int64_t floats = int64_t{shape_.padded_value()} * lanes;
            if (pays_past_caches(run_, floats * int64_t{sizeof(float)}))
                write_past_caches(to, from, floats);
            else
                std::copy_n(from, floats, to);
            std::copy_n(top_of(from), 2 * kPanel, top_of(to));
            spans_in(to) = g.count;
        }
        end_past_caches();
        g.count = 0;
    }
    int32_t& spans_in(float* slot) const noexcept {
        return *reinterpret_cast<int32_t*>(slot + rounded_up(Panel<Arithmetic>::all_floats(shape_), 16));
    }

    // Few rows of int16 are multiplied where they lie.
    bool takes_value_rows() const noexcept { return Arithmetic::kValueRows && shape_.prefix; }
    Result lies(const Slice& s, int64_t panel) const noexcept {
        return {Lanes<Isa, Arithmetic>::count(s, panel), s.few || (takes_value_rows() && s.alone(panel)), s.few};
    }
    float* slot(const Slice& s, int key, int64_t panel, int span) const noexcept {
        const int64_t index = s.first_slot + (int64_t{key} * s.panels + panel) * s.spans() + span - s.first_span;
        return reinterpret_cast<float*>(slots_ + index * state_.budget.slot_bytes);
    }
    // Whether FewLanes computes slices of few lanes.
    bool takes_few() const noexcept {
        if (Arithmetic::kBytePages) return false;
        if (problem_.group > problem_.most_few_lanes()) return false;
        const View& values = operands_.values();
        return Few::takes(operands_.k.tensor->type, shape_.key) && Few::takes(values.tensor->type, shape_.value);
    }

    void attend_span(const Slice& s, const Block& b, int span) noexcept {
        for (int i = 0; i < b.count(); ++i) {
            std::fill_n(top_of(panels_[i].out), kPanel, kHidden);
            std::fill_n(top_of(panels_[i].out) + kPanel, kPanel, 0.0f);
            panels_[i].empty = true;
        }
        attend_strips(s, b, span);
        for (int i = 0; i < b.count(); ++i) {
            if (panels_[i].empty) std::fill_n(panels_[i].out, Panel<Arithmetic>::result_floats(shape_), 0.0f);
        }
    }

    // Adds the strips of a span to what the panels' `out` holds.
    void attend_strips(const Slice& s, const Block& b, int span) noexcept {
        const int32_t last = panels_[b.count() - 1].limits[kPanel - 1];
        const auto end = static_cast<int>(std::min<int64_t>(spans_.begin(span + 1), s.strips));
        const int32_t first_token = first_page_of(panels_[0]);
        const auto begin = static_cast<int>(std::max<int64_t>(spans_.begin(span), first_token / kStrip));
        for (int strip = begin; strip < end; ++strip) {
            const int32_t first = std::max(strip * kStrip, first_token);
            const int tokens = std::min((strip + 1) * kStrip, last + 1) - first;
            if (tokens <= 0) break;
            if (s.few) {
                if constexpr (!Arithmetic::kBytePages) attend_few(s, b, first, tokens);
                continue;
            }
            if (b.panels == 1 && problem_.variant != Variant::kProjected) {
                if (panels_[0].vectors == 2)
                    attend_alone<2>(s, b, first, tokens);
                else
                    attend_alone<1>(s, b, first, tokens);
                continue;
            }
            load_strip(s, b.key, first, tokens);
            for (int i = 0; i < b.panels; ++i) {
                if (panels_[i].vectors == 2)
                    attend_strip<2>(panels_[i], first, tokens);
                else
                    attend_strip<1>(panels_[i], first, tokens);
            }
        }
    }

    // The first token of the first page with one that a lane of the panel sees.
    int32_t first_page_of(const Panel<Arithmetic>& panel) const noexcept {
        return static_cast<int32_t>(problem_.first_seen(panel.limits[0]) / TSR_PAGE_TOKENS * TSR_PAGE_TOKENS);
    }

    void load_strip(const Slice& s, int key, int32_t first, int tokens) noexcept {
        if constexpr (Arithmetic::kBytePages) {
            Loads::byte_pages(operands_, scratch_.strip, s, first, tokens);
        } else {
            if (problem_.variant == Variant::kProjected)
                return Expand<Isa, Arithmetic>::strip(operands_, scratch_, s, first, tokens);
            Loads::keys(operands_, scratch_, s, key, first, tokens);
            Loads::values(operands_, scratch_, s, key, first, tokens);
        }
    }

    // A strip for the only panel of each key head.
    template <int V>
    void attend_alone(const Slice& s, const Block& b, int32_t first, int tokens) noexcept {
        if constexpr (Arithmetic::kBytePages) {
            attend_byte_strip<V>(s, panels_[0], first, tokens);
        } else {
            if constexpr (Arithmetic::kInt16Pages) {
                if (operands_.has_int16_pages()) return attend_int16_strip<V>(s, panels_[0], first, tokens);
            }
            if (problem_.variant == Variant::kPlain)
                attend_plain_strip<V>(s, b, first, tokens);
            else
                attend_prefix_strip<V>(s, b, first, tokens);
        }
    }

    // What the key heads of a block have of cached rows.
    CachedRows keys_of(const Slice& s, const Block& b) const noexcept {
        return {operands_, operands_.k, s, int64_t{b.key} * shape_.key, int64_t{b.keys} * shape_.key};
    }
    CachedRows values_of(const Slice& s, const Block& b) const noexcept {
        return {operands_, operands_.values(), s, int64_t{b.key} * shape_.value, int64_t{b.keys} * shape_.value};
    }
    // Asks for rows of a block, from those of the strip at `first` on.
    void begin_streams(const Slice& s, const Block& b, int32_t first, int tokens) noexcept {
        streams_.begin((int64_t{s.begin} << 32) + b.key, first, panels_[0].limits[kPanel - 1] + 1, tokens);
    }

    // One key head after another, each with the keys of the strip and then its values. Rows of the strip come into the
    // second-level cache whole, while those of the strip before are multiplied.
    template <int V>
    void attend_plain_strip(const Slice& s, const Block& b, int32_t first, int tokens) noexcept {
        constexpr int kRows = Arithmetic::template kTileRows<V>;
        const char *key_rows[kStrip], *value_rows[kStrip];
        operands_.find_rows(operands_.k, s, first, tokens, key_rows);
        operands_.find_rows(operands_.v, s, first, tokens, value_rows);
        const CachedRows keys = keys_of(s, b), values = values_of(s, b);
        begin_streams(s, b, first, kStrip);
        const int64_t next = streams_.next_block(first);
        const auto ask_until = [&](int64_t row) { streams_.template ask<Isa>(row, INT_MAX, keys, &values); };
        Asking asks([&](int count) { return streams_.lines(next + 2 * kStrip, count, keys, &values); });
        for (int i = 0; i < b.keys; ++i) {
            // Of the next strip, as much as is done of this one.
            const auto ask_next = [&](int done) { ask_until(next + (int64_t{i} * 2 * kStrip + done) / b.keys); };
            const int key = b.key + i;
            for (int t = 0; t < tokens; t += kRows) {
                const int count = std::min(kRows, tokens - t);
                ask_until(streams_.key_row(first + t) + 2 * kRows);
                ask_next(t);
                Arithmetic::load_keys(scratch_.strip, shape_, operands_.k.tensor->type, key_rows + t,
                                      int64_t{key} * shape_.key, t, count, 0);
                Arithmetic::template scores<V>(panels_[i].queries, scratch_.strip, shape_, t, count, 0,
                                               scratch_.weights.scores, V * kLanes, asks);
            }
            ask_next(kStrip);
            Arithmetic::load_values(scratch_.strip, shape_, operands_.v.tensor->type, value_rows,
                                    int64_t{key} * shape_.value, tokens);
            weigh_strip<V>(panels_[i], first, tokens, asks);
        }
    }

    // Keys are multiplied again as values, so they stay in the second-level cache. All along, keys of the next strip
    // are asked for.
    template <int V>
    void attend_prefix_strip(const Slice& s, const Block& b, int32_t first, int tokens) noexcept {
        constexpr int kRows = Arithmetic::template kTileRows<V>;
        Panel<Arithmetic>& panel = panels_[0];
        const tsr_type type = operands_.k.tensor->type;
        const char* rows[kStrip];
        operands_.find_rows(operands_.k, s, first, tokens, rows);
        const CachedRows keys = keys_of(s, b);
        const int lines = keys.lines(kStrip, (kStrip + shape_.padded_value()) / kRows);
        ahead_.begin(s.sequence, first, panel.limits[kPanel - 1] + 1, keys.bytes());
        Asking asks([&](int count) -> Lines {
            if (keys.contiguous()) return ahead_.lines(first + 2 * kStrip, count, keys);
            ahead_.template ask<Isa>(first + 2 * kStrip, lines, keys);
            return {nullptr, 0};
        });
        const bool keeps = takes_value_rows();
        for (int t = 0; t < tokens; t += kRows) {
            const int count = std::min(kRows, tokens - t);
            // Where nothing was asked for yet: what the next tile needs.
            ahead_.template ask<Isa>(first + t + 2 * kRows, INT_MAX, keys);
            const int slot = keeps ? t : 0;
            Arithmetic::load_keys(scratch_.strip, shape_, type, rows + t, 0, t, count, slot);
            if (!keeps) Arithmetic::values_of_keys(scratch_.strip, shape_, t, count, slot);
            Arithmetic::template scores<V>(panel.queries, scratch_.strip, shape_, t, count, slot,
                                           scratch_.weights.scores, V * kLanes, asks);
        }
        if constexpr (Arithmetic::kValueRows) {
            if (keeps) {
                typename Arithmetic::ValueRows value_rows{{}, shape_.padded_key()};
                for (int i = 0; i < kStrip / TSR_PAGE_TOKENS; ++i)
                    value_rows.runs[i] = scratch_.strip.keys + int64_t{i} * TSR_PAGE_TOKENS * shape_.padded_key();
                return weigh_rows<V>(panel, value_rows, first, tokens, asks);
            }
        }
        weigh_strip<V>(panel, first, tokens, asks);
    }

    // Values are not the first part of keys.
    bool values_apart() const noexcept { return problem_.variant == Variant::kPlain; }

    // The same where pages hold int16: keys are multiplied where they lie.
    template <int V>
    void attend_int16_strip(const Slice& s, Panel<Arithmetic>& panel, int32_t first, int tokens) noexcept {
        const Int16Pages& pages = operands_.int16_pages;
        const auto row = [&](int32_t token) { return reinterpret_cast<const char*>(operands_.int16_row(s, token)); };
        Asking asks([&](int count) { return ahead_.lines(first + 2 * kStrip, count, row); });
        ahead_.begin(s.sequence, first, panel.limits[kPanel - 1] + 1, pages.row_bytes());
        typename Arithmetic::ValueRows rows{{}, shape_.padded_key()};
        for (int t = 0; t < tokens; t += TSR_PAGE_TOKENS) {
            const char* page = operands_.page_of_token(s, first + t);
            const int count = std::min<int>(TSR_PAGE_TOKENS, tokens - t);
            ahead_.template ask<Isa>(first + t + count, INT_MAX, row);
            const int16_t* const run = rows.runs[t / TSR_PAGE_TOKENS] = pages.row(page, 0);
            Arithmetic::take_scales(scratch_.strip, shape_, pages, page, t, count);
            Arithmetic::template scores_of_page<V>(panel.queries, scratch_.strip, shape_, run, t, count,
                                                   scratch_.weights.scores, V * kLanes, asks);
        }
        if constexpr (Arithmetic::kValueRows) return weigh_rows<V>(panel, rows, first, tokens, asks);
        for (int t = 0; t < tokens; t += TSR_PAGE_TOKENS) {
            Arithmetic::values_of_rows(scratch_.strip, shape_, rows.runs[t / TSR_PAGE_TOKENS], rows.stride, t,
                                       std::min<int>(TSR_PAGE_TOKENS, tokens - t));
        }
        weigh_strip<V>(panel, first, tokens, asks);
    }

    // The same where pages hold the codes of four tokens side by side.
    template <int V>
    void attend_byte_strip(const Slice& s, Panel<Arithmetic>& panel, int32_t first, int tokens) noexcept {
        constexpr int kRows = Arithmetic::template kTileRows<V>;
        const BytePages& pages = operands_.byte_pages;
        // Pages have no rows, but are read from their beginning to their end. Of the last one, which is not full, some
        // lines are not asked for.
        const auto row = [&](int32_t token) {
            return operands_.page_of_token(s, token) + token % TSR_PAGE_TOKENS * pages.row_bytes();
        };
        Asking asks([&](int count) { return ahead_.lines(first + 2 * kStrip, count, row); });
        ahead_.begin(s.sequence, first, panel.limits[kPanel - 1] + 1, pages.row_bytes());
        for (int t = 0; t < tokens; t += TSR_PAGE_TOKENS) {
            const int end = std::min<int>(tokens, t + TSR_PAGE_TOKENS);
            ahead_.template ask<Isa>(first + t + kRows, INT_MAX, row);
            Arithmetic::take_page(scratch_.strip, pages, operands_.page_of_token(s, first + t), t);
            for (int tile = t; tile < end; tile += kRows) {
                // Where nothing was asked for yet: what the next tile needs, which lies behind the scales.
                ahead_.template ask<Isa>(first + tile + 3 * kRows, INT_MAX, row);
                Arithmetic::template scores<V>(panel.queries, scratch_.strip, shape_, tile, kRows, 0,
                                               scratch_.weights.scores, V * kLanes, asks);
            }
        }
        weigh_strip<V>(panel, first, tokens, asks);
    }

    // A strip for the few lanes of each key head of a block, of which none is beyond those of the slice.
    void attend_few(const Slice& s, const Block& b, int32_t first, int tokens) noexcept {
        const auto lanes = static_cast<int>(s.lanes);
        const int padded = Few::padded(lanes);
        const float* queries[kMostFewWidth<Arithmetic>];
        float* out[kMostFewWidth<Arithmetic>];
        for (int i = 0; i < b.keys; ++i) {
            out[i] = panels_[i].out;
            queries[i] = panels_[i].few_queries;
        }
        const View &k = operands_.k, &v = operands_.values();
        const CachedRows keys = keys_of(s, b), values = values_of(s, b);
        begin_streams(s, b, first, kFewBlock);
        const char *key_rows[kStrip], *value_rows[kStrip];
        operands_.find_rows(k, s, first, tokens, key_rows);
        operands_.find_rows(v, s, first, tokens, value_rows);
        float* const scores = scratch_.weights.scores;
        alignas(64) float correction[kMostFewWidth<Arithmetic>];
        for (int t = 0; t < tokens; t += kFewBlock) {
            const int count = std::min(kFewBlock, tokens - t);
            FewAsking<typename Isa::Plain> asking(streams_, keys, values_apart() ? &values : nullptr, first + t,
                                                  Few::value_calls(b.keys, shape_.value, lanes));
            Few::scores({k.tensor->type, key_rows + t, count, int64_t{b.key} * shape_.key, b.keys, shape_.key, padded},
                        queries, scores, asking);
            for (int i = 0; i < b.keys; ++i) {
                float* const of_head = scores + i * few_scores(lanes);
                hide_few(panels_[i], lanes, of_head, first + t, count);
                float* const top = top_of(panels_[i].out);
                Few::softmax(of_head, count, padded, top, top + kPanel, correction + i * few_width(lanes));
            }
            Few::add_values(
                {v.tensor->type, value_rows + t, count, int64_t{b.key} * shape_.value, b.keys, shape_.value, padded},
                scores, panels_[0].empty, correction, out, shape_.padded_value(), asking);
            for (int i = 0; i < b.keys; ++i) panels_[i].empty = false;
        }
    }

    // hide() of the scores of few lanes.
    void hide_few(const Panel<Arithmetic>& panel, int lanes, float* scores, int32_t first, int tokens) noexcept {
        for (int lane = 0; lane < lanes; ++lane) {
            float* const of_lane = scores + lane;
            const int width = few_width(lanes);
            const int32_t last = panel.limits[lane];
            const auto begin = static_cast<int32_t>(problem_.first_seen(last));
            for (int t = 0; t < std::min(tokens, begin - first); ++t) of_lane[t * width] = kHidden;
            for (int t = std::max(0, last + 1 - first); t < tokens; ++t) of_lane[t * width] = kHidden;
        }
    }

    // Masks the tokens of a strip that lanes must not see.
    template <int V>
    void hide(const Panel<Arithmetic>& panel, int32_t first, int tokens) noexcept {
        constexpr int kWidth = V * kLanes;
        const auto hidden = Isa::splat(kHidden);
        if constexpr (Arithmetic::kBytePages) {
            scratch_.weights.limits = problem_.window > 0 ? panel.limits : nullptr;
            scratch_.weights.limit_of_first = static_cast<int32_t>(first + problem_.window - 1);
        }
        if (problem_.window > 0) {
            const auto window = static_cast<int32_t>(problem_.window);
            const int end = std::min(tokens, panel.limits[kPanel - 1] - window + 1 - first);
            for (int t = 0; t < end; ++t) {
                for (int v = 0; v < V; ++v) {
                    float* x = scratch_.weights.scores + t * kWidth + v * kLanes;
                    Isa::store(x, Isa::hide(hidden, panel.limits + v * kLanes, first + t + window, Isa::load(x)));
                }
            }
        }
        for (int t = std::max(0, panel.limits[0] + 1 - first); t < tokens; ++t) {
            for (int v = 0; v < V; ++v) {
                float* x = scratch_.weights.scores + t * kWidth + v * kLanes;
                Isa::store(x, Isa::hide(Isa::load(x), panel.limits + v * kLanes, first + t, hidden));
            }
        }
    }

    template <int V>
    void attend_strip(Panel<Arithmetic>& panel, int32_t first, int strip_tokens) noexcept {
        const int tokens = std::min(strip_tokens, panel.limits[kPanel - 1] + 1 - first);
        if (tokens <= 0 || first + tokens <= problem_.first_seen(panel.limits[0])) return;
        Arithmetic::template scores<V>(panel.queries, scratch_.strip, shape_, 0, tokens, 0, scratch_.weights.scores,
                                       V * kLanes, NoAsking());
        weigh_strip<V>(panel, first, tokens, NoAsking());
    }

    // From the scores of a strip to the panel's result. add(step, correction, share) adds up the values.
    template <int V, class Add>
    void weigh(Panel<Arithmetic>& panel, int32_t first, int tokens, Add&& add) noexcept {
        hide<V>(panel, first, tokens);
        alignas(64) float top[kPanel], sum[kPanel], step[kPanel], correction[kPanel], share[kPanel];
        Arithmetic::template softmax<V>(scratch_.weights, scratch_.strip, tokens, top, sum, step);
        Merges::template lanes<V>(top_of(panel.out), top, sum, correction, share);
        add(step, correction, share);
        panel.empty = false;
    }
    template <int V, class Asks>
    void weigh_strip(Panel<Arithmetic>& panel, int32_t first, int tokens, Asks&& asks) noexcept {
        weigh<V>(panel, first, tokens, [&](const float* step, const float* correction, const float* share) {
            Arithmetic::template add_values<V>(scratch_.weights, scratch_.strip, shape_, tokens, panel.empty, step,
                                               correction, share, panel.out, asks);
        });
    }
    template <int V, class Rows, class Asks>
    void weigh_rows(Panel<Arithmetic>& panel, const Rows& rows, int32_t first, int tokens, Asks&& asks) noexcept {
        weigh<V>(panel, first, tokens, [&](const float* step, const float* correction, const float* share) {
            Arithmetic::add_value_rows(scratch_.weights, rows, shape_, panel.lanes, V * kLanes, tokens, panel.empty,
                                       step, correction, share, panel.out, asks);
        });
    }

    float* top_of(float* result) const noexcept { return result + Panel<Arithmetic>::result_floats(shape_); }
    const float* top_of(const float* result) const noexcept {
        return result + Panel<Arithmetic>::result_floats(shape_);
    }

    // Panels whose spans are in slots: each in parts, by all workers.
    void merge_spread() noexcept {
        constexpr int kParts = 4;
        const int width = static_cast<int>(rounded_up((shape_.padded_value() + kParts - 1) / kParts, 32));
        int64_t item = 0;
        SliceList list = slices();
        for (Slice s; list.next(s);) {
            if (s.first_slot < 0) continue;
            for (int key = 0; key < problem_.key_units; ++key) {
                for (int64_t panel = 0; panel < s.panels; ++panel) {
                    for (int part = 0; part < kParts; ++part) {
                        if (item++ % run_.workers != run_.worker || part * width >= shape_.padded_value()) continue;
                        merge_part(s, key, panel, part * width, std::min((part + 1) * width, shape_.padded_value()));
                    }
                }
            }
        }
    }

    void merge_part(const Slice& s, int key, int64_t panel, int begin, int end) noexcept {
        const Result order = lies(s, panel);
        float* result = slot(s, key, panel, s.first_span);
        // Other workers read the tops and sums of these slots too, so the running ones are kept here.
        alignas(64) float running[2 * kPanel], of_group[2 * kPanel];
        for (int span = s.first_span; span < s.spans_end;) {
            const int group_end = std::min(end_of_group(span), s.spans_end);
            float* group = slot(s, key, panel, span);
            const bool first = span == s.first_span;
            float* const tops = first ? running : of_group;
            std::copy_n(top_of(group), 2 * kPanel, tops);
            for (span += spans_in(group); span < group_end; ++span) {
                const float* later = slot(s, key, panel, span);
                Merges::part(tops, group, top_of(later), later, shape_, order, begin, end);
            }
            if (!first) Merges::part(running, result, tops, group, shape_, order, begin, end);
        }
        add_sinks(s, key, panel, running, running + kPanel);
        write_part<Isa, Arithmetic>(operands_, s, key, panel, order, result, running + kPanel, begin, end);
    }

    void write(const Slice& s, int key, int64_t panel, float* result) const noexcept {
        add_sinks(s, key, panel, top_of(result), top_of(result) + kPanel);
        write_part<Isa, Arithmetic>(operands_, s, key, panel, lies(s, panel), result, top_of(result) + kPanel, 0,
                                    shape_.padded_value());
    }
    // The weights of sinks, which have no values, to the sums of all lanes.
    void add_sinks(const Slice& s, int key, int64_t panel, const float* tops, float* sums) const noexcept {
        if (!problem_.sinks) return;
        const int lanes = Lanes<Isa, Arithmetic>::count(s, panel);
        for (int i = 0; i < lanes; ++i) {
            const float sink = operands_.sinks.floats(0)[operands_.head_of(key, panel * kPanel + i)];
            sums[i] += std::exp(sink - tops[i]);
        }
    }

    const State& state_;
    const Problem& problem_;
    const HeadShape& shape_;
    const tsr_run& run_;
    const Operands operands_;
    const Spans spans_;
    const bool takes_few_;
    bool spread_ = false;
    Scratch<Arithmetic> scratch_{};
    Panel<Arithmetic>* panels_ = nullptr;
    // Whose queries are in panels_.
    int32_t loaded_slice_ = -1;
    Block loaded_{};
    Gathered gathered_{};
    char* slots_ = nullptr;
    Ahead ahead_;
    Streams streams_;
};

}  // namespace tessera::x86::attention
