"""plot_graph: a picture of a function's plan."""

_COLORS = {
    "kernel": "#dbe9f6",
    "fused": "#e2f0d9",
    "reduce": "#e2f0d9",
    "loop": "#fde9d0",
    "start": "#f8d7da",
    "wait": "#f8d7da",
    "guard": "#eeeeee",
}


def plot_graph(fn, to_file=None):
    """Draws the plan of a function: its steps in running order, the values between them with their placement over ranks, and
    the buckets in which gradients are reduced.

    Args:
        fn: result of function(...), after its first call (the plan is made for the fed shapes); or a Keras model after fit, evaluate
            or predict.
        to_file: path of the file to write: .svg, .png or .pdf (which need Graphviz), .dot, or .txt; None: no file.
    Returns:
        Picture: shown as a graph in a notebook if Graphviz is installed, and as text by print(...).
    Raises:
        ValueError: if the function has not been called, or the file's suffix is unknown. RuntimeError: if Graphviz is missing.
    """
    picture = Picture(_steps(fn))
    if to_file is not None:
        picture.save(str(to_file))
    return picture


def _steps(fn):
    functions = (
        [fn]
        if hasattr(fn, "steps")
        else [getattr(fn, name, None) for name in ("train_function", "test_function", "predict_function")]
    )
    for function in functions:
        if function is not None and function.steps():
            return function.steps()
    raise ValueError("plot_graph: there is no plan yet; call the function first, or fit the model")


class Picture:
    """A plan as text and as a graph."""

    def __init__(self, steps):
        self._steps = steps

    def __str__(self):
        """One entry per step: number and label; on the next line operands -> results."""
        lines = []
        for number, step in enumerate(self._steps, 1):
            reads, writes = (", ".join(_text(v) for v in step[side]) for side in ("reads", "writes"))
            lines.append(f"{number:4} {step['label']}" + (f"\n       {reads} -> {writes}" if reads or writes else ""))
        return "\n".join(lines)

    __repr__ = __str__

    def dot(self):
        """The graph in Graphviz's DOT language."""
        lines = ["digraph plan {", '  node [shape=box, style="rounded,filled", fontname="sans-serif", fontsize=10];']
        lines.append('  edge [fontname="sans-serif", fontsize=8];')
        written_by = {}
        for number, step in enumerate(self._steps):
            if step["kind"] == "wait":
                continue
            assigned = "".join(f"\\n= {value[5]}" for value in step["writes"] if value[5])
            label = _quoted(f"{number + 1}  {step['label']}") + assigned
            lines.append(f'  s{number} [label="{label}", fillcolor="{_COLORS[step["kind"]]}"];')
            for value in step["reads"]:
                source = written_by.get(value[0], f"v{value[0].replace('.', '_')}")
                if value[0] not in written_by:
                    lines.append(f'  {source} [label="{_quoted(value[1])}", shape=ellipse, fillcolor="white"];')
                lines.append(f'  {source} -> s{number} [label="{_quoted(_form(value))}"];')
            for value in step["writes"]:
                written_by[value[0]] = f"s{number}"
        return "\n".join(lines + ["}", ""])

    def save(self, path):
        """Writes the picture to `path` in the format of its suffix."""
        kind = path.rsplit(".", 1)[-1]
        if kind not in ("txt", "dot", "svg", "png", "pdf"):
            raise ValueError(f"plot_graph: {path}: unknown suffix; give .svg, .png, .pdf, .dot or .txt")
        if kind in ("txt", "dot"):
            content = (str(self) + "\n" if kind == "txt" else self.dot()).encode()
        else:
            content = self._drawn(kind)
        with open(path, "wb") as file:
            file.write(content)

    def _drawn(self, kind):
        import subprocess  # here, because it adds a twentieth to the time of `import syncline`

        try:
            done = subprocess.run(["dot", f"-T{kind}"], input=self.dot().encode(), capture_output=True, check=True)
        except FileNotFoundError:
            raise RuntimeError(
                "plot_graph: Graphviz's `dot` is not installed; write a .dot or .txt file instead"
            ) from None
        return done.stdout

    def _repr_svg_(self):
        """For notebooks, which show the text if this returns None."""
        try:
            return self._drawn("svg").decode()
        except RuntimeError:
            return None


def _form(value):
    _, _, dtype, shape, placement, _ = value
    sizes = ", ".join("?" if size is None else str(size) for size in shape)
    return f"{dtype}({sizes})" + (f" {placement}" if placement else "")


def _text(value):
    return f"{value[1]} {_form(value)}" + (f" = {value[5]}" if value[5] else "")


def _quoted(text):
    return text.replace("\\", "\\\\").replace('"', '\\"')
