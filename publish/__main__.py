"""Write every page that is made from records and definitions: `python -m publish`."""

from publish import documents

for path in documents.PAGES:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(documents.made(path), encoding="utf-8")
