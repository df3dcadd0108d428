"""The laws that are no patterns: of sums and other reductions, of conditions, of index values. One a line.

Each has the function that uses it, which says so (`used`). In the notation v and w are bound variables, `[i < j]` is 1
where it holds and else 0, f and g are terms, e is an index expression. tests/support/structural_laws.py has an
instance of each.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A law, where it holds, and the function of `terms` that uses it."""

    name: str
    left: str
    right: str
    by: str
    when: str = ""


REWRITINGS = (
    Rewriting("sum of terms", "sum v. (f + g)", "(sum v. f) + (sum v. g)", "sums.reduce_sum"),
    Rewriting(
        "factor of a sum",
        "sum v. f * g(v)",
        "f * sum v. g(v)",
        "sums._sum_monomial",
        "f is a number, or computed for all v or none",
    ),
    Rewriting("sum of one term", "sum v<n. f", "n * f", "sums._sum_monomial"),
    Rewriting("sum of a sum", "sum v. sum w. g", "sum v,w. g", "sums._sum_product"),
    Rewriting("sum of values in order", "sum v. sorted(f)[v]", "sum v. f(v)", "sums_in_order.summed_in_order"),
    Rewriting("one point", "sum v<n. [v = e] g(v)", "[0 <= e < n] g(e)", "fixing._one_point", "one v at most is e"),
    Rewriting(
        "one in every",
        "sum v<n. [(v + e) mod m = r] g(v)",
        "sum u<n/m. g((r - e) mod m + m*u)",
        "fixing._one_in_every",
        "v has a factor that is prime to m",
    ),
    Rewriting(
        "one entry",
        "sum v<n. [table[v] = e] g(v)",
        "[e is an entry] g(place[e])",
        "fixing._one_entry",
        "no two are equal",
    ),
    Rewriting(
        "what a condition tells",
        "sum v. [e(v) = i] f(v) g(e(v))",
        "g(i) * sum v. [e(v) = i] f(v)",
        "told_places.told",
        "i is one of the values that e(v) may have, and g(i) a number if g(e(v)) is",
    ),
    Rewriting(
        "sum of what is put together",
        "sum v<n. ([v < k] f + [v >= k] g) h",
        "(sum v<n. [v < k] f h) + (sum v<n. [v >= k] g h)",
        "sums._put_together",
    ),
    Rewriting("part of a range", "sum v<n. [a <= v <= b] g(v)", "sum w<b-a+1. g(a + w)", "fixing.eliminated"),
    Rewriting(
        "what is picked by a sum",
        "sum v. (sum w. [e(w) = v] g(w)) h(v)",
        "sum w. g(w) h(e(w))",
        "sums._picked",
        "g and h are numbers",
    ),
    Rewriting(
        "product of sums",
        "sum v,w. f(v) g(w)",
        "(sum v. f(v)) (sum w. g(w))",
        "sums._sum_product",
        "no condition in one selects what may be no number in the other",
    ),
    Rewriting(
        "sum inside of a sum",
        "sum v,w. f(v,w) g(v)",
        "sum v. (sum w. f(v,w)) g(v)",
        "sums._push",
        "no condition in one selects what may be no number in the other",
    ),
    Rewriting("factor of a named term", "sum v. t(v)", "f * sum v. g(v)", "sums._parted", "t(v) is f * g(v)"),
    Rewriting("digits joined", "sum a<m. sum b<n. g(a + m*b)", "sum k<m*n. g(k)", "merging._join"),
    Rewriting(
        "digits reunited",
        "sum a<m. sum b<n. g(a + m*b) h((e(a) + c*b) mod k)",
        "sum v<m*n. g(v) h(e(v) mod k)",
        "merging._reunited",
        "e(a) + c*b is e(a + m*b) modulo k",
    ),
    Rewriting(
        "conditions side by side",
        "[lo <= a + k*b <= hi] x(a + n*b)",
        "[lo' <= a + n*b <= hi'] x(a + n*b)",
        "side_by_side._spans",
        "a has n values, and those of a and b that the condition asks for are neighbours",
    ),
    Rewriting("counted down", "sum v<n. g(n-1-v)", "sum v<n. g(v)", "merging._forwards"),
    Rewriting("rotation", "sum v<n. g((e + c*v) mod n)", "sum v<n. g(v)", "merging._unrotated", "c is prime to n"),
    Rewriting(
        "turns of a ring",
        "sum_i sum v<k. g((e + a_i + c*v) mod n)",
        "sum v<n. g(v)",
        "rotations._joined_once",
        "the a_i + c*v are every residue modulo n, each as often",
    ),
    Rewriting("ring of two", "f(e) + f(1 - e)", "sum v<2. f(v)", "ring_of_two._joined_once", "e is 0 or 1"),
    Rewriting("wrapped by a condition", "e - n*[e >= n]", "e mod n", "wrapping.wrapped", "0 <= e < 2*n"),
    Rewriting(
        "sum piece by piece",
        "(sum v<a. f(v)) + (sum v<b. f(v + a))",
        "sum v<a+b. f(v)",
        "neighbours._shorter",
        "of one f, found in both; a sum over one v is f itself",
    ),
    Rewriting(
        "what is picked one by one",
        "[a <= e <= b] f(e) + [e = c] f(c)",
        "[a <= e <= c] f(e)",
        "picking._both",
        "c is b + 1, f(c) a number, and the other term f(c)",
    ),
    Rewriting(
        "pieces in line",
        "[d = 0] f(0) + [d = 1] f(1) + [d >= 2] f(d)",
        "f(d)",
        "in_line._joined",
        "of one f, found at each place",
    ),
    Rewriting("extremum of what is negated", "max v. -f(v)", "-(min v. f(v))", "extrema.reduce_extremum"),
    Rewriting("multiple in an extremum", "max v. c*f(v)", "c * max v. f(v)", "extrema.reduce_extremum", "c > 0"),
    Rewriting(
        "extremum of an increasing function",
        "max v. a*exp(f(v)) + b",
        "a*exp(max v. f(v)) + b",
        "extrema.reduce_extremum",
        "a > 0, and all of them are finite numbers",
    ),
    Rewriting("extrema over variables", "max v. max w. f", "max v,w. f", "extrema.reduce_extremum"),
    Rewriting(
        "extremum over elements of several",
        "max v. maximum(f(v), g(v))",
        "maximum(max v. f(v), max v. g(v))",
        "extrema.reduce_extremum",
    ),
    Rewriting(
        "extremum of a choice",
        "max v. [p] f(v) + [not p] g(v)",
        "[p] max v. f(v) + [not p] max v. g(v)",
        "extrema.reduce_extremum",
        "p does not depend on v",
    ),
    Rewriting(
        "extremum of what is at one place",
        "max v<n. [v = t] f(v)",
        "maximum(0, sum v<n. [v = t] f(v))",
        "extrema.reduce_extremum",
        "n > 1",
    ),
    Rewriting(
        "extremum over parts of a range",
        "max v<n. [v < a] f(v) + [v >= a] g(v)",
        "maximum(max v<a. f(v), max v<n-a. g(a + v))",
        "extrema.reduce_extremum",
    ),
    Rewriting(
        "extremum of what all choices have",
        "max v<n. [v < a] maximum(f(v), g(v)) + [v >= a] f(v)",
        "maximum(max v<n. f(v), max v<a. g(v))",
        "extrema._without_common",
    ),
    Rewriting(
        "product of what all choices have",
        "product v<n. [v < a] f(v) g(v) + [v >= a] f(v)",
        "(product v<n. f(v)) (product v<a. g(v))",
        "extrema._factors",
    ),
    Rewriting(
        "greatest of elements and of their opposites",
        "maximum(max v. f(v), max v. -f(v))",
        "max v. abs(f(v))",
        "clipping_laws.without_opposites",
    ),
    Rewriting("condition for some of a range", "max v<n. [v >= f]", "[n - 1 >= f]", "extrema._of_guard", "no gaps"),
    Rewriting("extremum of opposites", "max v. (1 - p(v))", "1 - min v. p(v)", "extrema._of_truths"),
    Rewriting("integer of what is one", "truncate(n)", "n", "counts.truncated", "n lies in the type's range"),
    Rewriting("integer of what is rounded", "truncate(round(t))", "round(t)", "whole.truncated", "in the type's range"),
    Rewriting("integer of what is not negative", "truncate(t)", "floor(t)", "whole.truncated", "t >= 0, in the range"),
    Rewriting("integers as numbers", "positive(sum v. p(v) - n)", "[sum v. p(v) >= n + 1]", "counts.asked_of_counts"),
    Rewriting(
        "one of those that are asked", "max v. [f(v) = f(w)]", "1", "extrema._of_truths", "w is one of the values of v"
    ),
    Rewriting("sign of an extremum", "max v. [f(v) > 0]", "[max v. f(v) > 0]", "extrema._of_truths", "f is a number"),
    Rewriting(
        "extremum of truth values",
        "minimum(p, q)",
        "p q",
        "truths.joined",
        "p and q are 1 or 0; likewise maximum(p, q) = 1 - (1 - p) (1 - q)",
    ),
    Rewriting(
        "extremum of truth values over variables",
        "min v. p(v) q(v)",
        "(min v. p(v)) (min v. q(v))",
        "extrema._of_truths",
        "p and q are 1 or 0; likewise max v. (p(v) or q(v))",
    ),
    Rewriting("product of truth values", "product v. p(v)", "min v. p(v)", "extrema.reduce_product", "p is 1 or 0"),
    Rewriting(
        "each of those that an extremum is of",
        "[a <= maximum(s, t) <= b]",
        "[s <= b] [t <= b] - [s < a] [t < a]",
        "compared_extrema.asked_of_extremum",
    ),
    Rewriting("how many are below", "sum v<n. [v < e]", "e", "order_counts.how_many_below", "0 <= e <= n"),
    Rewriting(
        "place in order",
        "[sum v<n. [e(v) <= k] <= r]",
        "[e in order at r > k]",
        "order_counts.asked_of_order",
        "0 <= r < n",
    ),
    Rewriting(
        "as many as there are of each",
        "[(sum v<n. p(v)) + sum w<m. q(w) = n + m]",
        "(min v. p(v)) (min w. q(w))",
        "compared_counts._all_at_an_end",
        "p and q are 1 or 0; likewise where the total is 0",
    ),
    Rewriting("as many as there are", "[sum v<n. p(v) = n]", "min v. p(v)", "compared_counts._between", "p is 1 or 0"),
    Rewriting("product of one factor", "product v<n. f", "f**n", "extrema.reduce_product"),
    Rewriting("product of products", "product v. product w. f", "product v,w. f", "extrema.reduce_product"),
    Rewriting("powers of one base", "inverse(sqrt(f))**2", "inverse(f)", "powers._join", "f is not negative"),
    Rewriting("powers of a positive base", "f * inverse(sqrt(f))", "sqrt(f)", "powers._join", "f is positive"),
    Rewriting("square of a root", "sqrt(f)**2", "f", "powers.squared_roots", "f is not negative"),
    Rewriting("square of an absolute value", "abs(f)**2", "f**2", "powers.squared_roots"),
    Rewriting("what its sign selects", "[f > 0] f", "maximum(f, 0)", "half_lines._join"),
    Rewriting(
        "a soft threshold",
        "sign(f) maximum(0, abs(f) - 1)",
        "maximum(0, f - 1) - maximum(0, -f - 1)",
        "half_lines.soft_threshold",
        "1 is a number that is positive",
    ),
    Rewriting(
        "logarithm of two exponentials",
        "maximum(f, g) - abs(f - g) + log(1 + exp(abs(f - g)))",
        "log(exp(f) + exp(g))",
        "soft_maximum._joined_once",
    ),
    Rewriting("choice by comparison", "[f > g] f + [not f > g] g", "maximum(f, g)", "comparing.chosen"),
    Rewriting(
        "choice at a bound",
        "[f > a] g(f) + [not f > a] g(a)",
        "g(maximum(f, a))",
        "at_bounds.chosen_at_bound",
        "g(maximum(f, a)) is a number",
    ),
    Rewriting(
        "choice between an integer and a bound",
        "e <= a ? b : e",
        "clamp(e, b, max e)",
        "comparing.chosen_integer",
        "a <= b <= a + 1",
    ),
    Rewriting(
        "total of what may be nothing",
        "[sum v. p(v) > 0] * (sum v. p(v) f(v)) / (sum v. p(v))",
        "(sum v. p(v) f(v)) / maximum(sum v. p(v), 1)",
        "comparing.chosen_total",
        "p is 1 or 0, and f a number",
    ),
    Rewriting(
        "count beside a total",
        "n * s / maximum(n, 1)",
        "s",
        "averages.joined",
        "n is sum v. p(v), and s is sum v. p(v) f(v)",
    ),
    Rewriting("conditions on one expression", "[a <= e] [e <= b]", "[a <= e <= b]", "products._add_guards"),
    Rewriting("implied condition", "[e <= a] [e + f <= b]", "[e <= a]", "idle.needless", "f is at most b - a"),
    Rewriting("idle clamp", "[a <= e <= b] f(clamp(e, a, b))", "[a <= e <= b] f(e)", "products.simplify_under_guards"),
    Rewriting(
        "condition widened",
        "[a <= e <= b] [f <= c] t + [e < a] t",
        "[e <= b] [f <= c] t",
        "widening._joined",
        "e < a implies f <= c",
    ),
    Rewriting(
        "pieces beside a gap",
        "[e < a] [p] t + [e > b] [p] t",
        "[p] t",
        "widening._beside_gaps",
        "p excludes a <= e <= b",
    ),
    Rewriting("steps joined", "[e < a] c*f + [e >= a] c*f", "c*f", "guards.merge_steps"),
    Rewriting("quotient in a condition", "[a <= e div m <= b]", "[a*m <= e < (b+1)*m]", "guards.interval_atom"),
    Rewriting(
        "table in a condition",
        "[a <= t[e] <= b]",
        "[c <= e <= d]",
        "guards._undone",
        "the entries from a to b are those at c to d, and each e is a place of t",
    ),
    Rewriting(
        "machine value in a condition",
        "[a <= wrap(t + e) <= b]",
        "[a <= t + e <= b]",
        "guards._unwrapped",
        "a - e and b - e lie in the type's range",
    ),
    Rewriting(
        "low digits in a condition",
        "[a <= m*e + f <= b]",
        "[a' <= e <= b']",
        "guards._drop_low_digits",
        "the bounds ask nothing of f",
    ),
    Rewriting("indices added", "value(e) + c*value(f)", "value(e + c*f)", "addition._join_indices"),
    Rewriting("sum with no number", "[p] nan + f", "[p] nan + [not p] f", "no_number.beside"),
    Rewriting("product with no number", "([p] nan + f) * g", "[p] nan + [not p] f g", "no_number.multiplied"),
    Rewriting(
        "multiple of what is 0 or no number",
        "c * sum v. [p(v)] nan",
        "sum v. [p(v)] nan",
        "no_number.once",
        "c is no condition",
    ),
    Rewriting("what vanishes is a number", "t - t", "0*t", "losses.checked", "t may be no number"),
    Rewriting("function of a choice", "h([p] f + [not p] g)", "[p] h(f) + [not p] h(g)", "laws.apply"),
    Rewriting("operands in any order", "h(f, g)", "h(g, f)", "laws.apply", "h commutes"),
    Rewriting(
        "one is the best",
        "sum v. [f(v) = max w. f(w)] > 0",
        "1",
        "attained.counts_the_best",
        "all elements are compared that the best is one of",
    ),
    Rewriting(
        "one is the best of what is masked",
        "sum v. [p(v)] [f(v) = m] + [g = m] * sum v. [not p(v)] > 0",
        "1",
        "attained.counts_the_best",
        "m is max v. (f(v) where p(v), else g)",
    ),
    Rewriting(
        "more than all others",
        "sum v. [e < a] c*f(v) + [a <= e <= b] k*f(v) + [e > b] c*f(v)",
        "sum v. c*f(v) + sum v. [a <= e <= b] (k - c)*f(v)",
        "beside_all.over_all",
        "k and c have one sign, k is the larger one, and f is a number",
    ),
    Rewriting(
        "sign by bounds",
        "1 + tanh(f) > 0",
        "1",
        "quotient_signs.narrowed",
        "the least that the sum may be is positive, or 0 and not attained",
    ),
    Rewriting(
        "sign of a difference of exponentials",
        "c*k*exp(f) - c*exp(g) > 0",
        "c > 0",
        "quotient_signs.narrowed",
        "f - g is not negative, and k is no less than 1; f - g is positive, or k more than 1",
    ),
    Rewriting("sign of a numerator", "g - inverse(f) > 0", "g * f - 1 > 0", "quotient_signs.narrowed", "f is positive"),
    Rewriting(
        "sign of a variance",
        "sum v<n. f(v)**2 - 1/n * (sum v<n. f(v))**2 < 0",
        "0",
        "variances.narrowed",
        "both sums are over the same elements, and no greater multiple of the square is subtracted",
    ),
    Rewriting(
        "sums that are positive together",
        "c * sum v. [p(v)] + sum v. [not p(v)] f(v) > 0",
        "1",
        "shared_sums.is_positive_together",
        "c and f are positive, or what they are chosen from is, at one of the elements at the ends at least",
    ),
    Rewriting(
        "sums that are positive somewhere",
        "sum v. [p(v)] f(v) > 0",
        "1",
        "somewhere.is_positive_somewhere",
        "f is nowhere negative, and at one of those at an end, or where p begins to hold, p holds and f is positive",
    ),
)


def in_words(left: str, right: str, when: str) -> str:
    """A law on one line."""
    return f"{left} = {right}" + (f", if {when}" if when else "")
