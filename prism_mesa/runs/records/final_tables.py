"""The tables that are written when a run ends: posts, cascades and agents."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from prism_mesa.domain import ACTIONS, BIG_FIVE, POST_KINDS
from prism_mesa.runs.records.arrow_rows import category_column
from prism_mesa.runs.records.folder import PART_ROWS
from prism_mesa.social.round.acts import covering_acts, post_groups
from prism_mesa.social.state.act_state import GROUPS, NOT_ELIGIBLE
from prism_mesa.social.state.agent_fields import AGENT_FIELDS
from prism_mesa.social.state.attributes import Attribute
from prism_mesa.social.state.posts import POST, REPLY, RESHARE
from prism_mesa.social.state.sampling import SAMPLED
from prism_mesa.social.state.texts import NO_TEXT

if TYPE_CHECKING:
    from prism_mesa.social.model import SocialModel

_COPIED_COLUMNS = ("parent", "root", "likes", "replies", "reshares", "impressions", "velocity")

type Columns = Mapping[str, npt.NDArray[Any] | pa.Array]


def post_blocks(model: "SocialModel") -> Iterator[Columns]:
    """Yield the table of posts in blocks."""
    nearest = model.topics.nearest_name(model.posts.text_vectors)
    return _blocks(len(model.posts), lambda rows: _post_columns(model, rows, nearest))


def cascade_blocks(model: "SocialModel", trees: pd.DataFrame) -> Iterator[Columns]:
    """Yield the table of cascades in blocks, with the kind of each root."""
    kind = model.posts.kind[trees["root"]].astype(np.int8)

    def block(rows: slice) -> Columns:
        columns = {name: trees[name].to_numpy()[rows] for name in trees.columns}
        return {**columns, "kind": category_column(kind[rows], POST_KINDS)}

    return _blocks(len(trees), block)


def agent_blocks(model: "SocialModel") -> Iterator[Columns]:
    """Yield the table of agents in blocks."""
    network, n = model.network, len(model.population)
    posts = np.bincount(model.posts.author[model.posts.kind == POST], minlength=n)
    counts: dict[str, Any] = {"followers": network.n_followers, "followees": network.n_followees, "posts": posts}
    return _blocks(n, lambda rows: _agent_columns(model, rows, counts))


def _blocks(n: int, block: Callable[[slice], Columns]) -> Iterator[Columns]:
    """Yield blocks of `PART_ROWS` rows; an empty table has one block without rows."""
    for first in range(0, max(n, 1), PART_ROWS):
        yield block(slice(first, min(n, first + PART_ROWS)))


def _post_columns(model: "SocialModel", rows: slice, nearest: npt.NDArray[np.integer[Any]]) -> Columns:
    """Return a block of posts; `nearest` is the index of each text's topic among the topic names, or -1."""
    posts = model.posts
    kind = posts.kind[rows].astype(np.int8)
    columns: dict[str, Any] = {"post": np.arange(rows.start, rows.stop), "round": posts.round[rows]}
    columns["written"] = posts.round[rows] - posts.delay[rows]
    columns |= {"author": posts.author[rows], "kind": category_column(kind, POST_KINDS)}
    columns |= {name: getattr(posts, name)[rows] for name in _COPIED_COLUMNS}
    columns["topic"] = _text_column(model.topics.names, nearest[posts.text_id[rows]])
    words = posts.words[rows]
    text_ids = posts.added_texts(np.arange(rows.start, rows.stop))
    text = np.where((kind == REPLY) & (words == NO_TEXT), NO_TEXT, text_ids)  # a reply without words shows no text
    ids, index = _distinct_texts(np.where(text == NO_TEXT, NO_TEXT, text.astype(np.int64) << 32 | posts.wording[rows]))
    media = [posts.media(code >> 32) for code in ids]
    columns["text"] = _text_column([posts.text(code >> 32, code & 0xFFFFFFFF) for code in ids], index)
    comments, comment_index = _distinct_texts(np.where(kind == RESHARE, words, NO_TEXT))
    columns["comment"] = _text_column([posts.texts[i] for i in comments], comment_index)
    columns["media_type"] = _text_column([type_ for type_, _ in media], index)
    columns["media_description"] = _text_column([description for _, description in media], index)
    columns |= _attribute_columns(model.platform.attributes.schema.posts, posts.attributes[rows])
    for number, act in covering_acts(model.platform):
        groups, due = post_groups(model.platform, number, act, np.arange(rows.start, rows.stop))
        columns |= {str(act.name): category_column(groups, GROUPS), f"{act.name}_round": due}
    return columns


def _attribute_columns(attributes: Mapping[str, Attribute], values: npt.NDArray[np.float64]) -> dict[str, Any]:
    return {
        name: category_column(values[:, i].astype(np.int32), attribute.texts)
        if attribute.texts
        else attribute.column(values[:, i])
        for i, (name, attribute) in enumerate(attributes.items())
    }


def _distinct_texts(text_id: npt.NDArray[np.integer[Any]]) -> tuple[list[int], npt.NDArray[np.int32]]:
    """Return the distinct text ids, and the index of each `text_id` among them; -1 for `NO_TEXT`."""
    ids, index = np.unique(text_id, return_inverse=True)
    has_blank = int(len(ids) > 0 and ids[0] == NO_TEXT)
    return ids[has_blank:].tolist(), (index - has_blank).astype(np.int32)


def _text_column(texts: Sequence[str], index: npt.NDArray[np.integer[Any]]) -> pa.DictionaryArray:
    """Return the text at each index as a column of categories; the index -1 gives a blank."""
    codes, distinct = pd.factorize(np.array(texts, dtype=object))
    codes = np.append(codes, -1).astype(np.int32)  # for the index -1
    return category_column(codes[index], list(distinct))


def _agent_columns(model: "SocialModel", rows: slice, counts: Mapping[str, npt.NDArray[np.integer[Any]]]) -> Columns:
    population, agents = model.population, range(rows.start, rows.stop)
    columns: dict[str, Any] = {"agent": np.arange(rows.start, rows.stop)}
    columns["unique_id"] = columns["agent"] + 1
    columns["id"] = pa.array([population.ids[i] for i in agents], pa.string())
    columns["name"] = pa.array([population.names[i] for i in agents], pa.string())
    columns["interests"] = _joined_words(model.topics.names, model.topics.nearest_names(population.interests[rows]))
    columns |= {trait: population.traits[rows, i] for i, trait in enumerate(BIG_FIVE)}
    columns |= {name: field.to_column(getattr(population, name)[rows]) for name, field in AGENT_FIELDS.items()}
    columns |= {action: population.propensities[rows, i] for i, action in enumerate(ACTIONS)}
    columns |= {name: count[rows] for name, count in counts.items()}
    columns |= {"scripted": population.scripted[rows], "present": population.present[rows]}
    for table in SAMPLED:
        mask = model.recorded[table]
        columns[f"recorded_{table}"] = np.ones(len(agents), np.bool_) if mask is None else mask[rows]
    if (llms := model.platform.llms).names:
        columns["llm"] = category_column(llms.codes(columns["agent"], population).astype(np.int32), llms.names)
    columns |= _attribute_columns(model.platform.attributes.schema.agents, population.attributes[rows])
    for act in model.platform.configured.interventions:
        if act.name is not None:
            groups = model.platform.act_state.groups(act.name, len(population))[rows]
            columns[act.name] = category_column(np.maximum(groups, NOT_ELIGIBLE).astype(np.int32), GROUPS)
    return columns


def _joined_words(names: Sequence[str], nearest: npt.NDArray[np.integer[Any]]) -> pa.Array:
    """Return each row's names joined by semicolons; `nearest` has their indices or -1, shape (rows, names)."""
    digits = (len(names) + 1) ** np.arange(nearest.shape[1], dtype=np.int64)
    _, first, index = np.unique((nearest + np.int64(1)) @ digits, return_index=True, return_inverse=True)
    texts = [";".join(names[i] for i in row if i >= 0) for row in nearest[first].tolist()]
    return pa.array(texts, pa.string()).take(pa.array(index))
