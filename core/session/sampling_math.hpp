// The exponential that sampling uses: made of additions and multiplications alone, so that it is bit for bit the same
// on every machine with IEEE 754 doubles. Compile its users with -ffp-contract=off.
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

}  // namespace tessera::session
