"""Files of records: JSONL that grows with a run, and CSV. Both are read by column name, with remarks on odd rows."""

from __future__ import annotations

import csv
import io
import itertools
import re
import sys
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from measurement import durable, flags
from measurement.places import RESULTS
from measurement.text import plain, times
from records import earlier, jsonfiles, rooflines, values
from records import record as schema
from records.jsonfiles import Unreadable
from records.record import Record, Value
from records.statuses import MEASURED, STATUSES

if TYPE_CHECKING:
    import pandas  # type: ignore[import-untyped]

RECORDS, TABLE = "records.jsonl", "results.csv"  # in the folder of a run
LineOf = Callable[[int], int]  # the line of a row, counted from 0
SCHEMA_SUFFIX = ".schema.json"
# The schema of all tables under results/ except results/runs; `python -m publish` writes it.
PUBLISHED_SCHEMA = RESULTS / "results.schema.json"
_IDENTITY = ("run_id", "machine_id", "started_at", "cell")  # of a record
_ALWAYS = dict.fromkeys((*schema.REQUIRED, *_IDENTITY))
_SURROGATE = re.compile("[\ud800-\udfff]")
_MOST_OF_A_HEADER = 1 << 20
_ROWS = 1024  # of a JSONL file, turned into columns at a time
_REPEATED = {column.name for column in schema.COLUMNS if column.kind == "str"} - {"cell"}
# Texts that a spreadsheet takes for formulas (OWASP, "CSV Injection") get an apostrophe in front, which marks them as
# text. So do texts that begin with apostrophes and then one of these characters, so that reading restores them exactly.
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_WORDS = {"true": True, "false": False, "1": True, "0": False}


@dataclass
class Loaded:
    """Records by column, the columns in the requested order, and sentences on skipped or missing rows.

    Columns are read, checked and passed to another process much faster than rows.
    """

    columns: dict[str, list[Any]]
    remarks: list[str] = field(default_factory=list)
    absent: set[str] = field(default_factory=set)  # columns that a table lacks

    def __len__(self) -> int:
        return len(self.columns["status"])

    @property
    def records(self) -> list[Record]:
        """Return new records of these columns."""
        return Record.from_columns(self.columns)


def benches(folder: Path) -> list[Record]:
    """Return the records of `bench` in a folder; none without a file. Raises Unreadable."""
    path = folder / RECORDS
    return load(path).records if path.exists() else []


def load(path: Path, only: Collection[str] = schema.NAMES) -> Loaded:
    """Return the records of a JSONL or CSV file, with these columns of the schema. Raises Unreadable."""
    bound = rooflines.BOUND_OF if "bound_roofline" in only else ()
    loaded = Loaded({name: [] for name in dict.fromkeys((*only, *earlier.needed(only), *bound, *_ALWAYS))})
    line_of = (_from_csv if path.suffix == ".csv" else _from_jsonl)(loaded, path)
    _check(loaded, path, line_of)
    _keep_firsts(loaded, path)
    earlier.rejudge(loaded.columns)
    if bound:
        rooflines.bound_earlier(loaded.columns)
    flags.mark_exceeded(loaded.columns)
    if older := sum(version < schema.SCHEMA_VERSION for version in loaded.columns["schema_version"]):
        remark = f"{times(older, 'record')} with an earlier schema: later columns are empty."
        loaded.remarks.append(f"{_name(path)}: {remark}")
    return loaded


def _check(loaded: Loaded, path: Path, line_of: LineOf) -> None:
    """Raise Unreadable if a value does not fit its column, or a row lacks a required value."""
    for version in set(filter(_is_whole, loaded.columns["schema_version"])):
        if version > schema.SCHEMA_VERSION:
            raise Unreadable(
                f"{path} has schema version {version} and this suite reads 1 to {schema.SCHEMA_VERSION}: update "
                f"the suite."
            )
    for name, column in loaded.columns.items():
        if name in schema.REQUIRED and None in column:
            where = f"{path}, line {line_of(column.index(None))}"
            raise Unreadable(f"{where}: there is no {name}, which every record of the suite has; remove that line.")
        if (place := values.first_misfit(schema.BY_NAME[name], column)) is not None:
            why = values.misfit(schema.BY_NAME[name], column[place])
            where = f"{path}, line {line_of(place)}"
            raise Unreadable(f"{where}: {name} holds {column[place]!r:.60}, which is {why}; remove that line.")
        if schema.BY_NAME[name].kind == "str":
            loaded.columns[name] = _writable(column)
    statuses = loaded.columns["status"]
    for status in set(statuses) - STATUSES.keys() - earlier.STATUSES.keys():
        where = f"{path}, line {line_of(statuses.index(status))}"
        raise Unreadable(f"{where}: status holds {status!r:.60}, which no version writes; remove that line.")
    medians = loaded.columns.get("latency_ms_median", ()) if "latency_ms_median" not in loaded.absent else ()
    for place, (status, median) in enumerate(zip(statuses, medians, strict=False)):
        if median is None and earlier.STATUSES.get(status, status) in MEASURED:
            where = f"{path}, line {line_of(place)}"
            raise Unreadable(f"{where}: the cell is measured and has no latency_ms_median; remove that line.")


def _is_whole(version: object) -> bool:
    return type(version) is int


def _writable(texts: list[Any]) -> list[Any]:
    """Return the texts with lone surrogates, which no encoding accepts, replaced by escapes."""
    odd = {text: plain(text) for text in set(filter(None, texts)) if not text.isascii() and _SURROGATE.search(text)}
    return [odd.get(text, text) for text in texts] if odd else texts


def _keep_firsts(loaded: Loaded, path: Path) -> None:
    """Keep the first of rows for the same cell of the same run, and add a remark with the number of others."""
    keys = list(zip(*map(loaded.columns.get, _IDENTITY), strict=True))
    if again := len(keys) - len(set(keys)):
        kept = sorted(dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True)).values())
        loaded.columns = {name: [column[place] for place in kept] for name, column in loaded.columns.items()}
        loaded.remarks.append(f"{_name(path)}: ignored {times(again, 'record')} of cells with an earlier record.")


def _name(path: Path) -> str:
    """Return the names of folder and file: remarks appear on pages that are shared, and full paths are private."""
    return f"{path.parent.name}/{path.name}"


def _from_jsonl(loaded: Loaded, path: Path) -> LineOf:
    """Fill in the columns; return a function from a row to its line."""
    truncated: list[int] = []
    places: list[int] = []
    texts: dict[str, str] = {}  # each once: most columns repeat the same texts
    rows = ((number, *map(row.get, loaded.columns)) for number, row in jsonfiles.numbered(path, truncated))
    while block := list(itertools.islice(rows, _ROWS)):
        numbers, *parts = zip(*block, strict=True)
        places += numbers
        for (name, column), part in zip(loaded.columns.items(), parts, strict=True):
            column += [texts.setdefault(v, v) if type(v) is str else v for v in part] if name in _REPEATED else part
    if truncated:
        lines = f"line {truncated[0]} is" if len(truncated) == 1 else f"lines {', '.join(map(str, truncated))} are"
        loaded.remarks.append(
            f"{_name(path)}: {lines} truncated, as after a stopped run, and skipped; RESUME measures the cell again."
        )
    return places.__getitem__


def _from_csv(loaded: Loaded, path: Path) -> LineOf:
    """Fill in the columns by their names in the header, in any order, with any separator and byte-order mark."""
    separator, header = _header(path)
    if missing := [name for name in schema.REQUIRED if name not in header]:
        raise Unreadable(f"{path} has no column {missing[0]!r} in its first line: name a run or its results.csv.")
    if unknown := [name for name in header if name and name not in schema.BY_NAME.keys() | earlier.RETIRED_COLUMNS]:
        ignored = f"columns that the suite does not know are ignored: {', '.join(unknown)}"
        loaded.remarks.append(f"{_name(path)}: {ignored}.")
    places = {name: index for index, name in enumerate(header) if name in loaded.columns}
    frame = _texts(path, separator, len(header), places.values())
    line_of = partial(_line_in_csv, path, separator)
    for name, place in places.items():
        texts, kind = frame[place].tolist(), schema.BY_NAME[name].kind
        try:
            loaded.columns[name] = _values(texts, kind, separator)
        except (ValueError, KeyError, OverflowError):
            row = next(n for n, text in enumerate(texts) if not _is_of(text, kind, separator))
            raise Unreadable(
                f"{path}, line {line_of(row)}: {name} holds {texts[row]!r:.60}, which is not of type {kind}; "
                "remove that line."
            ) from None
    for name in loaded.columns.keys() - places.keys():
        loaded.columns[name] = [None] * len(frame)
        loaded.absent.add(name)
    return line_of


def _header(path: Path) -> tuple[str, list[str]]:
    """Return a CSV's separator (comma, semicolon or tab) and the names of its columns. Raises Unreadable."""
    with jsonfiles.opened(path) as file:
        first = file.readline(_MOST_OF_A_HEADER).decode("utf-8-sig", "backslashreplace")
    separator = max(",;\t", key=first.count)
    try:
        return separator, [name.strip() for name in next(csv.reader([first], delimiter=separator), [])]
    except csv.Error as error:
        raise Unreadable(f"{path} is not a CSV file ({error}); `make report GATHER=FILE` writes a new one.") from None


def _texts(path: Path, separator: str, width: int, places: Collection[int]) -> pandas.DataFrame:
    """Return the requested columns as texts, empty where a row ends early, without the header and empty rows."""
    import pandas  # needed only here; takes half a second

    how = dict(index_col=False, dtype=str, na_filter=False, encoding="utf-8-sig", encoding_errors="backslashreplace")
    try:
        frame = pandas.read_csv(path, sep=separator, header=0, names=range(width), usecols=list(places), **how)
    except (pandas.errors.ParserError, pandas.errors.EmptyDataError) as error:
        reason = str(error).strip().removeprefix("Error tokenizing data. C error: ")
        raise Unreadable(
            f"{path} is not a complete CSV file ({reason}); `make report GATHER=FILE` writes a new one."
        ) from None
    return frame if (frame[min(places)] != "").all() else frame[(frame != "").any(axis=1)]


def _line_in_csv(path: Path, separator: str, row: int) -> int:
    """Return the line on which a row below the header ends; 0 if the file has changed since."""
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # a worker's last output may be long
    with open(path, encoding="utf-8-sig", errors="backslashreplace", newline="") as file:
        reader = csv.reader(file, delimiter=separator)
        rows = (reader.line_num for texts in reader if any(texts))
        return next(itertools.islice(rows, row + 1, None), 0)


class _Values(dict[str, Value | None]):
    """The value of each text of a column, converted once, because most columns repeat the same texts."""

    def __init__(self, kind: str, separator: str = ","):
        super().__init__({"": None})
        self._how = kind, separator

    def __missing__(self, text: str) -> Value:
        value = self[text] = _value(text, *self._how)
        return value


def _values(texts: list[str], kind: str, separator: str) -> list[Value | None]:
    """Return the values of a column's texts."""
    if kind != "float":
        return list(map(_Values(kind, separator).__getitem__, texts))
    if separator == ";":
        return [_value(text, kind, separator) if text else None for text in texts]
    return [float(text) if text else None for text in texts]


def _is_of(text: str, kind: str, separator: str) -> bool:
    """Return whether a text is empty or a value of a kind."""
    try:
        _ = _value(text, kind, separator) if text else None
    except (ValueError, KeyError, OverflowError):
        return False
    return True


def _value(text: str, kind: str, separator: str) -> Value:
    if kind == "str":
        return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
    if kind == "bool":
        return _WORDS[text.strip().lower()]
    if separator == ";":  # a spreadsheet that separates with semicolons writes decimal commas
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


def write_csv(records: Iterable[Record], path: Path) -> None:
    """Write records as CSV, atomically, with a Table Schema file unless the table uses the published one."""
    write_rows((record.to_row().values() for record in records), path)


def write_rows(rows: Iterable[Iterable[Value | None]], path: Path) -> None:
    """Write rows with the values of all columns, in the schema's order, as `write_csv` does."""
    write_table(schema.NAMES, rows, path)
    if (beside := schema_path(path)) != PUBLISHED_SCHEMA:
        durable.replace(beside, schema.table_schema_text().encode())


def write_table(names: Iterable[str], rows: Iterable[Iterable[Value | None]], path: Path) -> None:
    """Write rows under these column names as CSV, atomically."""
    with durable.replacing(path) as file:
        # UTF-8 in any locale; a name that is not valid text must not prevent the table.
        table = io.TextIOWrapper(file, "utf-8", "backslashreplace", newline="")
        writer = csv.writer(table)
        writer.writerow(names)
        writer.writerows(map(_cell_text, row) for row in rows)
        table.detach()


def schema_path(table: Path) -> Path:
    """Return the path of a CSV's Table Schema file: in the same folder, or one for all published tables."""
    return PUBLISHED_SCHEMA if is_published(table) else table.with_suffix(SCHEMA_SUFFIX)


def is_published(path: Path) -> bool:
    """Return whether a path is among the committed results."""
    place = path.resolve()
    return place.is_relative_to(RESULTS) and not place.is_relative_to(RESULTS / "runs")


def _cell_text(value: Value | None) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return f"'{value}" if _FORMULA.match(value) else value
    return str(value).lower() if isinstance(value, bool) else str(value)
