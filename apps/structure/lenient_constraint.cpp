#include "apps/structure/lenient_constraint.hpp"

#include "core/base/error.hpp"
#include "core/base/log.hpp"

#include <utility>

namespace tessera::structure {
namespace {

class LenientConstraint final : public session::TokenConstraint {
  public:
    explicit LenientConstraint(const std::function<std::unique_ptr<session::TokenConstraint>()>& make) {
        held([&] { return inner_ = make(), true; }, false);
    }

    bool wait(std::chrono::steady_clock::time_point until) override {
        return held([&] { return inner_->wait(until); }, true);
    }
    // What the form leaves no choice about can be spelt by other tokens than those that the model would choose.
    std::span<const int32_t> forced() override { return {}; }
    session::TokenMask allowed() override {
        return held([&] { return inner_->allowed(); }, session::TokenMask());
    }
    void accept(std::span<const int32_t> tokens) override {
        held([&] { return inner_->accept(tokens), true; }, false);
    }

  private:
    // `otherwise`: once the form has failed.
    template <typename Work, typename Value>
    Value held(const Work& work, Value otherwise) {
        if (failed_) return otherwise;
        try {
            return work();
        } catch (const Error& error) {
            log().warn("an answer is no longer held to its tools' schemas: {}", error.what());
            failed_ = true;
            inner_.reset();
            return otherwise;
        }
    }

    std::unique_ptr<session::TokenConstraint> inner_;
    bool failed_ = false;
};

}  // namespace

std::unique_ptr<session::TokenConstraint> free_where_it_fails(
    const std::function<std::unique_ptr<session::TokenConstraint>()>& make) {
    return std::make_unique<LenientConstraint>(make);
}

}  // namespace tessera::structure
