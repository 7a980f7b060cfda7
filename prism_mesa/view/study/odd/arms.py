"""Merge the sections about several arms: common text once, differences for each arm."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from os.path import commonprefix
from typing import Any, Final

from prism_mesa.view.study import blocks as b

type Arm = tuple[str, ...]
"""What leads to a configuration: an arm's name, levels of factors."""
type ByArm[T] = Mapping[Arm, T]


def merged_sections(each: ByArm[Sequence[b.Section]]) -> tuple[b.Section, ...]:
    """Merge the sections of all arms, which have the same names in the same order."""
    return tuple(
        replace(same[0], blocks=_blocks({arm: section.blocks for arm, section in zip(each, same, strict=True)}))
        for same in zip(*each.values(), strict=True)
    )


def _blocks(each: ByArm[tuple[b.Block, ...]]) -> tuple[b.Block, ...]:
    """Merge blocks position by position while they have one type; the rest follows for each arm."""
    merged: list[b.Block] = []
    places = 0
    for alike in zip(*each.values(), strict=False):
        kinds = set(map(type, alike))
        if len(set(alike)) == 1:
            merged.append(alike[0])
        elif len(kinds) == 1 and (kind := kinds.pop()) in _MERGED:
            merged += _MERGED[kind](dict(zip(each, alike, strict=True)))
        else:
            break
        places += 1
    for arms, rest in _alike(each, {arm: blocks[places:] for arm, blocks in each.items()}):
        merged += [b.Paragraph((b.Strong(arms), ":")), *rest] if rest else []
    return tuple(merged)


def _fold(each: ByArm[b.Fold]) -> Iterator[b.Fold]:
    yield b.Fold(next(iter(each.values())).title, _blocks({arm: fold.blocks for arm, fold in each.items()}))


def _pictures(each: ByArm[b.Picture]) -> Iterator[b.Picture]:
    for number, (arms, picture) in enumerate(_alike(each, each), 1):
        name = picture.name if number == 1 else f"{picture.name}-{number}"
        yield replace(picture, name=name, caption=(b.Strong(arms), ": ", *b.split_parts(picture.caption)))


def _facts(each: ByArm[b.Facts]) -> Iterator[b.Facts]:
    values: dict[str, dict[Arm, b.Words]] = {}
    for arm, facts in each.items():
        for name, words in facts.rows:
            values.setdefault(name, {})[arm] = words
    yield b.Facts(tuple((name, _words(each, by_arm)) for name, by_arm in values.items()))


def _words(each: ByArm[object], by_arm: ByArm[b.Words]) -> b.Words:
    """Return the common beginning of texts, then the rest for each arm."""
    groups = _alike(each, by_arm)
    if len(groups) == 1 and len(by_arm) == len(each):
        return groups[0][1]
    texts = [words for _, words in groups if isinstance(words, str)]
    shared = _shared(texts) if len(texts) == len(groups) > 1 else ""
    parts: list[b.Part] = [shared] if shared else []
    for arms, words in groups:
        rest = (words[len(shared) :].strip(),) if isinstance(words, str) else b.split_parts(words)
        parts += ["; " if len(parts) > bool(shared) else " ", b.Strong(arms), ": ", *rest] if any(rest) else []
    return tuple(parts[not shared :])


def _shared(texts: Sequence[str]) -> str:
    """Return the common beginning of texts, up to the end of the shortest, a full stop, a colon or a semicolon."""
    begin = commonprefix(texts)  # noqa: RUF071 - of characters
    if begin in texts and all(text[len(begin) :][:1] in ("", " ") for text in texts):
        return begin
    return begin[: max(begin.rfind(mark) for mark in (". ", ": ", "; ")) + 1]


def _table(each: ByArm[b.Table]) -> Iterator[b.Table]:
    """Yield the rows of all tables, with a column that names the arms where not all have a row."""
    first = next(iter(each.values()))
    titles = list(dict.fromkeys(group.title for table in each.values() for group in table.groups))
    groups = []
    for title in titles:
        having: dict[b.Row, list[Arm]] = {}
        for arm, table in each.items():
            for row in (row for group in table.groups if group.title == title for row in group.rows):
                having.setdefault(row, []).append(arm)
        order = list(dict.fromkeys(row[0] for row in having))
        rows = sorted(having, key=lambda row: order.index(row[0]))
        named = {row: "" if len(arms) == len(each) else _named(each, arms) for row, arms in having.items()}
        groups.append(b.Group(title, tuple((*row, named[row]) for row in rows)))
    captions = {arm: table.caption for arm, table in each.items()}
    yield b.Table((*first.columns, b.Column("only in")), tuple(groups), _words(each, captions))


_MERGED: Final[dict[type[b.Block], Callable[[Any], Iterator[b.Block]]]] = {
    b.Facts: _facts,
    b.Fold: _fold,
    b.Picture: _pictures,
    b.Table: _table,
}


def _alike[T](each: ByArm[object], by_arm: ByArm[T]) -> list[tuple[str, T]]:
    """Return each distinct value, with the names of its arms."""
    groups: dict[T, list[Arm]] = {}
    for arm, value in by_arm.items():
        groups.setdefault(value, []).append(arm)
    return [(_named(each, arms), value) for value, arms in groups.items()]


def _named(each: ByArm[object], arms: Sequence[Arm]) -> str:
    """Return names of arms: their distinguishing levels, else their full names."""
    levels = [list(dict.fromkeys(arm[place] for arm in arms)) for place in range(len(arms[0]))]
    if len(arms) < prod(map(len, levels)):
        return "; ".join(", ".join(arm) for arm in arms)
    parts = [names for place, names in enumerate(levels) if len(names) < len({arm[place] for arm in each})]
    return ", ".join((", " if len(parts) == 1 else " or ").join(names) for names in parts)
