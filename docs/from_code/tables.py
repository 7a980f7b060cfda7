"""All columns of the tables that PRISM writes, from the schemas by which they are written and read."""

from collections.abc import Mapping

from prism_mesa.tables import Column, TableSchema


def sections(tables: Mapping[str, TableSchema]) -> str:
    """Return a section for each table, with its columns in their order."""
    return "\n".join(_section(table) for table in tables.values())


def _section(table: TableSchema) -> str:
    head = f"### {table.name}\n\nA row is {table.row}.\n\n| column | type | unit | meaning |\n|---|---|---|---|\n"
    return head + "".join(f"| `{c.name}` | {c.type} | {c.unit} | {_meaning(c)} |\n" for c in table.columns)


def _meaning(column: Column) -> str:
    """Return what a column means, with the texts that there are and whether there may be nothing."""
    choices = f" ({', '.join(f'`{name}`' for name in column.one_of)})" if column.one_of else ""
    return f"{column.meaning}{choices}{'; may be blank' if column.blank else ''}"
