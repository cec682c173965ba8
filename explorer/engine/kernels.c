/* Products of one row with a matrix, and RMS norms of a few rows, for the engine's modes.
 *
 * Sums run in LANES parts that are added pairwise at the end: rounding stays as small as that of
 * a library's kernel, but differs from it in the last bits.  No fast-math: NaN and infinity stay.
 */
#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__F16C__) && defined(__FMA__)
#include <immintrin.h>
#endif

enum { LANES = 32, AHEAD = 4096, ALONE = 65536 }; /* AHEAD: bytes fetched in advance */

static float folded(float *part)
{
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            part[i] += part[i + half];
    return part[0];
}

static float wide(uint16_t bits)
{
    _Float16 value;
    memcpy(&value, &bits, sizeof value);
    return (float)value;
}

static float dot32(const float *restrict row, const float *restrict x, long width)
{
    float part[LANES] = {0}, sum;
    long j = 0;
    for (; j + LANES <= width; j += LANES) {
        __builtin_prefetch((const char *)(row + j) + AHEAD, 0, 0);
        __builtin_prefetch((const char *)(row + j) + AHEAD + 64, 0, 0);
        for (int i = 0; i < LANES; i++)
            part[i] += row[j + i] * x[j + i];
    }
    sum = folded(part);
    for (; j < width; j++)
        sum += row[j] * x[j];
    return sum;
}

static float dot16(const uint16_t *restrict row, const float *restrict x, long width)
{
    float part[LANES] = {0}, sum;
    long j = 0;
#if defined(__F16C__) && defined(__FMA__)
    __m256 sums[LANES / 8] = {0};
    for (; j + LANES <= width; j += LANES) {
        __builtin_prefetch((const char *)(row + j) + AHEAD, 0, 0);
        for (int i = 0; i < LANES / 8; i++) {
            __m128i halves = _mm_loadu_si128((const __m128i *)(row + j + 8 * i));
            __m256 others = _mm256_loadu_ps(x + j + 8 * i);
            sums[i] = _mm256_fmadd_ps(_mm256_cvtph_ps(halves), others, sums[i]);
        }
    }
    memcpy(part, sums, sizeof sums);
#else
    for (; j + LANES <= width; j += LANES)
        for (int i = 0; i < LANES; i++)
            part[i] += wide(row[j + i]) * x[j + i];
#endif
    sum = folded(part);
    for (; j < width; j++)
        sum += wide(row[j]) * x[j];
    return sum;
}

/* y (rows) = W (rows, width) x (width) + bias (rows, or null) */
void linear32(const float *w, const float *bias, const float *x, float *y, long rows, long width,
              int threads)
{
#pragma omp parallel for num_threads(threads) if (threads > 1 && rows * width > ALONE)
    for (long r = 0; r < rows; r++)
        y[r] = dot32(w + r * width, x, width) + (bias ? bias[r] : 0);
}

/* The same of a matrix kept as float16; the arithmetic is float32. */
void linear16(const uint16_t *w, const float *bias, const float *x, float *y, long rows,
              long width, int threads)
{
#pragma omp parallel for num_threads(threads) if (threads > 1 && rows * width > ALONE)
    for (long r = 0; r < rows; r++)
        y[r] = dot16(w + r * width, x, width) + (bias ? bias[r] : 0);
}

/* y (rows, width) = weight (width) times x over the root of its mean square */
void rms_norm(const float *weight, const float *x, float *y, long rows, long width, float epsilon)
{
    for (long r = 0; r < rows; r++, x += width, y += width) {
        float scale = 1 / sqrtf(dot32(x, x, width) / (float)width + epsilon);
        for (long j = 0; j < width; j++)
            y[j] = weight[j] * (x[j] * scale);
    }
}

/* y (heads, width) = x turned by angles given as cosines and sines (width), halves in pairs */
void rotary(const float *restrict x, const float *restrict cosine, const float *restrict sine,
            float *restrict y, long heads, long width)
{
    long half = width / 2;
    for (long h = 0; h < heads; h++, x += width, y += width)
        for (long j = 0; j < half; j++) {
            y[j] = x[j] * cosine[j] - x[j + half] * sine[j];
            y[j + half] = x[j + half] * cosine[j + half] + x[j] * sine[j + half];
        }
}
