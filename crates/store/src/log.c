/* The natural logarithm. SQLite's full-text search asks for it, by a ranking that we don't use; with it in here no start of a program
   has to load the maths library for that (a dozen page faults). As the C standard has it, right to twelve digits. */

#include <stdint.h>
#include <string.h>

double log(double number)
{
    uint64_t bits;
    int64_t exponent = -1023;
    double mantissa, part, square, sum = 0.0;
    if (!(number > 0.0))
        return number == 0.0 ? -1.0 / (number * number) : 0.0 / (number - number);
    if (number > 1.7976931348623157e308)
        return number;
    if (number < 2.2250738585072014e-308) {
        number *= 18014398509481984.0;
        exponent -= 54;
    }
    memcpy(&bits, &number, sizeof bits);
    exponent += (int64_t)(bits >> 52);
    bits = (bits & 0x000fffffffffffffULL) | 0x3ff0000000000000ULL;
    memcpy(&mantissa, &bits, sizeof mantissa);
    if (mantissa > 1.4142135623730951) {
        mantissa /= 2.0;
        exponent += 1;
    }
    part = (mantissa - 1.0) / (mantissa + 1.0);
    square = part * part;
    for (int n = 19; n > 0; n -= 2)
        sum = sum * square + 1.0 / n;
    return (double)exponent * 0.6931471805599453 + 2.0 * part * sum;
}
