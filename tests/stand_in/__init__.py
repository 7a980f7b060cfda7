"""A stand-in for an Ollama server: for tests, benchmarks, and for trying the Ollama path without Ollama.

It speaks Ollama's protocol (without streams), answers from a function, and breaks on request.
"""

from stand_in.brains import Body as Body
from stand_in.brains import Said as Said
from stand_in.brains import Token as Token
from stand_in.brains import choose_by_hash as choose_by_hash
from stand_in.brains import embedded_brain as embedded_brain
from stand_in.brains import prompt_text as prompt_text
from stand_in.decisions import ROWS as ROWS
from stand_in.decisions import Decisions as Decisions
from stand_in.faults import FAULTS as FAULTS
from stand_in.faults import first_attempts as first_attempts
from stand_in.server import StandIn as StandIn
