#include "core/model/not_computed.hpp"

#include "core/base/error.hpp"

#include <spdlog/fmt/ranges.h>

#include <algorithm>

namespace tessera {
namespace {

class Reasons {
  public:
    explicit Reasons(const ModelDescription& model) : model_(model) {
        say(model.logit_softcap != 0, "a cap of logits");
        say(model.layers.empty(), "a model without layers");
        for (layer_ = 0; layer_ < static_cast<int64_t>(model.layers.size()); ++layer_) {
            const Layer& layer = model.layers[static_cast<size_t>(layer_)];
            say(layer.parallel, "attention and feed-forward of the same rows");
            attention(layer.attention);
            feed_forward(layer.feed_forward);
        }
    }

    std::vector<std::string> lines;

  private:
    // Once for all layers.
    void say(bool asked, std::string_view what) {
        if (!asked || std::ranges::find(said_, what) != said_.end()) return;
        said_.emplace_back(what);
        lines.push_back(layer_ < 0 ? std::string(what) : fmt::format("{} (layer {})", what, layer_));
    }

    void attention(const Attention& a) {
        say(a.kind == AttentionKind::kRecurrent || a.state, "layers with a recurrent state");
        say(a.softcap != 0, "a cap of attention scores");
        say(a.chunked, "attention to a window that begins at multiples of its length");
        say(a.gate == OutputGate::kElements, "a gate on each element that attention gives");
        say(a.cache_of.has_value(), "keys and values of another layer");
        if (a.kind == AttentionKind::kLatent) {
            say(!a.rope, "latent attention without positions");
            say(a.head_norm != HeadNorm::kNone, "norms of the heads of latent attention");
            say(a.window > 0 && a.window < model_.context, "latent attention to a window of tokens");
            say(a.sinks, "sinks of latent attention");
            say(a.gate == OutputGate::kHeads, "gates on the heads of latent attention");
            say(a.value_scale != 1, "scaled values of latent attention");
            say(a.rope && a.rope->ext_factor != 0 && !a.rope->whole_ramp,
                "a ramp of latent attention that ends between pairs");
            return;
        }
        say(a.norm_after_rope && a.head_norm == HeadNorm::kRows, "norms of rows after the rotary embedding");
    }

    void feed_forward(const FeedForward& f) {
        say(f.experts && f.experts->gating == Gating::kSqrtSoftplus, "gating by the root of softplus");
    }

    const ModelDescription& model_;
    int64_t layer_ = -1;
    std::vector<std::string> said_;
};

}  // namespace

CacheKind cache_kind(const Attention& attention) {
    if (attention.kind == AttentionKind::kRecurrent) return CacheKind::kState;
    if (attention.cache_of) return CacheKind::kNone;
    return attention.window > 0 ? CacheKind::kWindow : CacheKind::kAllTokens;
}

std::vector<std::string> not_computed(const ModelDescription& description) {
    return Reasons(description).lines;
}

void check_computed(const ModelDescription& description, const ModelFile& model) {
    const std::vector<std::string> lines = not_computed(description);
    if (lines.empty()) return;
    fail(TSR_UNSUPPORTED, "{}: a model of the architecture '{}' that needs what this version does not compute: {}",
         model.source(), model.architecture(), fmt::join(lines, ", "));
}

}  // namespace tessera
