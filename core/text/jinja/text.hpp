// Texts that know which of their bytes people or the model wrote: those never become control tokens, wherever a
// template moves them.
#pragma once

#include "core/text/tokenizer.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::text::jinja {

class Text;

// A text that is being made. `contents` are the bytes that are not the template's own, in rising order; ranges that
// touch are one.
struct Marked {
    std::string bytes;
    std::vector<TextRange> contents;

    void add(std::string_view text, bool content);
    void own(std::string_view text) { bytes += text; }
    void add(const Text& text);
};

// A text, or a part of one, which it shares.
class Text {
  public:
    Text() = default;
    explicit Text(std::string own) : Text(Marked{std::move(own), {}}) {}
    explicit Text(Marked text) : owner_(std::make_shared<Marked>(std::move(text))), length_(owner_->bytes.size()) {}
    static Text content(std::string text);

    std::string_view view() const noexcept {
        return owner_ ? std::string_view(owner_->bytes).substr(begin_, length_) : std::string_view();
    }
    size_t size() const noexcept { return length_; }
    // `part` must be a part of view().
    Text part(std::string_view part) const;
    // Appends, in place if nobody else has the text. Returns how many bytes were copied.
    size_t append(const Text& more);

    // Calls run(std::string_view, bool content) for the text from its start to its end.
    template <typename Run>
    void runs(const Run& run) const {
        const std::string_view all = view();
        size_t at = 0;
        for (size_t i = owner_ ? first_range() : 0; owner_ && i < owner_->contents.size(); ++i) {
            const TextRange& range = owner_->contents[i];
            if (range.begin >= begin_ + length_) break;
            const size_t begin = range.begin < begin_ ? 0 : range.begin - begin_;
            const size_t end = range.end - begin_ < length_ ? range.end - begin_ : length_;
            if (begin > at) run(all.substr(at, begin - at), false);
            run(all.substr(begin, end - begin), true);
            at = end;
        }
        if (at < all.size()) run(all.substr(at), false);
    }
    // Of the byte at `place`.
    bool is_content(size_t place) const noexcept;

    // What the filters safe and escape make: what is added to it is escaped.
    bool markup = false;

  private:
    // Of owner_->contents, the first that ends behind begin_.
    size_t first_range() const noexcept;

    std::shared_ptr<Marked> owner_;
    size_t begin_ = 0;
    size_t length_ = 0;
};

}  // namespace tessera::text::jinja
