"""All columns of the tables that PRISM writes."""

from collections.abc import Mapping

from prism_mesa.tables import Column, TableSchema


def sections(tables: Mapping[str, TableSchema]) -> str:
    """Return a section for each table, with its columns in their order."""
    return "\n".join(_section(table) for table in tables.values())


def _section(table: TableSchema) -> str:
    head = f"### {table.name}\n\nA row is {table.row}.\n\n| column | type | unit | meaning |\n|---|---|---|---|\n"
    return head + "".join(f"| `{c.name}` | {c.type} | {c.unit} | {_meaning(c)} |\n" for c in table.columns)


def _meaning(column: Column) -> str:
    """Return the meaning of a column, its possible texts, and whether cells may be blank."""
    choices = f" ({', '.join(f'`{name}`' for name in column.one_of)})" if column.one_of else ""
    return f"{column.meaning}{choices}{'; may be blank' if column.blank else ''}"
