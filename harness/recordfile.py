"""Files of records: JSONL as it grows, CSV as people keep it. Both are read by name, and what is odd is said."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import re
import sys
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from measurement import durable, flags, schema

SCHEMA_SUFFIX = ".schema.json"
RESULTS = Path(__file__).resolve().parent.parent / "results"
# Of all tables under results/ but those of results/runs; `python -m reports.columns` writes it.
PUBLISHED_SCHEMA = RESULTS / "results.schema.json"
# Without these a row says nothing of what was measured.
_ESSENTIAL = ("framework", "mode", "workload", "status")
_ALWAYS = ("schema_version", "status", "cell")
# What records of an earlier version have in columns of a later one: there was nothing else then.
_BEFORE = {1: {"shapes": "static"}}
# What a spreadsheet would take for a formula (OWASP, "CSV Injection"): an apostrophe before it says that it is text. A
# text that begins with apostrophes and then one of these gets one as well, so that reading takes the same away again.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_TYPES = {"str": {str}, "int": {int}, "float": {float, int}, "bool": {bool}}
_WORDS = {"true": True, "false": False, "1": True, "0": False}


class Unreadable(Exception):
    """A file holds no records that can be read; the message is one sentence with the way out."""


@dataclass
class Loaded:
    """Records by column, the columns in the order asked for, and sentences on what was skipped or is missing.

    Columns are read, checked and passed to another process much sooner than rows are.
    """

    columns: dict[str, list]
    remarks: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.columns["status"])

    @property
    def records(self) -> list[dict]:
        """The records, made anew."""
        empty = dict.fromkeys(self.columns)  # a copy of it need not grow, which would take most of the time
        records = []
        for values in zip(*self.columns.values(), strict=True):
            record = empty.copy()
            record.update(zip(self.columns, values, strict=True))
            records.append(record)
        return records


def json_lines(path: Path, torn: list[int] | None = None) -> Iterator[dict]:
    """The JSON objects of a JSONL file, compressed or not; other lines are skipped, their numbers added to `torn`.

    Raises Unreadable for a compressed one that is torn.
    """
    if not path.exists():
        return
    with open(path, "rb") as file:
        for number, line in enumerate(_unpacked(path) if path.suffix == ".gz" else file, 1):
            if (entry := json_object(line)) is not None:
                yield entry
            elif torn is not None and line.strip():
                torn.append(number)


def _unpacked(path: Path) -> list[bytes]:
    """The lines of a compressed file, none unless it is whole. Raises Unreadable."""
    try:
        return gzip.decompress(path.read_bytes()).splitlines()
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise Unreadable(f"{path} is torn or was changed: it is no gzip file; move it away, then go on.") from None


def json_object(line: bytes) -> dict | None:
    """The JSON object of a line; None where it holds none, or a torn one."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def load(path: Path, only: Collection[str] = schema.NAMES) -> Loaded:
    """The records of a JSONL or CSV file, with these columns of the schema. Raises Unreadable."""
    loaded = Loaded({name: [] for name in (*only, *_ALWAYS)})
    fill = _from_csv if path.suffix == ".csv" else _from_jsonl
    fill(loaded, path)
    _check(loaded, path)
    versions = loaded.columns["schema_version"]
    for earlier, values in _BEFORE.items():
        if earlier in versions:
            for name in values.keys() & loaded.columns.keys():
                both = zip(versions, loaded.columns[name], strict=True)
                loaded.columns[name] = [values[name] if version == earlier else value for version, value in both]
    flags.mark_exceeded(loaded.columns)
    if older := sum(version < schema.SCHEMA_VERSION for version in versions):
        said = "records are of an earlier schema; columns that came later are empty."
        loaded.remarks.append(f"{_name(path)}: {older} {said}")
    return loaded


def _check(loaded: Loaded, path: Path) -> None:
    """Raise Unreadable where this suite cannot know what the records mean."""
    for version in loaded.columns["schema_version"]:
        if type(version) is not int or version < 1:
            raise Unreadable(f"{path} holds a row without a schema_version: these are no records of this suite.")
        if version > schema.SCHEMA_VERSION:
            raise Unreadable(
                f"{path} is of schema version {version} and this suite reads 1 to {schema.SCHEMA_VERSION}: "
                "read it with the version of the suite that wrote it, or a newer one."
            )
    for status in loaded.columns["status"]:
        if status not in schema.STATUSES:
            raise Unreadable(f"{path} holds the status {status!r}, which no version of the suite writes.")
    for name in schema.TIMES & loaded.columns.keys():
        if wrong := [value for value in loaded.columns[name] if value is not None and not 0 < value < math.inf]:
            raise Unreadable(f"{path} holds {wrong[0]!r} as {name}, which is no time; remove that line.")
    if path.suffix != ".csv" and None in loaded.columns["cell"]:
        raise Unreadable(f"{path} holds a line without 'cell', which every record has; remove that line.")
    ends = zip(loaded.columns["status"], loaded.columns.get("latency_ms_median", ()), strict=False)
    if path.suffix != ".csv" and any(median is None and status in schema.MEASURED for status, median in ends):
        raise Unreadable(f"{path} holds a measured cell without 'latency_ms_median'; remove that line.")


def _name(path: Path) -> str:
    """The file and its folder: remarks go into pages that are shared, and a whole path is private."""
    return f"{path.parent.name}/{path.name}"


def _check_kinds(loaded: Loaded, path: Path) -> None:
    """Raise Unreadable where a value of a JSONL file is not of its column's kind."""
    kinds = {column.name: column.kind for column in schema.COLUMNS}
    for name, column in loaded.columns.items():
        fitting = set(map(type, column)) <= _TYPES[kinds[name]] | {type(None)}
        if fitting and (kinds[name] != "float" or all(map(math.isfinite, filter(None, column)))):
            continue
        fits = _TYPES[kinds[name]] | {type(None)}
        wrong = next(v for v in column if type(v) not in fits or (type(v) is float and not math.isfinite(v)))
        raise Unreadable(f"{path} holds {wrong!r:.60} as {name}, which is no {kinds[name]}; remove that line.")


def _from_jsonl(loaded: Loaded, path: Path) -> None:
    torn: list[int] = []
    for row in json_lines(path, torn):
        missing = [name for name in _ESSENTIAL if row.get(name) is None]
        if missing:
            raise Unreadable(f"{path} holds a line without {missing[0]!r}: these are no records of this suite.")
        for name, column in loaded.columns.items():
            column.append(row.get(name))
    _check_kinds(loaded, path)
    if torn:
        lines = f"line {torn[0]} is" if len(torn) == 1 else f"lines {', '.join(map(str, torn))} are"
        loaded.remarks.append(
            f"{_name(path)}: {lines} torn, as a stopped run leaves it, and skipped; RESUME measures the cell again."
        )


def _from_csv(loaded: Loaded, path: Path) -> None:
    """By the names in the header, whatever their order, the separator (comma, semicolon, tab) or byte-order mark."""
    with _opened(path) as (reader, separator):
        header = [name.strip() for name in next(reader, [])]
    required = (*_ESSENTIAL, "schema_version")
    if missing := [name for name in required if name not in header]:
        raise Unreadable(f"{path} has no column {missing[0]!r} in its first line: it is no table of this suite.")
    kinds = {column.name: column.kind for column in schema.COLUMNS}
    if unknown := [name for name in header if name and name not in kinds]:
        left_out = f"columns that the suite does not know are left out: {', '.join(unknown)}"
        loaded.remarks.append(f"{_name(path)}: {left_out}.")
    places = {name: index for index, name in enumerate(header) if name in loaded.columns}
    frame = _texts(path, separator, len(header), {*places.values(), *map(header.index, required)})
    try:
        for name, place in places.items():
            loaded.columns[name] = _values(frame[place].tolist(), kinds[name], separator)
    except (ValueError, KeyError):
        raise Unreadable(_misfit(path, {places[name]: (name, kinds[name]) for name in places})) from None
    for name in loaded.columns.keys() - places.keys():
        loaded.columns[name] = [None] * len(frame)


def _texts(path: Path, separator: str, width: int, places: Collection[int]):
    """The wanted columns below the header as texts, empty where a row ends early; without rows that hold nothing."""
    import pandas  # here alone, and half a second

    how = dict(index_col=False, dtype=str, na_filter=False, encoding="utf-8-sig", encoding_errors="backslashreplace")
    try:
        frame = pandas.read_csv(path, sep=separator, header=0, names=range(width), usecols=list(places), **how)
    except pandas.errors.ParserError as error:
        reason = str(error).strip().removeprefix("Error tokenizing data. C error: ")
        raise Unreadable(f"{path} is no whole CSV file ({reason}); make it anew from the records.") from None
    return frame if (frame[min(places)] != "").all() else frame[(frame != "").any(axis=1)]


@contextmanager
def _opened(path: Path) -> Iterator[tuple]:
    """A reader of a CSV's rows, and its separator."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # a worker's last words may be long
    with open(path, encoding="utf-8-sig", errors="backslashreplace", newline="") as file:
        first = file.readline()
        separator = max(",;\t", key=first.count)
        file.seek(0)
        yield csv.reader(file, delimiter=separator), separator


class _Values(dict):
    """The value of each text of a column, made once: most columns say the same again and again."""

    def __init__(self, kind: str, separator: str = ","):
        super().__init__({"": None})
        self._how = kind, separator

    def __missing__(self, text: str):
        value = self[text] = _value(text, *self._how)
        return value


def _values(texts: list[str], kind: str, separator: str) -> list:
    """The values of a column's texts."""
    if kind != "float":
        return list(map(_Values(kind, separator).__getitem__, texts))
    if separator == ";":
        return [_value(text, kind, separator) if text else None for text in texts]
    return [float(text) if text else None for text in texts]


def _misfit(path: Path, known: dict[int, tuple[str, str]]) -> str:
    """Where a value is not of its column's kind."""
    with _opened(path) as (reader, separator):
        next(reader)
        for row in reader:
            for index, (name, kind) in known.items():
                text = row[index] if index < len(row) else ""
                try:
                    _ = _value(text, kind, separator) if text else None
                except (ValueError, KeyError):
                    return f"{path}, line {reader.line_num}: {name} holds {text!r}, which is no {kind}."
    return f"{path} changed while it was read."


def _value(text: str, kind: str, separator: str):
    if kind == "str":
        return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
    if kind == "bool":
        return _WORDS[text.strip().lower()]
    if separator == ";":  # a spreadsheet that separates by semicolons writes a decimal comma
        text = text.replace(",", ".")
    if kind == "float":
        return float(text)
    try:
        return int(text)
    except ValueError:
        number = float(text)  # 4.0, as a spreadsheet or pandas may write a whole number
        if number != int(number):
            raise
        return int(number)


def write_csv(records: Iterable[dict], path: Path) -> None:
    """Write records as CSV, at once and whole, with its Table Schema file unless it shares the published one."""
    with durable.replacing(path) as file:
        # UTF-8 whatever the locale; a name that is not valid text must not cost the table.
        table = io.TextIOWrapper(file, "utf-8", "backslashreplace", newline="")
        writer = csv.writer(table)
        writer.writerow(schema.NAMES)
        writer.writerows([_cell_text(record.get(name)) for name in schema.NAMES] for record in records)
        table.detach()
    if (beside := schema_path(path)) != PUBLISHED_SCHEMA:
        durable.replace(beside, schema.table_schema_text().encode())


def schema_path(table: Path) -> Path:
    """Where the Table Schema file of a CSV lies: beside it, but once for all tables that are published."""
    return PUBLISHED_SCHEMA if is_published(table) else table.with_suffix(SCHEMA_SUFFIX)


def is_published(path: Path) -> bool:
    """Whether it lies among what is committed."""
    place = path.resolve()
    return place.is_relative_to(RESULTS) and not place.is_relative_to(RESULTS / "runs")


def _cell_text(value) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return f"'{value}" if _FORMULA.match(value) else value
    return str(value).lower() if isinstance(value, bool) else str(value)
