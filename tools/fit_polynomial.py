#!/usr/bin/env python3
"""Fits the polynomials of src/functions and prints them as C++ tables.

    tools/fit_polynomial.py             all of them
    tools/fit_polynomial.py exp_f32 …   only these

Each fit minimises the largest weighted error over an interval (Remez' exchange on a dense grid). Then the
coefficients are rounded to the table's type one by one and the others are fitted again each time, so that
they make up for the rounding. Needs mpmath.
"""
import sys
import numpy as np
from mpmath import mp, mpf

mp.dps = 45


def grid_of(a, b, n):
    k = [mp.cos(mp.pi * (mpf(2 * i + 1)) / (2 * n)) for i in range(n)]
    return [(a + b) / 2 - (b - a) / 2 * c for c in k]


def remez(xs, fs, ws, powers):
    """Coefficients c that minimise max w|f - sum c_j x^p_j| over the grid, and that maximum."""
    n = len(powers)
    step = (len(xs) - 1) / n
    pick = [round(i * step) for i in range(n + 1)]
    for _ in range(30):
        rows = mp.matrix(n + 1, n + 1)
        rhs = mp.matrix(n + 1, 1)
        for r, i in enumerate(pick):
            for c, p in enumerate(powers):
                rows[r, c] = xs[i] ** p
            rows[r, n] = (-1) ** r / ws[i]
            rhs[r] = fs[i]
        solution = mp.lu_solve(rows, rhs)
        coefficients = [solution[i] for i in range(n)]
        level = abs(solution[n])
        errors = [w * (f - sum(c * x**p for c, p in zip(coefficients, powers)))
                  for x, f, w in zip(xs, fs, ws)]
        best = max(abs(e) for e in errors)
        if best <= level * (1 + mpf(10) ** -3) or level == 0:
            break
        pick = exchange(errors, n + 1, pick)
    return coefficients, best


def exchange(errors, count, old):
    """The grid points of alternating extrema, `count` of them, among them the largest."""
    runs = []
    for i, e in enumerate(errors):
        if runs and (errors[runs[-1]] > 0) == (e > 0):
            if abs(e) > abs(errors[runs[-1]]):
                runs[-1] = i
        else:
            runs.append(i)
    while len(runs) > count:
        drop = 0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1
        runs.pop(drop)
    return runs if len(runs) == count else old


def round_to(value, bits):
    if value == 0:
        return value
    exponent = mp.floor(mp.log(abs(value), 2))
    unit = mpf(2) ** (exponent - bits + 1)
    return mp.nint(value / unit) * unit


def fit(f, a, b, powers, weight, bits, points=40, order=None):
    xs = [x for x in grid_of(mpf(a), mpf(b), points * (len(powers) + 1)) if abs(x) > mpf(10) ** -12]
    fs = [f(x) for x in xs]
    ws = [weight(x) for x in xs]
    left = list(powers)
    fixed = {}
    _, ideal = remez(xs, fs, ws, left)
    while left:
        coefficients, _ = remez(xs, fs, ws, left)
        # Powers without the lowest are unique only where x keeps its sign.
        i = 0 if a >= 0 else len(left) - 1
        p = left.pop(i)
        fixed[p] = round_to(coefficients[i], bits)
        fs = [v - fixed[p] * x**p for v, x in zip(fs, xs)]
    final = max(abs(w * v) for v, w in zip(fs, ws))
    return [fixed[p] for p in powers], ideal, final


def show(name, values, bits, ideal, final):
    print(f'// {name}: relative error 2^{float(mp.log(final, 2)):.1f} (unrounded 2^{float(mp.log(ideal, 2)):.1f})')
    texts = [f'{np.float32(float(v))!s}f' if bits == 24 else repr(float(v)) for v in values]
    print('{' + ', '.join(texts) + '}')


L = mp.log(2) / 2 * mpf('1.002')
R2 = mp.sqrt(2)
Q = mp.pi / 4 * mpf('1.0005')


def series(function):
    """`function`, with more digits for what cancels near 0."""
    def value(x):
        with mp.extradps(60):
            return function(mpf(x))
    return value


FITS = {}


def table(name, f, a, b, powers, weight, bits):
    FITS[name] = (series(f), a, b, powers, series(weight), bits)


for bits, n in ((24, 5), (53, 10)):
    t = 'f32' if bits == 24 else 'f64'
    # e^r - 1 = r + r^2/2 + r^3 q(r)
    table(f'expm1_{t}', lambda x: (mp.expm1(x) - x - x**2 / 2) / x**3, -L, L, range(n), lambda x: abs(x**3 / mp.expm1(x)), bits)
# log(1 + f) = f - f^2/2 + f^3 q(f)
table('log_f32', lambda x: (mp.log1p(x) - x + x * x / 2) / x**3, 1 / R2 - 1, R2 - 1, range(8),
      lambda x: abs(x**3 / mp.log1p(x)), 24)
# log((1 + s)/(1 - s)) = 2s + s z q(z), z = s^2
smax = (R2 - 1) / (R2 + 1)
table('log_f64', lambda z: (mp.log((1 + mp.sqrt(z)) / (1 - mp.sqrt(z))) / mp.sqrt(z) - 2) / z, 0, smax**2 * mpf('1.001'), range(7),
      lambda z: z / 2, 53)
# tanh(x) = x + x^3 q(x^2)
table('tanh_f32', lambda z: (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, 0, mpf('0.5626') ** 2, range(5),
      lambda z: z * mp.sqrt(z) / mp.tanh(mp.sqrt(z)), 24)
# sin(x) = x + x^3 q(x^2), cos(x) = 1 - x^2/2 + x^4 q(x^2)
for bits, n in ((24, 3), (53, 6)):
    t = 'f32' if bits == 24 else 'f64'
    table(f'sin_{t}', lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, 0, Q**2, range(n),
          lambda z: z * mp.sqrt(z) / mp.sin(mp.sqrt(z)), bits)
    table(f'cos_{t}', lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, 0, Q**2, range(n),
          lambda z: z**2 / mp.cos(mp.sqrt(z)), bits)

# log2((1 + s)/(1 - s)) = s q(s^2), and 2^r, for the power of floats
table('log2_power', lambda z: mp.log((1 + mp.sqrt(z)) / (1 - mp.sqrt(z)), 2) / mp.sqrt(z), 0, smax**2 * mpf('1.001'), range(7),
      lambda z: mp.sqrt(z) / mp.log((1 + mp.sqrt(z)) / (1 - mp.sqrt(z)), 2), 53)
table('exp2_power', lambda x: mpf(2)**x, mpf('-0.5001'), mpf('0.5001'), range(8), lambda x: mpf(2)**-x, 53)

# log((1 + s)/(1 - s)) = 2s + 2/3 s^3 + s^5 q(s^2), for the power of doubles
def log_power(z):
    s = mp.sqrt(z)
    return (mp.log((1 + s) / (1 - s)) - 2 * s - 2 * s**3 / 3) / s**5


table('log_power', log_power, mpf('1e-6'), smax**2 * mpf('1.001'), range(8), lambda z: z * z / 2, 53)
# asin(x) = x + x^3 q(x^2) up to 1/2; atan(x) = x + x^3 q(x^2) up to tan(pi/8)
table('asin', lambda z: (mp.asin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, 0, mpf('0.2501'), range(12), lambda z: z, 53)
table('atan', lambda z: (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, 0, mpf('0.17158'), range(11), lambda z: z, 53)
# r^(-1/3) around 1, for the guess of cbrt
table('cbrt', lambda r: r ** (-mpf(1) / 3), mpf('0.9097'), mpf('1.0993'), range(5), lambda r: r ** (mpf(1) / 3), 53)
# erf(x) = x + x p(x^2), and log(erfc(x)), whose error counts by erfc/erf
for t, bits, n, m in (('f32', 24, 6, 8), ('f64', 53, 12, 20)):
    split = mpf('0.9')
    table(f'erf_small_{t}', lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1, 0, split**2, range(n), lambda z: 1, bits)
    table(f'erf_large_{t}', lambda x: mp.log(mp.erfc(x)), split, 4 if bits == 24 else 6, range(m), lambda x: mp.erfc(x) / mp.erf(x), bits)


def main():
    for name in sys.argv[1:] or FITS:
        f, a, b, powers, weight, bits = FITS[name]
        values, ideal, final = fit(f, a, b, list(powers), weight, bits)
        show(name, values, bits, ideal, final)


if __name__ == '__main__':
    main()
