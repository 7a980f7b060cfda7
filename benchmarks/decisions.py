"""The cost of an answer by its form: calls, tokens and CPU seconds for the same questions and the same weights.

SmolLM2-135M answers the open choices of a default run in words (`choice`), with a letter (`probabilities`), and, with
two keys added to its file, as a decision model in one order and in two. llama.cpp does all the work in this process.
This measures cost, not quality: these weights decide badly.

    uv run --extra embedded python benchmarks/decisions.py
"""

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path
from time import process_time

from measuring import machine  # isort: skip  # it makes tests importable
from decision_gguf import make_decision_model
from worlds import PLAIN

from prism_mesa.llm import EmbeddedChatClient
from prism_mesa.llm.clients.embedded import close_engines
from prism_mesa.reasoner import PlacedQuestion, Reasoner
from prism_mesa.reasoner.oracle import AnswerForm
from prism_mesa.social.model import SocialModel


def questions(n: int) -> list[PlacedQuestion]:
    """Return the first `n` different questions of a run."""
    asked: dict[str, PlacedQuestion] = {}
    with Reasoner(lambda prompt: '{"next_state": "scrolling"}') as reasoner:
        reasoner.heard = lambda question, answer: asked.setdefault(answer.key, question)
        model = SocialModel(PLAIN, reasoner=reasoner)
        while len(asked) < n:
            model.step()
    return [replace(question, agent=-1) for question in list(asked.values())[:n]]  # useless answers end no run


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=9)
    asks = questions(parser.parse_args().questions)
    print(machine())
    forms: tuple[tuple[AnswerForm, int], ...] = (("choice", 1), ("probabilities", 1), ("decision", 1), ("decision", 2))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "decides.gguf"
        make_decision_model(path)
        for form, orders in forms:
            client = EmbeddedChatClient(str(path), max_tokens=16 if form == "probabilities" else 64)
            client.load(needs_decisions=form == "decision")
            with Reasoner(client, answer=form, decision_orders=orders, attempts=1, timeout_s=600) as reasoner:
                reasoner.answer(asks[:1])
                before, cpu = reasoner.usage.copy(), process_time()
                reasoner.answer(asks[1:])
                cpu, spent, n = process_time() - cpu, reasoner.usage - before, len(asks) - 1
            read, wrote, calls = (spent[what] / n for what in ("prompt_tokens", "completion_tokens", "calls"))
            name = form if orders == 1 else f"{form}, decision_orders=2"
            tokens = f"{read:>6.0f} read  {wrote:>5.1f} written"
            print(f"{name:<28}{calls:>6.1f} calls  {tokens}  {cpu / n:>6.2f} CPU s a question", flush=True)
    close_engines()


if __name__ == "__main__":
    main()
