"""A small valid module in HLO text for every opcode, with one instruction of it, `%op`."""

from __future__ import annotations

import re
from dataclasses import dataclass

OPCODES = tuple(
    """
    abs acos acosh add add-dependency after-all all-gather all-gather-done all-gather-start all-reduce all-reduce-done
    all-reduce-start all-to-all and asin asinh async-done async-start async-update atan atan2 atanh batch-norm-grad
    batch-norm-inference batch-norm-training bitcast bitcast-convert broadcast call cbrt ceil cholesky clamp
    collective-broadcast collective-permute collective-permute-done collective-permute-start collective-reduce compare
    complex concatenate conditional constant convert convolution copy copy-done copy-start cosh cosine
    count-leading-zeros custom-call divide domain dot dynamic-reshape dynamic-slice dynamic-update-slice erf exponential
    exponential-minus-one fft floor fusion gather get-dimension-size get-tuple-element imag infeed iota is-finite log
    log-plus-one logistic map maximum minimum mulhi multiply negate not opt-barrier or outfeed pad parameter
    partition-id popcnt power ragged-all-to-all ragged-dot real recv recv-done reduce reduce-precision reduce-scatter
    reduce-window remainder replica-id reshape reverse rng rng-bit-generator rng-get-and-update-state round-nearest-afz
    round-nearest-even rsqrt scaled-dot scan scatter select select-and-scatter send send-done set-dimension-size
    shift-left shift-right-arithmetic shift-right-logical shuffle sign sine sinh slice sort sqrt stochastic-convert
    subtract tan tanh topk transpose triangular-solve tuple while xor
    """.split()
)


@dataclass(frozen=True, slots=True)
class Example:
    """Parameters `%a`, `%b`, … of some types, the instruction, and those that it needs around it."""

    parameters: str
    instruction: str
    before: str = ""
    after: str = ""

    @property
    def text(self) -> str:
        given = [f"%{name} = {kind} parameter({n})" for n, (name, kind) in enumerate(self._parameters())]
        rooted = "" if "ROOT" in self.after else "ROOT "
        named = "" if self.instruction.startswith("%") else "%op = "
        inside = "\n  ".join((*given, *self.before.split("; "), f"{rooted}{named}{self.instruction}", self.after))
        body = inside.replace("; ", "\n  ")
        return f"HloModule m\n\n{self._computations()}ENTRY %main {{\n  {body}\n}}\n"

    def _parameters(self) -> list[tuple[str, str]]:
        return list(zip("abcdefgh", re.findall(r"\S+", self.parameters), strict=False))

    def _computations(self) -> str:
        text = " ".join((self.instruction, self.before, self.after))
        return "".join(f"{each}\n" for name, each in COMPUTATIONS.items() if f"%{name}" in text)


COMPUTATIONS = {
    "sum": """%sum {
  %l = f32[] parameter(0)
  %r = f32[] parameter(1)
  ROOT %s = f32[] add(%l, %r)
}
""",
    "greater": """%greater {
  %l = f32[] parameter(0)
  %r = f32[] parameter(1)
  ROOT %g = pred[] compare(%l, %r), direction=GT
}
""",
    "double": """%double {
  %x = f32[4] parameter(0)
  ROOT %y = f32[4] add(%x, %x)
}
""",
    "same": """%same {
  ROOT %x = f32[4] parameter(0)
}
""",
    "often": """%often {
  %x = f32[4] parameter(0)
  ROOT %t = pred[] constant(true)
}
""",
    "negation": """%negation {
  %x = f32[] parameter(0)
  ROOT %y = f32[] negate(%x)
}
""",
    "carry": """%carry {
  %x = f32[] parameter(0)
  %y = f32[] parameter(1)
  %s = f32[] add(%x, %y)
  ROOT %t = (f32[], f32[]) tuple(%s, %s)
}
""",
}

_UNARY = """abs acos acosh asin asinh atan atanh cbrt ceil cosh cosine erf exponential exponential-minus-one floor log
    log-plus-one logistic negate round-nearest-afz round-nearest-even rsqrt sign sine sinh sqrt tan tanh copy""".split()
_BINARY = "add atan2 divide maximum minimum multiply power remainder subtract".split()
_INTEGERS = "and or xor shift-left shift-right-arithmetic shift-right-logical mulhi".split()

EXAMPLES: dict[str, Example] = {
    **{name: Example("f32[4]", f"f32[4] {name}(%a)") for name in _UNARY},
    **{name: Example("f32[4] f32[4]", f"f32[4] {name}(%a, %b)") for name in _BINARY},
    **{name: Example("s32[4] s32[4]", f"s32[4] {name}(%a, %b)") for name in _INTEGERS},
    **{name: Example("s32[4]", f"s32[4] {name}(%a)") for name in ("not", "popcnt", "count-leading-zeros")},
    "add-dependency": Example("f32[4] token[]", "f32[4] add-dependency(%a, %b)"),
    "after-all": Example("token[] token[]", "token[] after-all(%a, %b)"),
    "all-gather": Example(
        "f32[4]",
        "f32[8] all-gather(%a), channel_id=1, replica_groups={{0,1}}, dimensions={0}, use_global_device_ids=true",
    ),
    "all-gather-start": Example(
        "f32[4]",
        "(f32[4], f32[8]) all-gather-start(%a), channel_id=1, replica_groups={{0,1}}, dimensions={0}, "
        "use_global_device_ids=true",
        after="ROOT %done = f32[8] all-gather-done(%op)",
    ),
    "all-gather-done": Example(
        "f32[4]",
        "f32[8] all-gather-done(%start)",
        before="%start = (f32[4], f32[8]) all-gather-start(%a), channel_id=1, replica_groups={{0,1}}, dimensions={0}, "
        "use_global_device_ids=true",
    ),
    "all-reduce": Example(
        "f32[4]",
        "f32[4] all-reduce(%a), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=%sum",
    ),
    "all-reduce-start": Example(
        "f32[4]",
        "f32[4] all-reduce-start(%a), channel_id=1, replica_groups={{0,1}}, use_global_device_ids=true, to_apply=%sum",
        after="ROOT %done = f32[4] all-reduce-done(%op)",
    ),
    "all-reduce-done": Example(
        "f32[4]",
        "f32[4] all-reduce-done(%start)",
        before="%start = f32[4] all-reduce-start(%a), channel_id=1, replica_groups={{0,1}}, "
        "use_global_device_ids=true, to_apply=%sum",
    ),
    "all-to-all": Example("f32[4]", "f32[4] all-to-all(%a), channel_id=1, replica_groups={{0,1}}, dimensions={0}"),
    "async-start": Example(
        "f32[4]",
        "((f32[4]), f32[4], s32[]) call-start(%a), to_apply=%double",
        after="ROOT %done = f32[4] call-done(%op)",
    ),
    "async-update": Example(
        "f32[4]",
        "((f32[4]), f32[4], s32[]) call-update(%start)",
        before="%start = ((f32[4]), f32[4], s32[]) call-start(%a), to_apply=%double",
        after="ROOT %done = f32[4] call-done(%op)",
    ),
    "async-done": Example(
        "f32[4]",
        "f32[4] call-done(%start)",
        before="%start = ((f32[4]), f32[4], s32[]) call-start(%a), to_apply=%double",
    ),
    "batch-norm-grad": Example(
        "f32[4,2] f32[2] f32[2] f32[2] f32[4,2]",
        "(f32[4,2], f32[2], f32[2]) batch-norm-grad(%a, %b, %c, %d, %e), epsilon=0.5, feature_index=1",
    ),
    "batch-norm-inference": Example(
        "f32[4,2] f32[2] f32[2] f32[2] f32[2]",
        "f32[4,2] batch-norm-inference(%a, %b, %c, %d, %e), epsilon=0.5, feature_index=1",
    ),
    "batch-norm-training": Example(
        "f32[4,2] f32[2] f32[2]",
        "(f32[4,2], f32[2], f32[2]) batch-norm-training(%a, %b, %c), epsilon=0.5, feature_index=1",
    ),
    "bitcast": Example("f32[4]", "f32[2,2] bitcast(%a)"),
    "bitcast-convert": Example("f32[4]", "s32[4] bitcast-convert(%a)"),
    "broadcast": Example("f32[4]", "f32[4,4] broadcast(%a), dimensions={1}"),
    "call": Example("f32[4]", "f32[4] call(%a), to_apply=%double"),
    "cholesky": Example("f32[4,4]", "f32[4,4] cholesky(%a), lower=true"),
    "clamp": Example("f32[4] f32[4] f32[4]", "f32[4] clamp(%a, %b, %c)"),
    "collective-broadcast": Example("f32[4]", "f32[4] collective-broadcast(%a), channel_id=1, replica_groups={{0,1}}"),
    "collective-permute": Example(
        "f32[4]", "f32[4] collective-permute(%a), channel_id=1, source_target_pairs={{0,1},{1,0}}"
    ),
    "collective-permute-start": Example(
        "f32[4]",
        "(f32[4], f32[4]) collective-permute-start(%a), channel_id=1, source_target_pairs={{0,1},{1,0}}",
        after="ROOT %done = f32[4] collective-permute-done(%op)",
    ),
    "collective-permute-done": Example(
        "f32[4]",
        "f32[4] collective-permute-done(%start)",
        before="%start = (f32[4], f32[4]) collective-permute-start(%a), channel_id=1, "
        "source_target_pairs={{0,1},{1,0}}",
    ),
    "collective-reduce": Example(
        "f32[4]", "f32[4] collective-reduce(%a), channel_id=1, replica_groups={{0,1}}, to_apply=%sum"
    ),
    "compare": Example("f32[4] f32[4]", "pred[4] compare(%a, %b), direction=LT, type=TOTALORDER"),
    "complex": Example("f32[4] f32[4]", "c64[4] complex(%a, %b)"),
    "concatenate": Example("f32[2,2] f32[2,2]", "f32[4,2] concatenate(%a, %b), dimensions={0}"),
    "conditional": Example(
        "s32[] f32[4] f32[4]", "f32[4] conditional(%a, %b, %c), branch_computations={%double, %same}"
    ),
    "constant": Example("", "f32[4] constant({1, 2, 3, 4})"),
    "convert": Example("f32[4]", "s32[4] convert(%a)"),
    "convolution": Example(
        "f32[2,8,8,4] f32[3,3,2,4]",
        "f32[2,8,8,4] convolution(%a, %b), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, "
        "feature_group_count=2, operand_precision={highest,high}",
    ),
    "copy-start": Example(
        "f32[4]", "(f32[4], f32[4], u32[]) copy-start(%a)", after="ROOT %done = f32[4] copy-done(%op)"
    ),
    "copy-done": Example(
        "f32[4]", "f32[4] copy-done(%start)", before="%start = (f32[4], f32[4], u32[]) copy-start(%a)"
    ),
    "custom-call": Example("f32[4] f32[4]", 'f32[4] custom-call(%a, %b), custom_call_target="kernel"'),
    "domain": Example(
        "f32[4]", 'f32[4] domain(%a), domain={kind="sharding", entry={maximal device=0}, exit={maximal device=1}}'
    ),
    "dot": Example(
        "f32[4,4] f32[4,4]",
        "f32[4,4] dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={highest,high}",
    ),
    "dynamic-reshape": Example("f32[4] s32[] s32[]", "f32[2,2] dynamic-reshape(%a, %b, %c)"),
    "dynamic-slice": Example("f32[4] s32[]", "f32[2] dynamic-slice(%a, %b), dynamic_slice_sizes={2}"),
    "dynamic-update-slice": Example("f32[4] f32[2] s32[]", "f32[4] dynamic-update-slice(%a, %b, %c)"),
    "fft": Example("c64[4]", "c64[4] fft(%a), fft_type=FFT, fft_length={4}"),
    "fusion": Example("f32[4]", "f32[4] fusion(%a), kind=kLoop, calls=%double"),
    "gather": Example(
        "f32[4,4] s32[3,1]",
        "f32[3,4] gather(%a, %b), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
        "slice_sizes={1,4}",
    ),
    "get-dimension-size": Example("f32[4,2]", "s32[] get-dimension-size(%a), dimensions={1}"),
    "get-tuple-element": Example("(f32[4],f32[4])", "f32[4] get-tuple-element(%a), index=1"),
    "imag": Example("c64[4]", "f32[4] imag(%a)"),
    "infeed": Example("token[]", "Infeed((f32[4], token[]))"),
    "iota": Example("", "s32[4,4] iota(), iota_dimension=1"),
    "is-finite": Example("f32[4]", "pred[4] is-finite(%a)"),
    "map": Example("f32[4]", "f32[4] map(%a), dimensions={0}, to_apply=%negation"),
    "opt-barrier": Example("f32[4]", "f32[4] opt-barrier(%a)"),
    "outfeed": Example("f32[4] token[]", 'token[] outfeed(%a, %b), outfeed_shape=f32[4], outfeed_config="c"'),
    "pad": Example("f32[4] f32[]", "f32[8] pad(%a, %b), padding=1_0_1"),
    "parameter": Example("f32[4]", "%op = f32[4] parameter(1)"),
    "partition-id": Example("", "u32[] partition-id()"),
    "ragged-all-to-all": Example(
        "f32[4] f32[4] s32[2] s32[2] s32[2] s32[2]",
        "f32[4] ragged-all-to-all(%a, %b, %c, %d, %e, %f), channel_id=1, replica_groups={{0,1}}",
    ),
    "ragged-dot": Example(
        "f32[6,4] f32[2,4,3] s32[2]",
        "f32[6,3] ragged-dot(%a, %b, %c), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, "
        "rhs_group_dims={0}",
    ),
    "real": Example("c64[4]", "f32[4] real(%a)"),
    "recv": Example(
        "token[]",
        "(f32[4], u32[], token[]) recv(%a), channel_id=2, is_host_transfer=true",
        after="ROOT %done = (f32[4], token[]) recv-done(%op), channel_id=2, is_host_transfer=true",
    ),
    "recv-done": Example(
        "token[]",
        "(f32[4], token[]) recv-done(%start), channel_id=2, is_host_transfer=true",
        before="%start = (f32[4], u32[], token[]) recv(%a), channel_id=2, is_host_transfer=true",
    ),
    "reduce": Example("f32[4,4] f32[]", "f32[4] reduce(%a, %b), dimensions={1}, to_apply=%sum"),
    "reduce-precision": Example("f32[4]", "f32[4] reduce-precision(%a), exponent_bits=5, mantissa_bits=10"),
    "reduce-scatter": Example(
        "f32[4]",
        "f32[2] reduce-scatter(%a), channel_id=1, replica_groups={{0,1}}, dimensions={0}, to_apply=%sum, "
        "use_global_device_ids=true",
    ),
    "reduce-window": Example(
        "f32[4,4] f32[]", "f32[3,3] reduce-window(%a, %b), window={size=2x2 stride=1x1}, to_apply=%sum"
    ),
    "replica-id": Example("", "u32[] replica-id()"),
    "reshape": Example("f32[4]", "f32[2,2] reshape(%a)"),
    "reverse": Example("f32[4,4]", "f32[4,4] reverse(%a), dimensions={1}"),
    "rng": Example("f32[] f32[]", "f32[4] rng(%a, %b), distribution=rng_uniform"),
    "rng-bit-generator": Example("u64[2]", "(u64[2], u32[4]) rng-bit-generator(%a), algorithm=rng_three_fry"),
    "rng-get-and-update-state": Example("", "u64[2] rng-get-and-update-state(), delta=7"),
    "scaled-dot": Example(
        "f8e4m3fn[32,64] f8e4m3fn[64,32] f8e8m0fnu[32,2] f8e8m0fnu[2,32]",
        "f32[32,32] scaled-dot(%a, %b, %c, %d), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    ),
    "scan": Example("f32[4] f32[]", "(f32[4], f32[]) scan(%a, %b), dimensions={0}, num_carries=1, to_apply=%carry"),
    "scatter": Example(
        "f32[4,4] s32[3,1] f32[3,4]",
        "f32[4,4] scatter(%a, %b, %c), update_window_dims={1}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=%sum",
    ),
    "select": Example("pred[4] f32[4] f32[4]", "f32[4] select(%a, %b, %c)"),
    "select-and-scatter": Example(
        "f32[4,4] f32[2,2] f32[]",
        "f32[4,4] select-and-scatter(%a, %b, %c), window={size=2x2 stride=2x2}, select=%greater, scatter=%sum",
    ),
    "send": Example(
        "f32[4] token[]",
        "(f32[4], u32[], token[]) send(%a, %b), channel_id=2, is_host_transfer=true",
        after="ROOT %done = token[] send-done(%op), channel_id=2, is_host_transfer=true",
    ),
    "send-done": Example(
        "f32[4] token[]",
        "token[] send-done(%start), channel_id=2, is_host_transfer=true",
        before="%start = (f32[4], u32[], token[]) send(%a, %b), channel_id=2, is_host_transfer=true",
    ),
    "set-dimension-size": Example("f32[4] s32[]", "f32[<=4] set-dimension-size(%a, %b), dimensions={0}"),
    "shuffle": Example("f32[4]", "f32[4] shuffle(%a), dimensions={0}"),
    "slice": Example("f32[8]", "f32[2] slice(%a), slice={[1:5:2]}"),
    "sort": Example("f32[4,4]", "f32[4,4] sort(%a), dimensions={1}, is_stable=true, to_apply=%greater"),
    "stochastic-convert": Example("f32[4] u32[4]", "s32[4] stochastic-convert(%a, %b)"),
    "topk": Example("f32[8]", "(f32[2], s32[2]) topk(%a), k=2, largest=true"),
    "transpose": Example("f32[4,2]", "f32[2,4] transpose(%a), dimensions={1,0}"),
    "triangular-solve": Example(
        "f32[4,4] f32[4,4]",
        "f32[4,4] triangular-solve(%a, %b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE",
    ),
    "tuple": Example("f32[4] f32[2]", "(f32[4], f32[2]) tuple(%a, %b)"),
    "while": Example("f32[4]", "f32[4] while(%a), condition=%often, body=%double"),
}
EXAMPLES["infeed"] = Example("token[]", '(f32[4], token[]) infeed(%a), infeed_config="c"')
