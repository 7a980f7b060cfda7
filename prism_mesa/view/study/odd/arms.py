"""Merge the sections of several arms: shared text appears once, other text with the names of its arms."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from os.path import commonprefix
from typing import Any

from prism_mesa.view.study import blocks as doc

type Arm = tuple[str, ...]
"""The name of a configuration: an arm and levels of factors."""
type ByArm[T] = Mapping[Arm, T]


def merge_sections(by_arm: ByArm[Sequence[doc.Section]]) -> tuple[doc.Section, ...]:
    """Merge the sections of all arms, which have the same names in the same order."""
    return tuple(
        replace(parts[0], blocks=_merge_blocks({arm: part.blocks for arm, part in zip(by_arm, parts, strict=True)}))
        for parts in zip(*by_arm.values(), strict=True)
    )


def _merge_blocks(by_arm: ByArm[tuple[doc.Block, ...]]) -> tuple[doc.Block, ...]:
    """Merge blocks position by position as long as their types agree; the remaining blocks follow for each arm."""
    merged: list[doc.Block] = []
    n_merged = 0
    for row in zip(*by_arm.values(), strict=False):
        blocks = [row[0]] if len(set(row)) == 1 else _merge(dict(zip(by_arm, row, strict=True)))
        if not blocks:
            break
        merged += blocks
        n_merged += 1
    for names, remaining in _group_arms(by_arm, {arm: blocks[n_merged:] for arm, blocks in by_arm.items()}):
        merged += [doc.Paragraph((doc.Strong(names), ":")), *remaining] if remaining else []
    return tuple(merged)


def _merge(by_arm: ByArm[Any]) -> list[doc.Block]:
    """Merge different blocks into one, or into one picture for each group of arms; empty if that is impossible."""
    first = next(iter(by_arm.values()))
    if len(set(map(type, by_arm.values()))) > 1:
        return []
    match first:
        case doc.Facts():
            values: dict[str, dict[Arm, doc.Words]] = {}
            for arm, facts in by_arm.items():
                for name, words in facts.rows:
                    values.setdefault(name, {})[arm] = words
            return [doc.Facts(tuple((name, _merge_words(by_arm, words)) for name, words in values.items()))]
        case doc.Fold():
            return [doc.Fold(first.title, _merge_blocks({arm: fold.blocks for arm, fold in by_arm.items()}))]
        case doc.Table():
            return [_merge_tables(by_arm)]
        case doc.Picture():
            pictures: list[doc.Block] = []
            for number, (names, picture) in enumerate(_group_arms(by_arm, by_arm), 1):
                name = picture.name if number == 1 else f"{picture.name}-{number}"
                caption = (doc.Strong(names), ": ", *doc.split_parts(picture.caption))
                pictures.append(replace(picture, name=name, caption=caption))
            return pictures
    return []


def _merge_words(all_arms: ByArm[object], texts: ByArm[doc.Words]) -> doc.Words:
    """Return the common beginning of texts, then the remainder for each group of arms."""
    groups = _group_arms(all_arms, texts)
    if len(groups) == 1 and len(texts) == len(all_arms):
        return groups[0][1]
    strings = [words for _, words in groups if isinstance(words, str)]
    shared = _common_beginning(strings) if len(strings) == len(groups) > 1 else ""
    parts: list[doc.Part] = [shared] if shared else []
    for names, words in groups:
        remainder = (words[len(shared) :].strip(),) if isinstance(words, str) else doc.split_parts(words)
        parts += (
            ["; " if len(parts) > bool(shared) else " ", doc.Strong(names), ": ", *remainder] if any(remainder) else []
        )
    return tuple(parts[not shared :])


def _common_beginning(texts: Sequence[str]) -> str:
    """Return the common beginning of texts: all of the shortest text, or up to a full stop, a colon or a semicolon."""
    prefix = commonprefix(texts)  # noqa: RUF071 - compares characters, not paths
    if prefix in texts and all(text[len(prefix) :][:1] in ("", " ") for text in texts):
        return prefix
    return prefix[: max(prefix.rfind(mark) for mark in (". ", ": ", "; ")) + 1]


def _merge_tables(by_arm: ByArm[doc.Table]) -> doc.Table:
    """Return the rows of all tables; a new column names the arms of a row unless all arms have the row."""
    first = next(iter(by_arm.values()))
    groups = []
    for title in dict.fromkeys(group.title for table in by_arm.values() for group in table.groups):
        arms_with: dict[doc.Row, list[Arm]] = {}
        for arm, table in by_arm.items():
            for row in (row for group in table.groups if group.title == title for row in group.rows):
                arms_with.setdefault(row, []).append(arm)
        order = list(dict.fromkeys(row[0] for row in arms_with))
        rows = sorted(arms_with.items(), key=lambda row: order.index(row[0][0]))
        labelled_rows = [(*row, "" if len(arms) == len(by_arm) else _arm_names(by_arm, arms)) for row, arms in rows]
        groups.append(doc.Group(title, tuple(labelled_rows)))
    caption = _merge_words(by_arm, {arm: table.caption for arm, table in by_arm.items()})
    return doc.Table((*first.columns, doc.Column("only in")), tuple(groups), caption)


def _group_arms[T](all_arms: ByArm[object], values: ByArm[T]) -> list[tuple[str, T]]:
    """Return each distinct value, with the names of its arms."""
    groups: dict[T, list[Arm]] = {}
    for arm, value in values.items():
        groups.setdefault(value, []).append(arm)
    return [(_arm_names(all_arms, arms), value) for value, arms in groups.items()]


def _arm_names(all_arms: ByArm[object], arms: Sequence[Arm]) -> str:
    """Return the names of arms: only the levels that distinguish them if possible, else the full names."""
    levels = [list(dict.fromkeys(arm[index] for arm in arms)) for index in range(len(arms[0]))]
    if len(arms) < prod(map(len, levels)):
        return "; ".join(", ".join(arm) for arm in arms)
    parts = [names for index, names in enumerate(levels) if len(names) < len({arm[index] for arm in all_arms})]
    return ", ".join((", " if len(parts) == 1 else " or ").join(names) for names in parts)
