"""Nations that think before they decide, and LLMs that advise them."""

import json
from contextlib import closing

from prism_mesa.economy.model import EconomyModel
from prism_mesa.llm import LLMClient, LLMParams

NATIONS = ("Canada", "Sweden")
TOO_MUCH = "Cut taxes by 300% of GDP"
GOOD = "Increase government spending by 1% of GDP"


def is_thought(prompt):
    return prompt.endswith("Your thoughts, as JSON:")


def is_about_own(prompt):
    return is_thought(prompt) and "think about your own last response" in prompt


def thought(*calls, plan="Do something.", verdict="continue"):
    proposed = [{"tool_name": name, "parameters": given} for name, given in calls]
    said = {"understanding": "Output shrinks.", "plan": plan, "verdict": verdict, "proposed_tools": proposed}
    return json.dumps(said)


def says(action, confidence=0.5):
    return json.dumps({"action": action, "reasoning": "why", "confidence": confidence})


def tries(policy):
    return "try_policy", {"policy": policy}


def careful(prompt):
    """An LLM that tries what is too much, and decides by what it is told of it."""
    if is_thought(prompt):
        return thought(tries(TOO_MUCH)) if not is_about_own(prompt) else thought(verdict="complete")
    return says(GOOD if "It would be rejected" in prompt else TOO_MUCH)


def client_of(llm, **params):
    """Return a client of a function; the prompts that it was asked are in `.prompts`."""
    prompts = []

    def noted(prompt):
        prompts.append(prompt)
        return llm(prompt)

    client = LLMClient(noted, LLMParams(**{"kind": "python", "backoff_s": 0.0, "attempts": 1, **params}))
    client.prompts = prompts
    return client


def model_of(llm, nations=NATIONS, deliberate=True, **params):
    client = llm if isinstance(llm, LLMClient) else client_of(llm)
    return EconomyModel(
        llm=client, economy_policy="llm", economy_nations=list(nations), economy_deliberate=deliberate, **params
    )


def after_a_step(llm, **params):
    """Return a model after its first quarter, and its nations' decisions."""
    with closing(model_of(llm, **params)) as model:
        model.step()
        return model, [one.action.action_string for one in model.decisions]


def betters_itself(prompt):
    """An LLM that proposes too much, tries its own proposal, and proposes less."""
    if is_about_own(prompt):
        return thought(tries(TOO_MUCH)) if TOO_MUCH in prompt else thought(verdict="complete")
    if is_thought(prompt):
        return thought()
    return says(GOOD if "It would be rejected" in prompt else TOO_MUCH)
