"""Write every page that is made from records and definitions: `python -m publish`."""

from publish import documents

for path, make in documents.pages().items():
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(make(), encoding="utf-8")
