// The functions that sampling uses: made of additions and multiplications alone, so that they are bit for bit the
// same on every machine with IEEE 754 doubles. Compile its users with -ffp-contract=off.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace tessera::session {

// exp(x) for x <= 0, error below 1e-15 relative; 0 below -708, where results would lose precision.
inline double exp_of_negative(double x) noexcept {
    if (!(x >= -708.0)) return 0.0;
    // x = k ln 2 + r with |r| <= ln 2 / 2; ln 2 in two parts, of which the first has zeros at its end so that k times
    // it is exact.
    constexpr double kLn2High = 0x1.62e42fefa0000p-1;
    constexpr double kLn2Low = 0x1.cf79abc9e3b3ap-40;
    const double k = std::floor(x * 0x1.71547652b82fep0 + 0.5);
    const double r = (x - k * kLn2High) - k * kLn2Low;
    // Taylor's series, 1 / n!: the first term left out is below 3e-17 at the ends.
    constexpr double kCoefficients[] = {1.0 / 6227020800.0,
                                        1.0 / 479001600.0,
                                        1.0 / 39916800.0,
                                        1.0 / 3628800.0,
                                        1.0 / 362880.0,
                                        1.0 / 40320.0,
                                        1.0 / 5040.0,
                                        1.0 / 720.0,
                                        1.0 / 120.0,
                                        1.0 / 24.0,
                                        1.0 / 6.0,
                                        1.0 / 2.0,
                                        1.0,
                                        1.0};
    double sum = 0.0;
    for (const double coefficient : kCoefficients) sum = sum * r + coefficient;
    return sum * std::bit_cast<double>(static_cast<uint64_t>(static_cast<int64_t>(k) + 1023) << 52);
}

inline constexpr double kLn2 = 0x1.62e42fefa39efp-1;

// log(x) for normal x > 0, error below 2e-16 of the result or of 1, whichever is more.
inline double logarithm(double x) noexcept {
    const auto bits = std::bit_cast<uint64_t>(x);
    // x = 2^k m with m from sqrt(1/2) to sqrt(2).
    constexpr uint64_t kSqrtHalf = 0x3fe6a09e667f3bcd;
    const auto k = static_cast<int64_t>(bits - kSqrtHalf) >> 52;
    const auto m = std::bit_cast<double>(bits - (static_cast<uint64_t>(k) << 52));
    // log m = 2 artanh(f), f = (m - 1) / (m + 1), |f| < 0.172; the first term left out is below 1e-19.
    const double f = (m - 1.0) / (m + 1.0);
    const double square = f * f;
    double sum = 0.0;
    for (int n = 23; n >= 3; n -= 2) sum = (sum + 1.0 / n) * square;
    return static_cast<double>(k) * kLn2 + 2.0 * (f + f * sum);
}

// x^y for x from 0 to 1 and y >= 0; 0^0 is 1.
inline double power_below_one(double x, double y) noexcept {
    if (y == 0.0) return 1.0;
    return x < 0x1p-1000 ? 0.0 : exp_of_negative(y * logarithm(x));
}

// x^n by squaring.
inline double whole_power(double x, uint32_t n) noexcept {
    double result = 1.0;
    for (; n != 0; n >>= 1, x *= x)
        if (n & 1) result *= x;
    return result;
}

}  // namespace tessera::session
