/// Decimal text to float32, rounded exactly as if computed without limit of precision.
#pragma once

#include <bit>
#include <charconv>
#include <cstdint>
#include <system_error>
#include <version>

#if !defined(__cpp_lib_to_chars)
#include <locale.h>
#include <cmath>
#include <cstdlib>
#include <string>
#endif

namespace ramify {

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

struct Decimal {
    const char* end = nullptr;  ///< behind the number; null if there is none
    float value = 0.0f;
    bool too_large = false;
};

namespace detail {

inline constexpr double powers_of_ten[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                             1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/// The rounding of the unsigned number in [begin, end) when the quick way does not apply.
inline Decimal round_slowly(const char* begin, const char* end, std::int64_t exponent) {
    Decimal result{end};
#if defined(__cpp_lib_to_chars)
    const bool out_of_range = std::from_chars(begin, end, result.value).ec == std::errc::result_out_of_range;
#else
    // Standard libraries without from_chars for floats: the C function, kept away from the user's locale.
    static const locale_t c_locale = newlocale(LC_ALL_MASK, "C", nullptr);
    result.value = strtof_l(std::string(begin, end).c_str(), nullptr, c_locale);
    const bool out_of_range = std::isinf(result.value);
#endif
    if (!out_of_range) return result;
    // Out of range says neither too large nor too small: the place of the first digit that counts does.
    std::int64_t magnitude = exponent;
    bool counts = false, after_point = false;
    for (const char* p = begin; p != end && (is_digit(*p) || *p == '.'); ++p) {
        if (*p == '.')
            after_point = true;
        else if (counts |= * p != '0'; counts && !after_point)
            ++magnitude;
        else if (!counts && after_point)
            --magnitude;
    }
    result.value = 0.0f;
    result.too_large = counts && magnitude > 0;
    return result;
}

}  // namespace detail

/// Reads [+-]digits[.digits][e[+-]digits] from p on. The text must end in something that is no digit, '.', 'e' or sign:
/// a line's end or the zero behind a string stops the loops, so that they need no bounds check.
inline Decimal parse_decimal(const char* p) {
    const bool is_negative = *p == '-';
    if (is_negative || *p == '+') ++p;
    const char* const begin = p;
    std::uint64_t mantissa = 0;  // may wrap round; then there are more than 19 digits and it is not used
    while (is_digit(*p)) mantissa = mantissa * 10 + static_cast<std::uint64_t>(*p++ - '0');
    std::int64_t n_digits = p - begin, shift = 0, exponent = 0;
    if (*p == '.') {
        const char* const point = ++p;
        while (is_digit(*p)) mantissa = mantissa * 10 + static_cast<std::uint64_t>(*p++ - '0');
        shift = point - p;
        n_digits -= shift;
    }
    if (n_digits == 0) return {};
    if (*p == 'e' || *p == 'E') {
        const char* q = p + 1;
        const bool is_small = *q == '-';
        if (is_small || *q == '+') ++q;
        if (!is_digit(*q)) return {};
        for (; is_digit(*q); ++q)
            if (exponent < 1'000'000'000'000) exponent = exponent * 10 + (*q - '0');
        if (is_small) exponent = -exponent;
        p = q;
    }
    // Both the mantissa and the power of ten are exact doubles, so their product or quotient is rounded once. Rounding
    // that to float32 rounds a second time, which is wrong only where the double lies half way between two floats.
    if (const std::int64_t power = exponent + shift;
        n_digits <= 19 && mantissa <= (1ull << 53) && power >= -22 && power <= 22) {
        const double number = power < 0 ? static_cast<double>(mantissa) / detail::powers_of_ten[-power]
                                        : static_cast<double>(mantissa) * detail::powers_of_ten[power];
        if ((std::bit_cast<std::uint64_t>(number) & 0x1fffffff) != 0x10000000) {
            const auto value = static_cast<float>(number);
            return {p, is_negative ? -value : value, false};
        }
    }
    Decimal result = detail::round_slowly(begin, p, exponent);
    if (is_negative) result.value = -result.value;
    return result;
}

}  // namespace ramify
