"""The private entry points are there, and a jaxlib without them gives one clear error."""

import subprocess
import sys

import pytest

from hlo_verify import jaxlib_api

HLO = """HloModule small
ENTRY main {
  x = f32[4] parameter(0)
  ROOT y = f32[4] add(x, x)
}
"""


def test_hlo_goes_through_proto_to_stablehlo() -> None:
    proto = jaxlib_api.hlo_text_to_proto(HLO)
    assert "add(%x, %x)" in jaxlib_api.proto_to_text(proto)
    module = jaxlib_api.parse_module(jaxlib_api.proto_to_stablehlo(proto), jaxlib_api.make_context())
    assert "stablehlo.add" in str(module)


@pytest.mark.parametrize(
    ("text", "tiled"),
    [
        ("{replicated}", "{replicated}"),
        ("{mesh['a'=2,'b'=4], [{'a'}, {}]}", "{devices=[2,1,4]<=[8] last_tile_dim_replicate}"),
    ],
)
def test_hlo_shardings_come_in_version_two(text: str, tiled: str) -> None:
    assert str(jaxlib_api.hlo_sharding(text)) == tiled


def test_a_jaxlib_without_an_entry_point_is_named() -> None:
    program = (
        "import jaxlib._hlo\n"
        "del jaxlib._hlo.hlo_module_from_text\n"
        "try:\n"
        "    import hlo_verify.jaxlib_api\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "hlo_module_from_text" in printed
    assert jaxlib_api.jaxlib_version() in printed
    assert "0.10.2" in printed and "0.12.0.1" in printed
