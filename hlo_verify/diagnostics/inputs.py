"""HV4xx: input that cannot be verified as it stands."""

from __future__ import annotations

from hlo_verify.diagnostics.code import Code


class Input(Code):
    """What was given cannot be verified as it stands: nothing was decided, and the exit status is 2."""

    USAGE = (
        "HV400",
        """options or arguments that do not go together

        What was asked for makes no sense as a whole: three paths, `--keep` for a pair that is there already, a function
        in place of a module, an unknown code for `--explain`.

        What to do: `hlo-verify --help`, or docs/usage.md for Python.
        """,
    )

    UNREADABLE = (
        "HV401",
        """a file cannot be read

        There is no such file, it is a folder, or the operating system refuses it.

        What to do: check the path. A dump folder is an argument by itself: `hlo-verify DUMP_DIR`.
        """,
    )

    UNWRITABLE = (
        "HV402",
        """a file cannot be written

        The report (`-o FILE`), the two modules (`--keep DIR`) or verdicts (`--cache DIR`) cannot be put where they were
        asked for.

        What to do: name a folder that exists and that you may write to.
        """,
    )

    NOT_A_MODULE = (
        "HV403",
        """the file is not a module

        Its content is of no form that is known: StableHLO text or bytecode, a StableHLO portable artifact, a
        `jax.export` artifact, HLO text, a serialized HloModuleProto or HloProto, each plain or gzipped. The name of the
        file does not matter.

        In practice: an empty file, a pickle, the log of a compilation, a jaxpr.

        What to do: `jax.jit(f).lower(x).as_text(debug_info=True)` writes StableHLO; XLA dumps HLO with `--xla_dump_to`.
        """,
    )

    DAMAGED = (
        "HV404",
        """the module is damaged, cut short, or of a version that cannot be read

        It begins as a module does, and jaxlib's parser does not accept all of it.

        In practice: a file whose writer was interrupted, an incomplete copy, HLO text of another version of XLA.

        What to do: make or fetch the file again. Between versions, use StableHLO portable artifacts or protos
        (`--xla_dump_hlo_as_proto`); text has no compatibility promise.
        """,
    )

    ELIDED_CONSTANTS = (
        "HV405",
        """the values of large constants are left out

        Printers shorten large constants, and a module without their values says nothing exact.

            %c = f32[64,64] constant({...})                               in HLO text
            stablehlo.constant dense_resource<__elided__> : tensor<...>   in StableHLO

        What to do: dump again with `--xla_dump_large_constants=true` in XLA_FLAGS, or protos with
        `--xla_dump_hlo_as_proto`; print StableHLO without `--mlir-elide-elementsattrs-if-larger`.
        """,
    )

    UNSUPPORTED_MODULE = (
        "HV406",
        """the module as a whole has a form that is not supported

        Tensors of dynamic shape, functions or regions of several blocks, a function that calls itself or is not there,
        no entry function, constants of an element type that cannot be read; a function that returns no arrays.

        Example: `tensor<?x8xf32>`, as jax.export writes for symbolic shapes.

        What to do: lower the program for concrete shapes; name the entry function `main`; return what is to be right.
        """,
    )

    NOT_A_PAIR = (
        "HV407",
        """the two modules are not a pair

        They differ in the number of arguments or results, in their element types, or in the number of devices, so one
        cannot be the other's partitioning.

        In practice: modules of different programs or compilations, halves exchanged (the logical module comes first),
        arguments that one side drops because they are unused.

        What to do: take both from one compilation; a dump folder is paired up for you. `keep_unused=True` in jax.jit
        keeps arguments.
        """,
    )

    DEVICES_UNKNOWN = (
        "HV408",
        """the number of devices is not known

        No module says how many devices it is for (a serialized HloModuleProto does not), and its shardings, meshes,
        replica groups and tables tell nothing, or do not agree.

        What to do: `--devices N`, partitions times replicas; or pass HLO text, whose header says `num_partitions`.
        """,
    )

    OTHER_DEVICES = (
        "HV409",
        """the module is for another number of devices

        The module says how many partitions and replicas it has, and it was asked for another number.

        What to do: leave out `--devices`; or let it, or the mesh of the shardings file, be the module's own.
        """,
    )

    TOO_MANY_DEVICES = (
        "HV410",
        """more devices than can be handled

        XLA's CPU client, which partitions a single module, numbers the devices of one process up to 2048; and a mesh or
        sharding has to be of a size that can be enumerated.

        What to do: compile the program where it runs, with XLA dumping both sides of its partitioner, and verify the
        dump folder.
        """,
    )

    SHARDINGS_FILE = (
        "HV411",
        """the shardings file is wrong

        It is neither TOML nor JSON, has a key that is not known, names an argument or result that does not exist or
        names one twice, or an entry is no sharding.

        Example:

            [mesh]
            data = 2
            [arguments]
            "params['w1']" = "P(None, 'data')"

        What to do: docs/shardings.md describes the file; the message names the entry.
        """,
    )

    CONFIGURATION = (
        "HV412",
        """the defaults in pyproject.toml are wrong

        The table `[tool.hlo-verify]` has a key that is not known or a value of the wrong type, or the file is not TOML.

        What to do: docs/usage.md lists the keys. The file is the nearest pyproject.toml that has the table.
        """,
    )

    CUSTOM_CALL_MEANING = (
        "HV413",
        """what was said of a custom call cannot be used

        The function that stands for a custom call cannot be imported or traced for the types of the call's operands, or
        its results have other types than the call's.

        What to do: the function takes the call's operands as JAX arrays and returns its results, in order; a parameter
        named `attributes` gets the call's attributes (docs/usage.md, "Custom calls").
        """,
    )

    NOTHING_TO_PARTITION = (
        "HV414",
        """there is nothing to partition

        A single module is partitioned by XLA, and this one is for one device or has no sharding: every device would
        compute all of it, and a proof would say nothing.

        What to do: lower it with shardings over a mesh (`jax.jit(f, in_shardings=..., out_shardings=...)`), give them
        with `--shardings FILE`, or pass the partitioned module too.
        """,
    )

    XLA_REFUSES = (
        "HV415",
        """XLA does not partition the module

        The XLA in jaxlib raised an error, or ended, before it had written the partitioned module.

        In practice: a module that is partitioned already, shardings that contradict one another, custom calls that need
        a GPU or TPU, flags in XLA_FLAGS that this XLA does not have, too little memory.

        What to do: the message has what XLA says. Where XLA works on the machine that the program is for, dump both
        sides there and verify the folder.
        """,
    )

    NO_PAIR_IN_FOLDER = (
        "HV416",
        """a folder holds no pair of modules

        In the folder there are no dumps from before and after XLA's SPMD partitioner, or one half is missing.

        What to do: run the program with

            XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_pass_re=spmd|shardy|sharding --xla_dump_large_constants=true"

        and let the compilation finish. A program for one device is not partitioned; one that comes from the compilation
        cache is not compiled.
        """,
    )

    NO_CHAIN_IN_FOLDER = (
        "HV417",
        """a folder holds no chain of modules

        `--each-pass` needs dumps of one module from between at least two of XLA's passes, and the folder has none.

        What to do: run the program with

            XLA_FLAGS="--xla_dump_to=DIR --xla_dump_hlo_pass_re=.* --xla_dump_large_constants=true"

        A program that comes from the compilation cache is not compiled, so nothing is dumped.
        """,
    )

    NOT_READ_IN_TIME = (
        "HV418",
        """a file is not read within the time limit

        The time that the verification may take was over before its modules were read, so that nothing is known of them.

        In practice: hundreds of megabytes of HLO text, or a damaged file on which jaxlib's parser goes on for ever.

        What to do: give it more time (`--time-limit 3000`, or 0 for no limit). A serialized proto is read faster than
        text: dump with `--xla_dump_hlo_as_proto`.
        """,
    )

    PRECONDITION = (
        "HV419",
        """a precondition cannot be read, is about no argument, or holds for no input

        `--assume`, `assume=` and `[assume]` say of which values the elements of an argument are. The name is an
        argument's as reports have it (`batch['tokens']`), its path (`batch/tokens`), or a path with `*` for anything.
        Of integers and of floats it may be a range, of which the end is no value any more, or `positive`, or
        `nonnegative`; along the last dimension, `sorted` or `distinct`; of integers also `a permutation`, or `a
        multiple of 8`. `and` joins several.

            hlo-verify train.mlir --assume 'batch/tokens in [0, 32000)'
            hlo_verify.verify(f, g, assume={"tokens": (0, 32000), "perm": "permutation", "at": {"multiple_of": 8}})

        In practice: a name of which the path is longer (`*/tokens`), an empty range, one that the element type does not
        have (300 of `ui8`), truth values and complex numbers, which are in no order.

        What to do: the message names the arguments that there are; correct the name or the range.
        """,
    )

    NOT_TRACED = (
        "HV420",
        """a function cannot be traced for its arguments

        `hlo_verify.check` traces functions as `jax.jit` does, and JAX, or the function itself, raised an error.

        In practice: too many or too few arguments, shapes that do not fit one another, a function that needs a mesh
        around it, a mesh of more devices than there are, arguments of a `jax.jit` that are no arrays.

        What to do: the message has what JAX says, and the exception that it was raised from the whole of it. Meshes of
        devices that are not there: `jax.sharding.AbstractMesh`, or `check(f, g, x, mesh={"data": 8})`.
        """,
    )

    NOT_ALIKE = (
        "HV421",
        """two functions do not take or return the same

        `check(f, g, ...)` asks whether one function computes what another one does. Here they take other arrays, or
        return other trees, shapes or element types, so that the question makes no sense.

        In practice: a `shard_map` whose `out_specs` put side by side what is the same on all devices, a result left out
        or named otherwise, a loss that one of them averages in another type.

        What to do: let both return the same tree; `lambda x: g(x)[0]` picks a part.
        """,
    )

    PARTITIONED = (
        "HV422",
        """the module is partitioned already

        Of one module alone, XLA's partitioner makes the other half of a pair. This one is for several partitions, and
        communicates outside of any manual region: a partitioner has made it, and there is nothing to compare it with.

        Example: `hlo-verify module_0001.jit_step.0042.after_spmd-partitioning.txt`.

        What to do: pass the module from before it was partitioned too, `hlo-verify LOGICAL PARTITIONED`, or the folder
        that XLA dumped both to. `hlo-verify lint PARTITIONED` looks for defects of one module alone.
        """,
    )

    PLAN = (
        "HV423",
        """a plan cannot be carried out

        `hlo_verify.Plan` says which programs each rank runs and what ranks hand each other, and these do not go
        together: something is taken that was not made, sent or received, nobody takes what is made or sent, a value is
        received that has another type than was said, ranks wait for each other, or the schedule leaves something out.

        In practice: a gradient of a microbatch that is not accumulated, a send without its receive, two sends that wait
        for each other's receives, a program that returns other parts than are named.

        What to do: the message names the rank and its step, and `print(plan)` shows all of them. What a program returns
        and nobody needs is called `_`; transfers that are posted at once are a tuple.
        """,
    )

    APPROXIMATION = (
        "HV424",
        """a declared approximation cannot be read, or is about no two values like that

        `--approximation` and `approximations=` name a value of the partitioned module and the one of the logical module
        that it stands for, each by a named scope (`jax.named_scope("stats")`) that it leaves or by the source line that
        computes it.

            hlo-verify f.mlir g.mlir --approximation 'batch_stats/mean = stats/mean'
            hlo_verify.check(f, g, x, approximations={"g.py:41": "f.py:12", "dropped": ("routed", P("data"))})

        In practice: a scope that several values leave, such as a mean and a variance; a value in a loop, which is
        another one in every turn; gradients, which are `transpose(stats/mean)`; shapes that fit in several ways.

        What to do: the message names the scopes, lines or values that there are. An inner scope around one value is
        easily added to a program, and changes nothing of it.
        """,
    )

    CLUSTER = (
        "HV425",
        """a Ray cluster cannot be worked on

        `hlo-verify --ray ADDRESS FOLDER` spreads the modules of a folder over the machines of a Ray cluster. Ray is not
        installed here, there is no cluster at that address, a machine of it has another hlo-verify, Python or jaxlib,
        or something is asked for that other machines do not have.

            pip install 'hlo-verify[ray]'             # on every machine
            ray start --head --port 6379              # on one
            ray start --address HOST:6379             # on each of the others
            hlo-verify --ray HOST:6379 /tmp/dump      # on any of them

        What to do: the message says which. Verdicts are the same on every machine because the tool is, by its source
        and by the versions that it leans on: `hlo-verify --version` says most of these.
        """,
    )
