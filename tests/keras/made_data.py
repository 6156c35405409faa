"""Small data that replace the downloads of Keras's examples: the results of their loaders, and the files that they read."""

import gzip
import io
import os
import tarfile

import numpy as np
import stand_ins

FASHION_MNIST = "/usr/share/datasets/fashion-mnist"
WORDS = "the of to and in that is was he for it with as his on be at by had not are but from or have an they which one you".split()


def _idx(name, header, count):
    with gzip.open(os.path.join(FASHION_MNIST, name)) as file:
        data = file.read(header + count)
    return np.frombuffer(data, np.uint8, offset=header).copy()


def images(samples, test_samples):
    """The first rows of Fashion-MNIST, as mnist.load_data() returns them."""

    def part(name, rows):
        x = _idx(f"{name}-images-idx3-ubyte.gz", 16, rows * 784).reshape(rows, 28, 28)
        return x, _idx(f"{name}-labels-idx1-ubyte.gz", 8, rows)

    return part("train", samples), part("t10k", test_samples)


def colour_images(samples, test_samples):
    """The same images in the layout of cifar10.load_data(): shape (rows, 32, 32, 3), labels of shape (rows, 1)."""
    return tuple(
        (np.repeat(np.pad(x, ((0, 0), (2, 2), (2, 2)))[..., None], 3, axis=-1), y[:, None])
        for x, y in images(samples, test_samples)
    )


def sequences(samples, test_samples, num_words, classes):
    """Lists of word numbers of different lengths, and labels that the words determine, as imdb.load_data() and reuters.load_data()."""
    random = np.random.RandomState(7)

    def part(rows):
        x = np.empty(rows, dtype=object)
        y = random.randint(0, classes, rows)
        for i in range(rows):
            words = random.randint(3, num_words or 1000, random.randint(20, 120))
            words[::3] = 3 + y[i]
            x[i] = [1] + words.tolist()
        return x, y

    return part(samples), part(test_samples)


def text(words=4000):
    """Lines of twelve random words from WORDS, as one string."""
    random = np.random.RandomState(3)
    picked = [WORDS[i] for i in random.randint(0, len(WORDS), words)]
    return "\n".join(" ".join(picked[i : i + 12]) + "." for i in range(0, words, 12))


def _stories(count):
    random = np.random.RandomState(5)
    people, places = ["Mary", "John", "Daniel", "Sandra"], ["kitchen", "garden", "office", "hallway"]
    lines = []
    for _ in range(count):
        who, where = people[random.randint(4)], places[random.randint(4)]
        other = people[(people.index(who) + 1) % 4]
        lines += [f"1 {who} went to the {where}.", f"2 {other} moved to the {places[random.randint(4)]}."]
        lines += [f"3 Where is {who}? \t{where}\t1"]
    return "\n".join(lines) + "\n"


def _write_stories(path):
    with tarfile.open(path, "w:gz") as tar:
        for challenge in ("qa1_single-supporting-fact", "qa2_two-supporting-facts"):
            for part, count in (("train", 200), ("test", 50)):
                for folder in ("en", "en-10k"):
                    entry = tarfile.TarInfo(f"tasks_1-20_v1-2/{folder}/{challenge}_{part}.txt")
                    data = _stories(count).encode()
                    entry.size = len(data)
                    tar.addfile(entry, io.BytesIO(data))


def _write_pairs(path):
    """Writes 300 lines: a sentence, a tab and its translation."""
    random = np.random.RandomState(11)
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(300):
            picked = [WORDS[i] for i in random.randint(0, len(WORDS), random.randint(2, 5))]
            file.write(" ".join(picked) + ".\t" + " ".join(reversed(picked)) + "!\n")


def _write_embeddings(folder):
    random = np.random.RandomState(13)
    os.makedirs(os.path.join(folder, "glove.6B"))
    with open(os.path.join(folder, "glove.6B", "glove.6B.100d.txt"), "w", encoding="utf-8") as file:
        for word in WORDS:
            file.write(word + " " + " ".join(f"{value:.4f}" for value in random.normal(size=100)) + "\n")
    for group in range(20):
        groups = os.path.join(folder, "20_newsgroup", f"group{group}")
        os.makedirs(groups)
        for number in range(8):
            picked = [WORDS[i] for i in random.randint(0, len(WORDS), 60)] + [WORDS[group]] * 20
            with open(os.path.join(groups, str(number)), "w", encoding="latin-1") as file:
                file.write("Subject: words\n\n" + " ".join(picked))


def _write_word_lists(folder):
    """Writes all strings of three letters, and all pairs of WORDS."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    with open(os.path.join(folder, "wordlist_mono_clean.txt"), "w", encoding="utf-8") as file:
        file.writelines(f"{a}{b}{c}\n" for a in letters for b in letters for c in letters)
    with open(os.path.join(folder, "wordlist_bi_clean.txt"), "w", encoding="utf-8") as file:
        file.writelines(f"{a} {b}\n" for a in WORDS for b in WORDS)
    # The archive under whose name both are downloaded.
    open(os.path.join(folder, "wordlists.tgz"), "wb").close()


def write_files(folder):
    """Writes the files that the examples read from their working folder or through get_file()."""
    os.makedirs(os.path.join(folder, "fra-eng"))
    _write_pairs(os.path.join(folder, "fra-eng", "fra.txt"))
    _write_embeddings(folder)
    _write_word_lists(folder)
    stand_ins.write_pictures(folder)
    _write_stories(os.path.join(folder, "babi-tasks-v1-2.tar.gz"))
    with open(os.path.join(folder, "nietzsche.txt"), "w", encoding="utf-8") as file:
        file.write(text())
