"""The faults that tools/mutants.py plants: reading tools/mutants/*.txt, and writing them into source.

    file src/hearth/train/step/micro_batch.cpp       what follows lies in this file

    positions-are-segments | train: PackedPath.* a name, and the test that must see it
    - rows_of(batch.positions, batch, begin, end)
    + rows_of(batch.segments, batch, begin, end)

Lines that begin with - are found in the file exactly once, white space aside; those with + take their place. A text
that ends in ; or } is a statement, which may be left out; any other one is an expression. Where a text must say more to
be found once, @( and )@ stand around the part that is replaced. A test is `area: filter` (the area's unit tests, as
GoogleTest filters them) or `ctest: name`."""
import dataclasses
import hashlib
import re


@dataclasses.dataclass(frozen=True)
class Mutant:
    name: str
    file: str
    find: str
    plant: str
    test: str  # "train: PackedPath.*"
    where: str  # of the list, for messages

    def key(self, sources):
        """Changes with everything that decides what becomes of it; `sources` names the code and its tests."""
        parts = (self.file, self.find, self.plant, self.test, sources)
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


class ListError(Exception):
    pass


def read_lists(root):
    mutants = []
    for path in sorted((root / "tools/mutants").glob("*.txt")):
        mutants += read_list(path.read_text(), path.name)
    names = [m.name for m in mutants]
    for name in names:
        if names.count(name) > 1:
            raise ListError(f"{name}: two faults have this name")
    return mutants


def read_list(text, where):
    out, file, head, find, plant = [], "", None, [], []

    def close(number):
        nonlocal head
        if head is None:
            return
        if not file or not find:
            raise ListError(f"{where}:{number}: {head[0]} lacks a file or a text to find")
        out.append(Mutant(head[0], file, "\n".join(find), "\n".join(plant), head[1], f"{where}:{head[2]}"))
        head = None
        find.clear()
        plant.clear()

    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            close(number)
        elif line.startswith("file "):
            close(number)
            file = line[5:].strip()
        elif line[0] in "-+":
            (find if line[0] == "-" else plant).append(line[1:].strip())
        else:
            close(number)
            name, bar, test = (part.strip() for part in line.partition("|"))
            if not bar or not re.fullmatch(r"[a-z0-9-]+", name) or not re.match(r"[a-z0-9_]+: \S", test):
                raise ListError(f"{where}:{number}: must be NAME | AREA: FILTER, got {line}")
            head = (name, test, number)
    close("end")
    return out


def pattern_of(text):
    """Matches the text however it is broken into lines."""
    words = re.findall(r"\w+|[^\w\s]", text)
    out = []
    for before, word in zip([""] + words, words):
        # Two words need something between them, all else nothing.
        both = before and re.match(r"\w", before[-1]) and re.match(r"\w", word)
        out.append((r"\s+" if both else r"\s*") + re.escape(word))
    begin = r"\b" if re.match(r"\w", words[0]) else ""
    end = r"\b" if re.match(r"\w", words[-1]) else ""
    return begin + "".join(out).removeprefix(r"\s*") + end


def place_of(mutant, source):
    """Where in the source the part lies that is replaced."""
    before, inner, after = mutant.find, None, ""
    if "@(" in mutant.find:
        before, _, rest = mutant.find.partition("@(")
        inner, _, after = rest.partition(")@")
    parts = [p for p in (before, inner, after) if p]
    groups = r"\s*".join(f"({pattern_of(p)})" for p in parts)
    hits = list(re.finditer(groups, source))
    if len(hits) != 1:
        raise ListError(
            f"{mutant.where}: {mutant.name}: the text must be in {mutant.file} once, it is there {len(hits)} times: "
            f"{mutant.find}")
    return hits[0].span(2 if inner is not None and before.strip() else 1)


def planted(mutants, source):
    """The source with all of them in it, each behind a switch of its name."""
    places = {}
    for m in mutants:
        places.setdefault(place_of(m, source), []).append(m)
    spans = sorted(places)
    for (_, end), (begin, _) in zip(spans, spans[1:]):
        if begin < end:
            raise ListError(f"{mutants[0].file}: faults overlap at: {source[begin:end]}")
    for begin, end in reversed(spans):
        source = source[:begin] + switched(source[begin:end], places[begin, end]) + source[end:]
    return source


def switched(text, mutants):
    statement = text.rstrip()[-1] in ";}"
    for m in mutants:
        on = f'::hearth_planted("{m.name}")'
        if statement:
            text = f"if ({on}) {{ {m.plant} }} else {{ {text} }}"
        else:
            text = f"({on} ? ({m.plant}) : ({text}))"
    return text
