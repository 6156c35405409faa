#!/usr/bin/env python3
"""Collects the pages of the documentation's site.

usage: pages.py ROOT SITE

Writes SITE/mkdocs.yml and SITE/pages: the repository's documents, a page for each folder of public headers, one for each Python module
with documented functions, and one for each file that a document links to. Links follow.
"""

import os
import pathlib
import re
import shutil
import sys

LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")
MODULES = {
    "Distribution": ["syncline.distributed"],  # the names of its __all__
    "Jobs": ["syncline.jobs"],
}
LANGUAGES = {".cc": "cpp", ".h": "cpp", ".py": "python", ".sh": "bash", ".txt": "cmake"}


def page_of(source):
    """The page of a document or another file of the repository, both as relative paths."""
    parts = pathlib.PurePosixPath(source).parts
    if source == "README.md":
        return "index.md"
    if len(parts) == 1:
        return source.lower()
    if source.endswith((".svg", ".png")):
        return "/".join(parts[1:] if parts[0] == "docs" else parts)
    if parts[0] == "docs" and source.endswith(".md"):
        return "/".join(parts[1:])
    if parts[-1] == "README.md":
        return "folders/" + "_".join(parts[:-1]) + ".md"
    return "files/" + "_".join(parts) + ".md"


class Pages:
    def __init__(self, root, folder):
        self.root, self.folder, self.written = root, folder, set()

    def write(self, page, text):
        path = self.folder / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def add(self, source):
        """Writes a source's page, and the pages that it links to; returns its name."""
        page = page_of(source)
        if source in self.written:
            return page
        self.written.add(source)
        path = self.root / source
        if path.suffix in (".svg", ".png"):
            (self.folder / page).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, self.folder / page)
        elif path.suffix == ".md":
            self.write(page, self.linked(source, page, path.read_text(encoding="utf-8")))
        else:
            language = LANGUAGES.get(path.suffix, "text")
            self.write(page, f"# {source}\n\n````{language}\n{path.read_text(encoding='utf-8')}\n````\n")
        return page

    def linked(self, source, page, text):
        """The text with its links to files of the repository as links between pages."""

        def change(match):
            before, target, after = match.groups()
            if "://" in target or target.startswith("mailto:"):
                return match[0]
            file = os.path.normpath(os.path.join(os.path.dirname(source), target))
            if (self.root / file).is_dir():
                file += "/README.md"
            if not (self.root / file).is_file():
                sys.exit(f"pages: {source}: the link {target} leads nowhere")
            return before + os.path.relpath(self.add(file), os.path.dirname(page)) + after

        fenced = re.split(r"(^```.*?^```)", text, flags=re.M | re.S)  # code stands at the odd places
        return "".join(part if i % 2 else LINK.sub(change, part) for i, part in enumerate(fenced))


def header_page(root, folder):
    """The reference page of a folder of public headers: each header's leading comment as text, the rest as code."""
    title = "/".join(folder.relative_to(root / "include").parts)
    text = [f"# {title}\n"]
    for header in sorted(folder.glob("*.h")):
        comment, code = re.fullmatch(r"((?://[^\n]*\n)*)(.*)", header.read_text(encoding="utf-8"), re.S).groups()
        code = re.sub(r"#pragma [^\n]*\n", "", code).strip("\n")
        prose = re.sub(r"^// ?", "", comment, flags=re.M)
        prose = re.sub(r"([<>*_])", r"\\\1", prose)
        text.append(f"## {header.name}\n\n{prose}\n```cpp\n#include \"{title}/{header.name}\"\n\n{code}\n```\n")
    return "\n".join(text)


def main():
    root, site = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    shutil.rmtree(site, ignore_errors=True)
    pages = Pages(root, site / "pages")
    documents = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", *(f"docs/{p.name}" for p in sorted((root / "docs").glob("*.md")))]
    for document in documents:
        pages.add(document)
    include = root / "include" / "syncline"
    for folder in [include, *sorted(p for p in include.rglob("*") if p.is_dir())]:
        name = "_".join(folder.relative_to(include).parts) or "syncline"
        pages.write(f"cpp_reference/{name}.md", header_page(root, folder))
    functions = sorted((root / "python" / "syncline" / "functions").glob("[a-z]*.py"))
    modules = {path.stem.replace("_", " ").capitalize(): [f"syncline.functions.{path.stem}"] for path in functions}
    for title, names in {**modules, **MODULES}.items():
        text = "\n".join(f"::: {name}\n" for name in names)
        pages.write(f"python_reference/{title.lower().replace(' ', '_')}.md", f"# {title}\n\n{text}")
    shutil.copy(root / "docs" / "site" / "site.css", site / "pages")
    contents = (root / "docs" / "site" / "mkdocs.yml").read_text(encoding="utf-8")

    # MkDocs has no wildcards in its contents: a name without .md stands for the pages of that folder.
    def listed(match):
        space, title, name = match.groups()
        names = sorted(path.name for path in (site / "pages" / name).glob("*.md"))
        inner = space if not title else space + "    "
        head = f"{space}- {title}\n" if title else ""
        return head + "".join(f"{inner}- {name}/{each}\n" for each in names)

    looks, contents = contents.split("\nnav:\n")
    contents = re.sub(r"^( +)- (?:(\S+:) )?(\w+)\n", listed, contents, flags=re.M)
    (site / "mkdocs.yml").write_text(f"{looks}\nnav:\n{contents}", encoding="utf-8")


main()
