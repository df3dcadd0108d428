"""HV1xx: sharding annotations, and the lineage that they give to arguments and results."""

from __future__ import annotations

from hlo_verify.diagnostics.code import Code


class Annotation(Code):
    """What is said of where elements are cannot be understood, or does not fit the modules. Nothing was decided."""

    NOT_A_SHARDING = (
        "HV101",
        """the text of a sharding makes no sense

        A sharding in a module or in a shardings file is in neither language: no HloSharding (version 1, 2 or 3) and no
        `#sdy.sharding<…>`; or it is an HloSharding that contradicts itself.

        Example: `{devices=[2,2]<=[8]}` names 8 devices for 4 tiles, `{devices=[4,1]0,1,1,3}` names one device twice.

        In practice: a module that was edited by hand, or written by a compiler newer than the jaxlib that reads it.

        What to do: correct the text that the message quotes, or dump the module again.
        """,
    )

    WRONG_RANK = (
        "HV102",
        """a sharding does not fit its tensor

        A sharding has an entry for each dimension of its tensor, and a tuple's sharding one for each element.

        Example: `{devices=[4]<=[4]}` on an argument of type `f32[8,8]`; it takes `{devices=[4,1]<=[4]}`.

        In practice: a shardings file written for another version of the program, or the batch dimension forgotten.

        What to do: count the dimensions of the tensor in the message; in a shardings file, entries that are left out at
        the end are not split, but there may not be too many.
        """,
    )

    WRONG_DEVICES = (
        "HV103",
        """a sharding is for other devices than the module's

        The number of devices that a sharding names, or that its mesh has, is not the number of partitions of the
        module; or it names a device that does not exist.

        Example: `{devices=[8,1]<=[8]}` in a module with `num_partitions=4`.

        In practice: two modules of different runs, `--devices` with the number of hosts, a shardings file for another
        mesh.

        What to do: let all of them speak of the same number of devices: partitions, not hosts.
        """,
    )

    WRONG_MESH = (
        "HV104",
        """a mesh or its axes are wrong

        A sharding or replica groups refer to a mesh that is not defined, to an axis that it does not have, to a part of
        an axis that does not divide it, or to one axis twice; or the `device_ids` of a mesh do not name each of its
        devices once.

        Example: `P("modle")` on a mesh with the axes `data` and `model`.

        What to do: the message lists the axes that the mesh has. An axis may split one dimension only.
        """,
    )

    NO_SHARDING = (
        "HV105",
        """an argument or result has no sharding

        Neither module says how the tensor is laid out over the devices, and its shapes do not tell: no number of equal
        shards, the last padded if need be, makes a device's tensor of the logical one.

        In practice: modules of different programs, layouts that interleave shards, text that lost its attributes.

        What to do: give one with `--shardings FILE` (docs/shardings.md), or lower the program with `in_shardings` and
        `out_shardings`.
        """,
    )

    WRONG_SHARD = (
        "HV106",
        """a shard has another shape than its sharding makes

        The sharding splits the logical tensor into shards of one shape, and the partitioned module takes or returns
        another.

        Example: `f32[4096]` over 8 devices makes shards of `f32[512]`, and the partitioned module takes `f32[1024]`.

        In practice: the two modules are of different programs, or of one program partitioned for different meshes; a
        shardings file splits another dimension than the program does.

        What to do: check that the two modules are a pair, from the same compilation, and what `--shardings` says.
        """,
    )

    NO_SUM = (
        "HV107",
        """an unreduced tensor whose elements have no sum

        An unreduced tensor is the sum of addends that lie on different devices; that has no meaning for truth values
        and tokens.

        Example: `#sdy.sharding<@mesh, [{}], unreduced={"x"}>` on a tensor of `i1`.

        What to do: take the axes out of `unreduced`; an `or` over devices is an all_reduce with that reducer.
        """,
    )

    CONTRADICTION = (
        "HV108",
        """two statements of where a tensor lies contradict each other

        What says how a tensor is laid out does so twice, and differently: the module and a shardings file, the logical
        and the partitioned module, or one module in two attributes. Neither is taken for the right one.

        Example: the module has `{devices=[4,1]<=[4]}` for its first argument, the file `0 = []` (replicated).

        In practice: modules of two different compilations; an annotation that was edited in one of them.

        What to do: leave the tensor out of the file; what a module says need not be repeated. To verify the program
        under another sharding, lower it again with that.
        """,
    )

    PLACES_NOTHING = (
        "HV109",
        """an annotation that does not say where elements are

        `{manual}`, and a tile assignment or mesh with a manual subgroup, say that each device (or subgroup) has a
        tensor of its own, `{unknown}` that nothing is known. None of them says which elements of the logical tensor a
        device holds, and nothing is guessed where a module has an annotation.

        In practice: the inside of a manual region that was dumped as a module of its own.

        What to do: name the layout in `--shardings FILE`: `P("data", None)`, a list of axes, or a tiled or replicated
        HloSharding.
        """,
    )

    UNREDUCED_RESULT = (
        "HV110",
        """a result comes out unreduced, and nothing says that it should

        Every device returns an addend of the result, and no module says that it is to lie so. The program may be meant
        like that, and just so looks one whose last all_reduce was forgotten: the result is UNKNOWN.

        Example: `y = x @ w` with the rows of `w` over two devices, returned without an all_reduce.

        What to do: where the all_reduce was forgotten, add it. Where the result is meant to be left unreduced, give a
        file with the line that the message shows as `--results FILE` (docs/shardings.md), under `[results]`.
        """,
    )

    GUESSED_PLACEMENT = (
        "HV111",
        """a result differs under placements that were inferred

        No module says where some arguments or results lie; they were placed by their shapes, and placed like that the
        result differs. Under another placement that the shapes allow it may be right: with copies where padding was
        taken, with addends where the whole was, with devices in another order. Not all of them were refuted.

        Example: a bias that each of two devices adds before an all_reduce counts twice where it is whole on both, and
        once where one device holds zeros.

        What to do: say where the arguments lie, with `--shardings FILE` (docs/shardings.md): then the result is REFUTED
        or PROVED. The report shows how it differs where everything lies as the message says.
        """,
    )
