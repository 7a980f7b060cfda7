"""Small files of users, and what is read of them."""

import gzip


def written(path, content):
    if isinstance(content, bytes):
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    elif isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    else:
        content.to_parquet(path)
    return str(path)
