"""What a verification may take: every limit that can decide what a report says, with its unit and its reason.

All of them count steps, never seconds, so that a report is the same on every machine. Whoever runs into one notes it in
the `Session` by the name that it has here (`Spent` in a report). Code that builds terms has no session at hand: it asks
`allows("expanded_terms", 9)`, which looks at the limits that are in force in this thread, and notes by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from typing import Literal

from hlo_verify.diagnostics import Input
from hlo_verify.diagnostics.errors import InputError

Effort = Literal["low", "normal", "high"]

EFFORTS: dict[Effort, float] = {"low": 0.25, "normal": 1, "high": 8}
"""What each of the limits is multiplied by."""

TIME_LIMIT = 300.0
"""How many seconds one pair may take if its user says nothing else; past them a report says what is known so far."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one verification. Work is counted in elements computed (some 1.5e8 take a second)."""

    candidates: int = 12
    """Logical operations of its line that one value of the devices is compared with, case by case, nearest first."""
    comparison_steps: int = 2500
    """Steps (questions to Z3, terms looked at) of one comparison, case by case: equal terms take some dozens."""
    cases: int = 600
    """Cases that one question may fall into by its guards: where there are more, they do not end."""
    comparison_depth: int = 5
    """How deep a comparison takes definitions apart: what two modules define differs near the surface."""
    alignments: int = 6
    """Ways of aligning the bound variables of one sum with another's; of all sums of a term together its square."""
    enumerated_values: int = 16
    """Values of a variable that are looked at one by one, where it is looked up in tables, clamped or divided."""
    written_out_values: int = 8
    """Values of a variable over which a sum is written out: a window's."""
    written_out_terms: int = 48
    """Terms that all sums of a comparison are written out as, together."""
    written_out_steps: int = 100
    """Steps of a comparison whose sums are written out: where that is of use, what is left is short."""
    turns_apart: int = 16
    """Sums, turn by turn, that one sum is taken apart into."""
    network_steps: int = 60_000
    """Steps (products rewritten, factors looked at) of comparing results that differ, as sums of products, together."""
    brief_network_steps: int = 2000
    """The same, of comparing each result of what a person distributed before loops are read in other ways."""
    question_parts: int = 4000
    """Parts of two terms that are looked at to decide whether something is a number: a softmax has some dozens."""
    total_steps: int = 8000
    """Steps of all comparisons together, but for those that led to a cut point: what a wrong module may cost."""
    vain_comparisons: int = 16
    """Comparisons in a row without success, of `vain_steps` steps together, after which no more is tried to recognise:
    where a value is wrong, so is everything made of it."""
    vain_steps: int = 1200
    """Steps of such comparisons. Once some were in vain, the next one may take half of what is left of these: a value
    that is right where others before it were not recognised takes some dozens of steps, hardly ever more than 130."""
    brief_steps: int = 50
    """Steps of a comparison where nothing is left of `vain_steps`; so many in vain are none yet."""
    refusals: int = 10_000
    """Comparisons in a row without success, however few steps: to see at few points that terms differ takes none."""
    vain_results: int = 4
    """Results in a row that are not equal after which the others are compared by construction alone: likewise."""
    loop_steps: int = 300
    """Steps of comparisons for what loops carry, and as many for pipelines: a guess that holds is seen at once."""
    vain_loops: int = 40_000
    """Terms and index expressions that are made in vain for loops of which a logical loop matches a part, of all of
    them together: two seconds. Past them, nothing is known of the rest."""
    reading_steps: int = 1000
    """Steps of comparisons of results where loops are read in another way: equal sums are seen at once."""
    reading_network_steps: int = 15_000
    """Steps of comparing them as sums of products there, in each way: a second."""
    reading_operations: int = 1000
    """Operations of both modules for which loops are read in another way before inputs are searched for."""
    written_out_operations: int = 4000
    """Operations in iterations that are written out of loops, where the modules are not equal as they are."""
    unrolled_turns: int = 64
    """Iterations of a loop without a counterpart that are written out: terms grow with every one."""
    turns_by_device: int = 64
    """Iterations of a loop that are written out where every device is looked at by itself."""
    operations_apart: int = 30_000
    """Operations that are worked out there, each on what one device holds in one iteration: a second for some 2000."""
    small_operations_apart: int = 4000
    """Operations of both modules, times devices, that are worked out there where a compiler partitioned a module."""
    small_terms_apart: int = 40_000
    """Terms and index expressions that are made there, a second, and as many again to compare results, or to see one of
    what a person distributed: most of what is right takes less than 9000, an associative scan with a gelu 46,000."""
    unmatched_values: int = 64
    """Values of such a module that are no shards as they stand, from which on that is done before they are compared."""
    terms_apart: int = 400_000
    """Those that are made where a person distributed it: what is right takes 220,000 at the most, ten seconds."""
    guess_steps: int = 100
    """Steps of finding that a value is a shard that it is guessed to be, case by case."""
    guess_network_steps: int = 2000
    """Steps of comparing the two as sums of products."""
    vain_guesses: int = 30_000
    """Terms and index expressions that are made for guesses that are not proved: a second, or less."""
    guessed_elements: int = 1 << 20
    """Elements of all values of a module that shards are looked for in, and of one tensor on the way."""
    guessing_work: int = 200_000_000
    """What evaluating each module for that may take: a second or so."""
    blocks_by_device: int = 4096
    """Blocks of one device's part of a result that are compared there one by one."""
    elements_apart: int = 64
    """Elements of such a block that are compared one by one, all that they are made of written out."""
    written_out_elements: int = 20_000
    """Steps of that, of all blocks together."""
    definitions_in_ranges: int = 4000
    """Definitions that are made anew for ranges of what they are read at: ring attention on 8 devices takes 1400."""
    solver_steps: int = 500_000
    """Steps of Z3, as it counts them (`rlimit`), for one question about guards and offsets: half a second."""
    solver_megabytes: int = 1024
    """Memory of Z3, for what it does not count."""
    wrong_work: int = 1_250_000_000
    """Work of all that is done after a walk that does not prove a module, whatever its size: five seconds. A
    term that is made in vain counts as 12,000. What takes more than is left of it is not begun; what clearly seems to
    differ is confirmed in any case where nothing else is known to."""
    wrong_operation_work: int = 600_000
    """As much more for each operation of both modules: all of them together, ten times what their proof would take."""
    unseen_difference: int = 2
    """So many times as much may go into other ways of proving where no input was seen to make a difference."""
    glance_work: int = 450_000_000
    """Work of the first look for inputs that make a result differ, before results are compared case by case."""
    search_work: int = 6_000_000_000
    """Work of the search for inputs that make a result differ."""
    repeated_work: int = 1_800_000_000
    """Work of that search, where it goes on beyond one draw of each kind."""
    single_work: int = 3_000_000_000
    """Work of one draw that shows no difference, after which there is no other: a large module that is mostly right."""
    further_work: int = 600_000_000
    """Work of the search for some results when others were found to differ, on top of as much as these took."""
    evaluation_work: int = 4_500_000_000
    """Work of a single evaluation, however little of the search's is left: it stops between evaluations."""
    interval_work: int = 3_000_000_000
    """Work of one evaluation on intervals of floats, which confirms a difference; an element is counted as 4."""
    interval_elements: int = 1 << 25
    """Elements of one tensor in such an evaluation: memory."""
    confirming_work: int = 1_000_000_000
    """Work of confirming differences of large inputs once one result is known to differ: those results are asked about
    that take least, as many as that allows for, and one in any case. A module is wrong if one of its results is."""
    enclosed_work: int = 1_500_000_000
    """Work of one evaluation on balls, where intervals leave a difference open; an element is counted as 64 there."""
    enclosed_elements: int = 1 << 21
    """Elements of one tensor in such an evaluation, or of all tables of constants on all devices: memory."""
    enclosed_bits: int = 1024
    """Bits of balls: the first have 64, the next ones four times as many until they tell two values apart."""
    enclosed_room: int = 2
    """How many times the elements of a tensor enclosures may take that floating point did, where it left some out."""
    vain_differences: int = 12
    """Differences that floating point shows and enclosures do not, after which no more are looked at."""
    faint_differences: int = 3
    """The same of such as are less than 1e-5 of a result's largest element: most of them are roundings."""
    clear_draws: int = 2
    """Inputs drawn after which a difference need not be clear (1e-2 of a result's largest element)."""
    clear_elements: int = 1 << 14
    """Elements of one tensor of inputs for which clearer ones are looked for."""
    dear_draws: int = 3
    """Inputs drawn in vain that are no smaller than some for which enclosures took too much."""
    shrinking_work: int = 200_000_000
    """Work of making inputs that were found readable."""
    cutting_work: int = 300_000_000
    """Work of inputs that turn out to be too large, on top of as much as was of use."""
    evaluation_elements: int = 1 << 25
    """Elements of one tensor in an evaluation: memory."""
    evaluation_room: int = 1 << 26
    """Elements of all tensors that an evaluation holds at one time: memory."""
    glance_inputs: int = 2
    """Inputs of that first look: most wrong modules differ for the first."""
    known_wrong_steps: int = 500
    """Steps of comparisons for the other results of a module of which one is known to differ."""
    placement_walks: int = 40
    """Walks over both modules to find out where arguments lie that no module places: each tries one way."""
    placement_orders: int = 6
    """Orders of devices in which shards of such an argument or result are tried."""
    placement_pairs: int = 64
    """Pairs of modules, which stand for all other placements, in which a result has to differ before it is refuted."""
    placement_inputs: int = 4
    """Inputs that are tried in each of those pairs."""
    repair_work: int = 300_000_000
    """Work of trying repairs at the inputs that were found."""
    repair_steps: int = 500
    """Steps of comparisons without success in one such proof: a right module takes few."""
    repair_refusals: int = 12
    """Comparisons in a row without success there: likewise."""
    repair_proofs: int = 4
    """Repairs that are put to the proof, of all faults together: each costs as much as proving the right module."""
    fault_proofs: int = 3
    """The same of one fault: each of these repairs makes the results agree at the witness's inputs, and at others."""
    repair_axes: int = 4
    """Axes of a mesh of which every combination is tried as the groups of a repair: they double with each."""
    repair_denominator: int = 64
    """The denominator of a factor that is tried as a repair: what a program lacks is a simple one."""
    replayed_elements: int = 1 << 22
    """Elements in all values of all devices of a module that XLA is asked to run with a witness: memory."""
    replayed_devices: int = 64
    """Devices of such a module."""

    countersigned_work: int = 16_000_000
    """Work of evaluating both modules for one draw of inputs, where they are proved: small ones take no more."""
    recheck_elements: int = 64
    """Elements of a small instance that `--recheck` looks at; of one that has more, a step is checked in part."""
    recheck_element_steps: int = 4000
    """Steps of writing such elements out, past which no more than the first four are looked at: checked in part."""
    recheck_steps: int = 200_000
    """Steps of writing out one question of the second check: a second or two."""
    recheck_nodes: int = 60_000
    """Different terms in one such question."""
    recheck_openings: int = 400
    """Definitions that are taken apart for one such question."""
    recheck_rounds: int = 60
    """How often definitions are taken apart until both sides of a step are about the same ones."""
    recheck_levels: int = 6
    """Levels of definitions that are taken apart before a difference is one: with fewer, right steps seem to differ."""
    recheck_draws: int = 12
    """Values for what tensors hold that are tried at full size before a difference is one."""
    recheck_powers: int = 16
    """The power of a real number that the second check multiplies out."""
    recheck_products: int = 100
    """Products that it multiplies an argument of a function out to."""
    recheck_sum_products: int = 1500
    """Products of a sum that it looks through for what does not depend on a variable."""
    recheck_compared_products: int = 100_000
    """Products of a side of a step that it multiplies out to compare it with the other."""

    devices_apart: int = 64
    """Devices that are looked at one by one, where a proof for all of them at once fails."""
    nested_apart: int = 48
    """Atoms in a term, written out, past which it is given a name there."""
    table_elements: int = 1 << 16
    """Elements of an integer constant that is read as a table of indices. This one and those below say what form a term
    has: of two modules in one form more are equal than of two written out further, so that no effort changes them."""
    fitted_values: int = 1 << 16
    """Values of a variable that are tried where a table may be arithmetic."""
    scattered_places: int = 1 << 16
    """Indices computed one by one to see whether they are sorted, and whether updates of a scatter differ in place."""
    named_weight: int = 40
    """Atoms and their indices in a term, past which it is given a name; one function may have four times that."""
    opened_weight: int = 1024
    """A named term that is heavier than this where some places are given keeps its name: names within names, each
    opened at several places, would double what is left with every layer."""
    opened_names: int = 300
    """Names within names that are opened for one sum; past them, those that were opened most often are kept."""
    chosen_weight: int = 1 << 14
    """A term in which extrema of masked parts are choices, past which it stays as it is: each may double it."""
    multiplied_terms: int = 12
    """Products that multiplying two values out may give; past them the factors are given names."""
    complex_factors: int = 4
    """Factors of a product of complex numbers whose parts are multiplied out."""
    multiplied_powers: int = 16
    """The power of a real number that is multiplied out where the program takes it."""
    expanded_power: int = 64
    """The power of a number, or of a sum where terms are compared, that is multiplied out."""
    turned_angles: int = 16
    """Parts of angles, with how often each is there, whose sines and cosines are multiplied out."""
    expanded_products: int = 10_000
    """Products of such a power, and of a term whose conditions are taken apart."""
    number_bits: int = 4096
    """Bits of a coefficient. Terms that both have longer ones are not multiplied out: `x * (x + x)` doubles them."""
    expanded_terms: int = 8
    """Terms of a sum that the law of a function takes apart (`exp(a + b) = exp(a) * exp(b)`)."""
    factored_terms: int = 64
    """Terms of a sum that is looked at as a product of two sums, and of one that an exponential of logarithms is."""
    question_terms: int = 40
    """Products of a difference that is asked about."""
    formula_terms: int = 64
    """Terms, one in another, of a difference that is asked about as a formula of real numbers."""
    quotient_steps: int = 3000
    """Products that are multiplied to write two terms as quotients of polynomials, some dozens in a step."""
    told_apart: int = 256
    """Cases of conditions told apart where an infinity may take part in a sum; past them it equals nothing else."""
    mixed_integers: int = 4
    """Integers whose bits `and`, `or` and `xor` mix, where that is written as a sum of bits that they share."""
    ordered_elements: int = 16
    """Elements of a network of minima and maxima that are compared by all of their zeros and ones: 65536."""
    multiplied_facts: int = 12
    """Terms whose signs are known in a case of real numbers, of which any two are multiplied: 66 products at most."""
    sign_cases: int = 16
    """Cases of conditions that are looked at for the sign of a term."""
    tried_divisors: int = 1 << 8
    """The greatest divisor that is tried of a number of which there is a logarithm, or a root."""
    transformed_dimensions: int = 3
    """Dimensions of a Fourier transform, all orders of which are tried for the one that stands for all."""
    sign_terms: int = 16
    """Products of a sum, once it is multiplied by what parts of it are divided by, whose sign is looked at."""
    step_pieces: int = 4
    """Pieces of a step function that a function is applied to one by one."""
    step_forms: int = 4
    """Index expressions that the guards of a step function are about: each multiplies the pieces."""
    compared_forms: int = 2
    """The same of a step function that is compared or divided."""
    line_places: int = 256
    """Values of digits of a device's number at which pieces are looked at one by one."""
    padding_forms: int = 4
    """Index expressions that say where padding lies: parts double with each."""
    extremum_ranges: int = 4
    """Parts that the range of a maximum's variable is split into."""
    finite_elements: int = 16
    """Elements at which a maximum is looked at, to see that it is a number."""
    undefined_parts: int = 64
    """Parts of a term that are looked at for what may be no number."""
    joined_terms: int = 256
    """Terms of a sum, and values of a digit, of which those at places side by side are joined."""
    ring_terms: int = 512
    """Terms of a sum whose shares of a ring are joined, and that is left open for that."""
    rotation_parts: int = 8
    """Parts of a rotation that are left to be joined with others."""
    operand_pieces: int = 8
    """Pieces of an operand that is contracted piece by piece, as a concatenation is."""
    filled_windows: int = 8
    """Windows that an iteration of a loop writes to, where what it fills is seen."""
    added_integers: int = 64
    """Iterations over which integers are added up one by one, so that a number stays one."""
    clamped_places: int = 4
    """Integers along a dimension that bounds are read from one by one."""
    bound_choices: int = 4
    """Truth values in an integer term for which its bounds are found one choice of them after another."""
    loop_splits: int = 8
    """Ways of splitting what a loop carries among devices that are tried."""
    loop_relations: int = 16
    """Relations to what logical loops carry that are tried of one component of a loop, one after another."""
    turns_at_once: int = 8
    """Turns of a logical loop that a loop may take at a time."""
    elements_followed: int = 64
    """Elements of what a loop carries that one of them depends on, in all iterations."""
    operations_at_an_element: int = 4096
    """Operations that all iterations of a loop make at one element, where it becomes a function of single elements."""
    peeled_turns: int = 3
    """Turns of a logical loop that may be made before and after a loop, together."""
    loop_partners: int = 4
    """Logical loops that carry another number of tensors with which a loop is compared."""
    joined_constants: int = 64
    """Constants of a module, between the dumps of two passes, of which pairs are tried as what a pass folded."""
    joined_by_people: int = 32
    """Numbers of one module of which a constant of another may be what a person computed of two or three."""
    folded_roundings: int = 32
    """Operations that such a constant was computed by."""
    grown_roundings: int = 64
    """So many times its size, relative to what it is part of, a constant's rounding may grow, in products and sums."""
    rounded_turns: int = 4096
    """Turns of a loop, times the roundings of a constant in each of them: past them these cover no difference."""

    @classmethod
    def of(cls, effort: Effort) -> Limits:
        """The limits of an effort: memory, and the forms of terms, stay what they are. Raises `InputError`."""
        factor = EFFORTS.get(effort)
        if factor is None:
            raise InputError(f"effort is {' or '.join(map(repr, EFFORTS))}, not {effort!r}", Input.USAGE)
        normal = cls()
        return replace(normal, **{name: max(1, int(getattr(normal, name) * factor)) for name in EFFORT_SETS})


_SAME_FOR_ALL = frozenset(
    "solver_megabytes unseen_difference evaluation_elements evaluation_room enclosed_elements interval_elements "
    "replayed_elements replayed_devices repair_axes repair_denominator recheck_levels recheck_draws recheck_products "
    "recheck_powers recheck_sum_products recheck_compared_products devices_apart nested_apart unmatched_values".split()
)

_NAMES = [each.name for each in fields(Limits)]

EFFORT_SETS = [name for name in _NAMES[: _NAMES.index("table_elements")] if name not in _SAME_FOR_ALL]
"""What an effort changes: all but memory and the forms of terms."""

_in_force: ContextVar[tuple[Limits, dict[str, None]]] = ContextVar("limits", default=(Limits(), {}))


@contextmanager
def in_force(limits: Limits, reached: dict[str, None]) -> Iterator[None]:
    """Have `allows` and `limit_of` look at these limits in this thread, and note in `reached` which are run into."""
    token = _in_force.set((limits, reached))
    try:
        yield
    finally:
        _in_force.reset(token)


def limit_of(name: str) -> int:
    """The limit of that name."""
    return int(getattr(_in_force.get()[0], name))


def allows(name: str, count: int) -> bool:
    """Whether a count is no more than the limit of that name; it is noted if it is more."""
    limits, reached = _in_force.get()
    if count <= getattr(limits, name):
        return True
    reached[name] = None
    return False


def that_matter(reached: tuple[str, ...]) -> list[str]:
    """Of limits that were run into, those that more effort moves; all of them where it moves none."""
    return [name for name in reached if name in EFFORT_SETS] or list(reached)
