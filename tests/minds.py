"""Functions that play an LLM which decides, thinks and writes: what they say follows from what they are asked."""

import json
import re
from hashlib import blake2b

from prism_mesa.reasoner import Reasoner
from prism_mesa.social.state.posts import POST

THINKS, SPEAKS = "Your thoughts, as JSON:", "You say:"
WORDS = "music rain tram coffee election goal garden phone virus market school film snow car dog bread".split()


def whim(text, n):
    """Return one of 0 .. n - 1 by what a text says."""
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=4).digest()) % n


def thought(*calls):
    said = {"understanding": "Hm.", "needs": "", "connection": "", "plan": "Say so.", "verdict": "continue"}
    proposed = [{"tool_name": name, "parameters": given, "reasoning": "It helps."} for name, given in calls]
    return json.dumps(said | {"proposed_tools": proposed})


def quiet(prompt):
    """Think of nothing to do."""
    return thought()


def busy(prompt):
    """Think of up to three things to do, often about a post that is shown: some of them are allowed."""
    calls = [("read_feed", {})] if whim(f"reads {prompt}", 2) else []
    shown = re.findall(r"post (\d+) by", prompt) or ["0"]
    for place in range(whim(prompt, 4)):
        own = f"{place} {prompt}"
        post = int(shown[whim(own, len(shown))]) + whim(own, 6) // 5
        text = f"{WORDS[whim(own, 16)]} and {WORDS[whim(own + 'x', 16)]}"
        calls.append(
            (
                ("like", {"post": post}),
                ("reply", {"post": post, "text": f"Look, {text}"}),
                ("reshare", {"post": post, "comment": f"This: {text}"}),
                ("reshare", {"post": post}),
                ("post", {"text": f"I thought of {text}"}),
                ("remember", {"note": f"{text} matters", "importance": 1 + whim(own, 10)}),
                ("read_feed", {}),
                ("read_thread", {"post": post}),
                ("look_at_profile", {"agent": whim(own, 30)}),
                ("search_posts", {"words": text}),
                ("recall", {"about": text}),
                ("delete_platform", {"now": True}),
            )[whim(own, 12)]
        )
    return thought(*calls)


def words_of(prompt):
    """Return which of three things is to be written, and what about, in words of the corpus."""
    kind = {"Write your": "reply", "You pass th": "comment", "Write a pos": "post"}
    [task] = [name for start, name in kind.items() if prompt.startswith(start)]
    return f"{task}: {WORDS[whim(prompt, 16)]} or {WORDS[whim(prompt + 'x', 16)]} {whim(prompt, 1000)}"


def decides(prompt):
    return json.dumps({"next_state": "composing" if whim(prompt, 2) else "scrolling"})


class Mind:
    """Decides, thinks and speaks by three functions of the prompt, and keeps the prompts."""

    def __init__(self, speaks=words_of, thinks=quiet, decides=decides):
        self.speaks, self.thinks, self.decides = speaks, thinks, decides
        self.prompts = []

    def __call__(self, prompt):
        self.prompts.append(prompt)
        if prompt.endswith(THINKS):
            return self.thinks(prompt)
        return self.speaks(prompt) if prompt.endswith(SPEAKS) else self.decides(prompt)

    @property
    def spoken(self):
        """The prompts in which a text was asked for."""
        return [prompt for prompt in self.prompts if prompt.endswith(SPEAKS)]


def asked(mind, **options):
    """Return a reasoner that asks a mind, and does not wait before it asks again."""
    return Reasoner(mind, backoff_s=0, **options)


def published(model):
    """Return the words of all that was published: (kind, round, author, words)."""
    posts = model.posts
    own = [posts.text_id[i] if posts.kind[i] == POST else posts.words[i] for i in range(len(posts))]
    words = ["" if text < 0 else posts.texts[text] for text in own]
    columns = zip(posts.kind.tolist(), posts.round.tolist(), posts.author.tolist(), strict=True)
    return [(*column, said) for column, said in zip(columns, words, strict=True)]
