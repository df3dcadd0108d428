"""Small pairs of modules for four devices."""

from __future__ import annotations

FOUR = "{devices=[4]<=[4]}"
REPLICATED = "{replicated}"


def module(arguments: str, result: str, body: str, devices: int = 4) -> str:
    """A module for so many devices, whose function has that signature."""
    return (
        f"module @m attributes {{mhlo.num_partitions = {devices} : i32, mhlo.num_replicas = 1 : i32}} {{\n"
        f"  func.func public @main({arguments}) -> ({result}) {{\n{body}\n  }}\n}}\n"
    )


def on(sharding: str) -> str:
    """The attribute of an argument or result with that sharding."""
    return f'{{mhlo.sharding = "{sharding}"}}'


def reduction(size: int) -> str:
    """`%s`, the sum of `%x`."""
    return f"""
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<{size}xf32>, tensor<f32>) -> tensor<f32>
"""


ALL_REDUCE = """
    %t = "stablehlo.all_reduce"(%s) <{
      replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>,
      channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>,
      use_global_device_ids
    }> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
    }) : (tensor<f32>) -> tensor<f32>
"""

LOGICAL = module(
    f"%x: tensor<8xf32> {on(FOUR)}",
    f"tensor<f32> {on(REPLICATED)}",
    reduction(8) + "    return %s : tensor<f32>",
)
"""The sum of 8 numbers, two on each device."""

PARTIAL = module("%x: tensor<2xf32>", "tensor<f32>", reduction(2) + "    return %s : tensor<f32>")
"""Each device's part of it."""

SUMMED = module("%x: tensor<2xf32>", "tensor<f32>", reduction(2) + ALL_REDUCE + "    return %t : tensor<f32>")
"""All of it."""


def elementwise(kind: str, logical: str, partitioned: str) -> tuple[str, str]:
    """Two bodies over `%x: tensor<8xkind>`, which is split; on a device, over `tensor<2xkind>`.

    The bodies leave `%y`; `TYPE` in them is the type.
    """
    whole, part = f"tensor<8x{kind}>", f"tensor<2x{kind}>"
    return (
        module(
            f"%x: {whole} {on(FOUR)}",
            f"{whole} {on(FOUR)}",
            f"    {logical.replace('TYPE', whole)}\n    return %y : {whole}",
        ),
        module(f"%x: {part}", part, f"    {partitioned.replace('TYPE', part)}\n    return %y : {part}"),
    )
