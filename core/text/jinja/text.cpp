#include "core/text/jinja/text.hpp"

#include <algorithm>

namespace tessera::text::jinja {

void Marked::add(std::string_view text, bool content) {
    if (content && !text.empty()) {
        if (!contents.empty() && contents.back().end == bytes.size()) {
            contents.back().end += text.size();
        } else {
            contents.push_back({bytes.size(), bytes.size() + text.size()});
        }
    }
    bytes += text;
}

void Marked::add(const Text& text) {
    text.runs([&](std::string_view run, bool content) { add(run, content); });
}

Text Text::content(std::string text) {
    const TextRange all{0, text.size()};
    Marked made{std::move(text), {}};
    if (all.end > 0) made.contents.push_back(all);
    return Text(std::move(made));
}

Text Text::part(std::string_view part) const {
    Text one = *this;
    one.begin_ = part.empty() || !owner_ ? begin_ : static_cast<size_t>(part.data() - owner_->bytes.data());
    one.length_ = part.size();
    return one;
}

size_t Text::append(const Text& more) {
    size_t copied = more.size();
    if (more.owner_ != owner_ && owner_.use_count() == 1 && begin_ == 0 && length_ == owner_->bytes.size()) {
        owner_->add(more);
    } else {
        auto made = std::make_shared<Marked>();
        made->bytes.reserve(length_ + more.size());
        made->add(*this);
        made->add(more);
        copied += length_;
        owner_ = std::move(made);
        begin_ = 0;
    }
    length_ = owner_->bytes.size();
    return copied;
}

size_t Text::first_range() const noexcept {
    const auto found =
        std::ranges::upper_bound(owner_->contents, begin_, {}, [](const TextRange& range) { return range.end; });
    return static_cast<size_t>(found - owner_->contents.begin());
}

bool Text::is_content(size_t place) const noexcept {
    if (!owner_) return false;
    const size_t at = begin_ + place;
    const auto found = std::ranges::upper_bound(owner_->contents, at, {}, &TextRange::end);
    return found != owner_->contents.end() && found->begin <= at;
}

}  // namespace tessera::text::jinja
