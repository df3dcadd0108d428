"""Stages of modules that repeat themselves: what is true of one layer is derived once.

Every value is known by a *form*, what was computed, and by the *leaves* that it was computed of: arguments
and other tensors that terms do not look into. Two layers of a network have equal forms of different leaves. The
first time that a form occurs, its operation is interpreted; after that the value is only noted, and its term is made
by renaming leaves where something asks for it.

A form would reach back to the beginning of the program, and each layer would have its own, did it not end where
a layer passes on to the next one (`layers.boundaries`): there the value becomes a tensor of its own, a leaf. What is
derived from it holds for any tensor, so for this one. A device's value that is equal to a shard of such a value by
construction becomes a read of the same leaf. What cannot be proved so is left to `stages`, which knows no boundaries.

An example, of layers `x1 = x0 + tanh(x0 @ w0)`, `x2 = x1 + tanh(x1 @ w1)`, ..., where every x is a boundary. The first
layer is interpreted: x1 is a definition over the leaves x0 and w0. That definition is *sealed*: a new tensor, X1,
stands for it, and whatever would read the definition reads X1 from then on, on a device too, where the partial
products of `x0 @ w0` were summed up. Of the second layer no operation is interpreted: `x1 @ w1` is the form of `x0 @
w0` of the leaves X1 and w1, and so on to x2, which is the boundary form that X1 stood for, of X1 and w1: its own
stand-in, X2. The definition of x2 is made only if a device computes it in some other way, so that it is needed to
recognise X2.

Of a module that is wrong in one layer, what follows is no shard of anything, and would reach back to that layer from
every later one. What lies between the devices' own layers and is made of more than one logical layer is lost: it
becomes a leaf of its own, which equals nothing of the logical module, so that what follows is shared all the same. Not
so what the logical module computes as well, though not between its layers, as both modules need not have the same ones:
a norm over all parameters adds to what its layers add up.

Not every tensor that a value is about is one of its leaves: the others are *rigid*, the same wherever the form
occurs. An operation where one tensor comes in as both, or that makes a tensor of its own, is not shared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from hlo_verify.ops.indexing import unheard_of
from hlo_verify.ops.values import Context, Value
from hlo_verify.passes.prove.forms import Derived, Key, Selector, Shared, Template, definition, simple, together
from hlo_verify.passes.prove.interpret import interpret
from hlo_verify.passes.prove.layers import BARRIER, Keys, boundaries
from hlo_verify.passes.prove.notation import Notation
from hlo_verify.passes.prove.unsealed import Unsealed
from hlo_verify.program.ir import Function, Name, Op, captured
from hlo_verify.program.op_families import CONTROL
from hlo_verify.report import Stage
from hlo_verify.terms import algebra, doubts
from hlo_verify.terms.certain_poles import is_known_somewhere
from hlo_verify.terms.definitions import define, stood_in
from hlo_verify.terms.renaming import Leaves, Renaming
from hlo_verify.terms.substitution import seal
from hlo_verify.terms.term import Read, Tensor, tensor

LEAVES = 48
"""A value of more leaves than this is not shared."""


@dataclass(slots=True)
class Sharing:
    """The forms and leaves of both modules' values, and what was derived of each form."""

    boundaries: frozenset[Name]
    keys: Keys
    partitioned: Function
    held: dict[str, dict[Name, Shared]] = field(default_factory=dict)
    """The values of both modules, by side."""
    leaves: Leaves = field(default_factory=Leaves)
    _forms: dict[Key, int] = field(default_factory=dict)
    _templates: dict[int, Template] = field(default_factory=dict)
    _entries: dict[Key, tuple[tuple[int, tuple[Selector, ...]], ...]] = field(default_factory=dict)
    _stand: dict[tuple[Key, tuple[Tensor, ...]], Tensor] = field(default_factory=dict)
    """The leaf that stands for a boundary form of some leaves."""
    _origin: dict[Tensor, tuple[Key, tuple[Tensor, ...]]] = field(default_factory=dict)
    _sources: dict[Key, tuple[Tensor, tuple[Tensor, ...]]] = field(default_factory=dict)
    """The definition of a boundary form, and of which leaves."""
    _unsealed: Unsealed = field(default_factory=Unsealed)
    stages: list[Stage] = field(default_factory=list)
    """The partitioned module's values that are shards of logical ones, in order."""
    _known: set[Tensor] = field(default_factory=set)
    _sums: list[Value] = field(default_factory=list)
    """Values of the logical module that are no reads of a definition."""
    _sums_by_key: dict[int, list[Value]] | None = None
    """The same, by structural keys, once that is asked for."""
    _notation: Notation = field(default_factory=lambda: Notation(()))
    _stage_of: dict[Key, str] = field(default_factory=dict)
    _makes: dict[Tensor, set[Tensor]] = field(default_factory=dict)
    """What between logical layers is made of a leaf."""
    _between: frozenset[Name] | None = None
    _own: set[Tensor] = field(default_factory=set)
    """Leaves that stand for values between the partitioned module's layers which are shards of nothing known."""
    _boundary_terms: set[int] = field(default_factory=set)
    """Structural keys of sums at boundaries."""
    _renamings: dict[tuple[tuple[Tensor, ...], tuple[Tensor, ...]], Renaming] = field(default_factory=dict)
    _resolved: dict[Shared, Value] = field(default_factory=dict)

    def run(self, function: Function, arguments: Sequence[Value], context: Context) -> list[Shared]:
        """The results of a module's main function."""
        held = self.held[context.side] = {}
        for argument, value in zip(function.arguments, arguments, strict=True):
            context.environment[argument] = value
            held[argument] = self._hold(value)
        for op in function.ops:
            if op.name == BARRIER:
                for result, v in zip(op.results, op.operands, strict=True):
                    held[result] = held[v]
                    if v in context.environment:
                        context.environment[result] = context.environment[v]
                continue
            pattern, merged = together([held[v] for v in op.operands])
            key = self._key(op, pattern, merged, context)
            if key is not None:
                found = self._reuse(key, merged, context)
                if found is not None:
                    held.update(zip(op.results, found, strict=True))
                    if key in self._stage_of:
                        self.stages.append(Stage(op.name, str(op.location), self._stage_of[key], True))
                    continue
            self._interpret(op, key, merged, held, context)
        return [held[v] for v in function.results]

    def _key(self, op: Op, pattern: Key, merged: tuple[Tensor, ...], context: Context) -> Key | None:
        """What determines the results of an operation up to its leaves; None if nothing does."""
        number = self.keys.of(op) if len(merged) <= LEAVES else None
        if number is None or not self._rigid(pattern).isdisjoint(merged):
            return None
        if op.name in CONTROL and context.loops:
            return None
        unheard = unheard_of(op, context.claims)
        return context.side, number, unheard, tuple((doubts.of_tensor(leaf), leaf.assumed) for leaf in merged), pattern

    def _rigid(self, pattern: Key) -> frozenset[Tensor]:
        rigid = [found for form, *_ in pattern if (found := self._templates[form].rigid)]
        return rigid[0].union(*rigid[1:]) if rigid else frozenset()

    def _reuse(self, key: Key, merged: tuple[Tensor, ...], context: Context) -> list[Shared] | None:
        """The results of an operation whose like was interpreted before."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        results = []
        for form, selectors in entry:
            leaves = []
            for selector in selectors:
                leaf = merged[selector] if isinstance(selector, int) else self._stands(selector, merged, context)
                if leaf is None:
                    return None
                leaves.append(leaf)
            results.append(Shared(form, tuple(leaves)))
        return results

    def _stands(self, selector: Derived, merged: tuple[Tensor, ...], context: Context) -> Tensor | None:
        of = tuple(merged[n] if isinstance(n, int) else n for n in selector.leaves)
        found = self._stand.get((selector.boundary, of))
        side = selector.boundary[0][0]
        if found is None and context.side == side:
            found = self._new_leaf(selector.boundary, of)
            if side == "logical":
                self._unsealed.add(found, of)
        return found

    def _new_leaf(self, boundary: Key, of: tuple[Tensor, ...]) -> Tensor:
        source = self._sources[boundary][0]
        leaf = tensor("opaque", source.name, "", (), doubt=doubts.of_tensor(source))
        if boundary[0][0] != "logical":
            self._own.add(leaf)
        else:
            for inner in of:
                self._makes.setdefault(inner, set()).add(leaf)
        self._stand[boundary, of] = leaf
        self._origin[leaf] = boundary, of
        return leaf

    def _interpret(
        self, op: Op, key: Key | None, merged: tuple[Tensor, ...], held: dict[Name, Shared], context: Context
    ) -> None:
        for v in (*op.operands, *captured(op)):
            if v not in context.environment:
                context.environment[v] = self.resolve(held[v])
        if context.side != "logical":
            self._seal_definitions(merged)
        stood_in()
        values = interpret(op, [context.environment[v] for v in op.operands], context)
        made = stood_in()
        entry: list[tuple[int, tuple[Selector, ...]]] | None = [] if key is not None else None
        for k, (name, value) in enumerate(zip(op.results, values, strict=True)):
            if name in self.boundaries and context.side == "logical" and key is not None and made.isdisjoint(merged):
                value = self._at_boundary(value, key, k, merged)
            elif context.side != "logical":
                value = self._as_leaf(value)
                if key is not None and made.isdisjoint(merged) and self._is_lost(name, value, merged):
                    value = self._at_boundary(value, key, k, merged)
            values[k] = context.environment[name] = value
            made |= stood_in()
            selectors = self._selectors(value, merged, key) if key is not None else None
            if selectors is None or not made.isdisjoint(merged):
                entry, held[name] = None, self._hold(value)
                continue
            leaves = tuple(self._selected(s, merged) for s in selectors)
            held[name] = self._hold(value, (key, k, selectors), leaves)
            if entry is not None:
                entry.append((held[name].form, selectors if held[name].leaves else ()))
        if key is not None and entry is not None:
            self._entries[key] = tuple(entry)
        self._note(op, key, values, context)

    def _note(self, op: Op, key: Key | None, values: Sequence[Value], context: Context) -> None:
        """Learn what the logical module computes, and note where the partitioned one computes a shard of it."""
        for value in values:
            atom = value.term.atom
            if atom is None and context.side == "logical":
                self._sums.append(value)
            if not isinstance(atom, Read) or not (atom.tensor.bodies or atom.tensor in self._origin):
                continue
            if context.side == "logical":
                self._known.add(atom.tensor)
                self._notation.learn(op, value.shape, atom)
            elif atom.tensor in self._known:
                lineage = self._notation.lineage(atom)
                self.stages.append(Stage(op.name, str(op.location), lineage, False))
                if key is not None:
                    self._stage_of[key] = lineage

    def _selected(self, selector: Selector, merged: tuple[Tensor, ...]) -> Tensor:
        if isinstance(selector, int):
            return merged[selector]
        return self._stand[selector.boundary, tuple(merged[n] if isinstance(n, int) else n for n in selector.leaves)]

    def _selectors(self, value: Value, merged: tuple[Tensor, ...], key: Key) -> tuple[Selector, ...] | None:
        """Where the leaves of a result come from; None if that is not known, so that it must not be shared."""
        where = {leaf: n for n, leaf in enumerate(merged)}
        rigid = self._rigid(key[-1])
        selectors: list[Selector] = []
        for leaf in sorted(self.leaves.of(value.term), key=lambda leaf: leaf.uid):
            boundary, of = self._origin.get(leaf, (None, ()))
            if leaf in where:
                selectors.append(where[leaf])
            elif boundary is not None and not where.keys().isdisjoint(of):
                if leaf in rigid:
                    return None
                selectors.append(Derived(boundary, tuple(where.get(inner, inner) for inner in of)))
            elif leaf not in rigid and leaf.values is None:
                return None
        return tuple(selectors)

    def _hold(self, value: Value, key: Key | None = None, leaves: tuple[Tensor, ...] = ()) -> Shared:
        """A value that was computed, as a form of leaves."""
        moved = simple(value)
        if moved is not None and (key is None or moved[0] == leaves):
            leaves = moved[0]
            key = ("leaf", value.type, moved[1])
        elif key is None or not leaves:
            key, leaves = ("term", value.type, value.term), ()
        form = self._forms.setdefault(key, len(self._forms))
        if form not in self._templates:
            self._templates[form] = Template(value, leaves, self.leaves.of(value.term).difference(leaves))
        return Shared(form, leaves)

    def between_layers(self, side: str) -> dict[Tensor, Name]:
        """The leaves that stand for what lies between layers, with the first value that is one or a shard of it."""
        found: dict[Tensor, Name] = {}
        for leaf, name in self.reads_between(side):
            found.setdefault(leaf, name)
        return found

    def reads_between(self, side: str) -> Iterator[tuple[Tensor, Name]]:
        """All values that are or are shards of what lies between layers, which may be computed more than once."""
        for name, shared in self.held[side].items():
            if len(shared.leaves) == 1 and isinstance(self._templates[shared.form].value.term.atom, Read):
                (leaf,) = shared.leaves
                if leaf in self._origin and self.read(side, name) is not None:
                    yield leaf, name

    def read(self, side: str, name: Name) -> Read | None:
        """What a value reads, if it is an element of a leaf."""
        shared = self.held[side][name]
        atom = self.resolve(shared).term.atom if len(shared.leaves) == 1 else None
        return atom if isinstance(atom, Read) and atom.tensor == shared.leaves[0] else None

    def value(self, side: str, name: Name) -> Value:
        """A value of one of the modules."""
        return self.resolve(self.held[side][name])

    def made_of(self, leaf: Tensor) -> tuple[Tensor, ...]:
        """What a leaf that stands for what lies between two layers was derived of."""
        return self._origin[leaf][1]

    @property
    def between(self) -> frozenset[Name]:
        """The values between the partitioned module's own layers."""
        if self._between is None:
            self._between = boundaries(self.partitioned, self.keys)
        return self._between

    def needs(self, name: Name) -> set[Tensor]:
        """What a value of the partitioned module was derived of: what a leaf of its own was, else its leaves."""
        read = self.read("partitioned", name)
        if read is not None and read.tensor in self._own:
            return set(self.made_of(read.tensor))
        return set(self.leaves.of(self.value("partitioned", name).term))

    def is_recognised(self, name: Name) -> bool:
        """Whether a value of the partitioned module is a shard of what lies between two layers of the logical one."""
        read = self.read("partitioned", name)
        return read is not None and read.tensor in self._origin and read.tensor not in self._own

    def together(self, a: Shared, b: Shared) -> Key | None:
        """What two pairs of values have in common if the values of one are equal just when those of the other are.

        None where a tensor is a leaf of one value and rigid in the other: then it matters which tensor it is.
        """
        pattern, merged = together((a, b))
        return pattern if self._rigid(pattern).isdisjoint(merged) else None

    def resolve(self, shared: Shared) -> Value:
        """The value itself."""
        template = self._templates[shared.form]
        if template.leaves == shared.leaves:
            return template.value
        found = self._resolved.get(shared)
        if found is None:
            renaming = self._renaming(template.leaves, shared.leaves)
            found = self._resolved[shared] = Value(template.value.type, renaming.poly(template.value.term))
        return found

    def _renaming(self, old: tuple[Tensor, ...], new: tuple[Tensor, ...]) -> Renaming:
        found = self._renamings.get((old, new))
        if found is None:
            found = self._renamings[old, new] = Renaming(dict(zip(old, new, strict=True)), self.leaves)
        return found

    def _at_boundary(self, value: Value, key: Key, k: int, merged: tuple[Tensor, ...]) -> Value:
        """A logical value as a leaf of its own, of which it is known nowhere what it is."""
        source = None if is_known_somewhere(value.term) else definition(value)
        selectors = self._selectors(value, merged, key)
        if source is None or not selectors:
            return value
        of = tuple(self._selected(s, merged) for s in selectors)
        self._sources[key, k] = source.tensor, of
        leaf = self._new_leaf((key, k), of)
        self._seal(source.tensor, leaf)
        return Value(value.type, algebra.read(leaf, source.indices))

    def _as_leaf(self, value: Value) -> Value:
        """A device's value as a read of the leaf that stands for it, where one does."""
        term = value.term
        if term.atom is not None or term.skey not in self._boundary_terms:
            return value
        named = define("term", (), (term,))
        atom = named.atom
        return Value(value.type, named) if isinstance(atom, Read) and atom.tensor in self._origin else value

    def _is_lost(self, name: Name, value: Value, merged: Collection[Tensor]) -> bool:
        """Whether a device's value ends a layer that has lost its meaning, or was made of one that has."""
        atom = value.term.atom
        if isinstance(atom, Read) and atom.tensor in self._origin:
            return False
        if self._own.isdisjoint(merged) and self._are_of_one_layer(merged):
            return False
        return name in self.between and not self._is_known(value)

    def _is_known(self, value: Value) -> bool:
        """Whether a device's value is a shard of one that the logical module computes."""
        read = definition(value)
        if read is None or read.tensor in self._known:
            return read is not None
        if self._sums_by_key is None:
            self._sums_by_key = {}
            for known in self._sums:
                self._sums_by_key.setdefault(known.term.skey, []).append(known)
        alike = map(definition, self._sums_by_key.get(value.term.skey, ()))
        return any(other is not None and other.tensor is read.tensor for other in alike)

    def _are_of_one_layer(self, leaves: Collection[Tensor]) -> bool:
        """Whether something between two logical layers is made of all of those leaves."""
        made: set[Tensor] | None = None
        for leaf in leaves:
            made = set(self._makes.get(leaf, ())) if made is None else made.intersection(self._makes.get(leaf, ()))
            if not made:
                return False
        return True

    def _seal_definitions(self, merged: Collection[Tensor]) -> None:
        """Make the definitions that what is made of such leaves may equal, in layers that were never interpreted."""
        for stand in self._unsealed.made_of(merged):
            boundary, of = self._origin[stand]
            source, old = self._sources[boundary]
            self._seal(self._renaming(old, of).tensor(source), stand)

    def _seal(self, source: Tensor, stand: Tensor) -> None:
        if source.seal is None:
            seal(source, stand)
        if source.kind == "term":
            self._boundary_terms.add(source.bodies[0].skey)
