// Forms that answers keep to where that is possible.
#include "apps/structure/lenient_constraint.hpp"

#include "core/base/error.hpp"

#include <gmock/gmock.h>

#include <string_view>

namespace tessera::structure {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Forces token 7 and allows tokens 0 and 2, but for the call that fails.
class Failing final : public session::TokenConstraint {
  public:
    explicit Failing(std::string_view call) : call_(call) {}
    bool wait(std::chrono::steady_clock::time_point /*until*/) override { return may_fail("wait"), false; }
    std::span<const int32_t> forced() override { return forced_; }
    session::TokenMask allowed() override { return may_fail("allowed"), allowed_; }
    void accept(std::span<const int32_t> /*tokens*/) override { may_fail("accept"); }

  private:
    void may_fail(std::string_view call) const {
        if (call == call_) fail(TSR_IO_ERROR, "{} fails", call);
    }
    const std::string_view call_;
    const int32_t forced_[1] = {7};
    const uint32_t allowed_[1] = {5};
};

// The four calls once, with the token that came.
void call_all(session::TokenConstraint& constraint) {
    constraint.wait({});
    constraint.forced();
    constraint.allowed();
    constexpr int32_t token = 1;
    constraint.accept(std::span(&token, 1));
}

TEST(LenientConstraint, HoldsAsTheOtherDoesButForcesNothing) {
    const auto constraint = free_where_it_fails([] { return std::make_unique<Failing>(""); });
    for (int i = 0; i < 2; ++i) {
        EXPECT_FALSE(constraint->wait({}));
        EXPECT_THAT(constraint->forced(), IsEmpty());
        EXPECT_THAT(constraint->allowed(), ElementsAre(5u));
        call_all(*constraint);
    }
}

TEST(LenientConstraint, AllowsAnythingAfterAFailure) {
    for (const std::string_view call : {"wait", "allowed", "accept", "make"}) {
        const auto constraint = free_where_it_fails([&] {
            if (call == "make") fail(TSR_IO_ERROR, "it cannot be made");
            return std::make_unique<Failing>(call);
        });
        call_all(*constraint);
        EXPECT_TRUE(constraint->wait({})) << call;
        EXPECT_THAT(constraint->forced(), IsEmpty()) << call;
        EXPECT_THAT(constraint->allowed(), IsEmpty()) << call;
        call_all(*constraint);
    }
}

}  // namespace
}  // namespace tessera::structure
