"""Pipeline schedules as data: what each rank does, in order; published ones, checks, and drawings."""

from hlo_verify.schedules.checks import Fault, check
from hlo_verify.schedules.picture import svg
from hlo_verify.schedules.published import dualpipe, gpipe, interleaved_1f1b, one_f_one_b, zb_h1
from hlo_verify.schedules.schedule import Action, Kind, Schedule, Step, parse
from hlo_verify.schedules.timeline import Timeline, draw, run
from hlo_verify.schedules.transfers import with_transfers

__all__ = [
    "Action",
    "Fault",
    "Kind",
    "Schedule",
    "Step",
    "Timeline",
    "check",
    "draw",
    "dualpipe",
    "gpipe",
    "interleaved_1f1b",
    "one_f_one_b",
    "parse",
    "run",
    "svg",
    "with_transfers",
    "zb_h1",
]
