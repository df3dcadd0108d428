#!/bin/sh
# Verify every module that a training script compiles, from the folder that XLA dumps.
#   examples/dump_folder.sh python train.py          (default: examples/train.py on 8 virtual CPU devices)
set -eu
dump=$(mktemp -d)
trap 'rm -rf "$dump"' EXIT
flags="--xla_dump_to=$dump --xla_dump_hlo_as_text --xla_dump_large_constants=true --xla_dump_hlo_pass_re=spmd|shardy"
if [ $# -eq 0 ]; then
    set -- python "$(dirname "$0")/train.py"
    flags="$flags --xla_force_host_platform_device_count=8"
    export JAX_PLATFORMS=cpu
fi
XLA_FLAGS="${XLA_FLAGS:-} $flags" "$@"
python -m hlo_verify "$dump"
