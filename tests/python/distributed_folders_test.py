"""Ranks that make the same folder at the same time."""

from launching import launch, run

MAKES = """
    import os, sys
    from syncline import distributed as d
    assert not os.path.isdir(sys.argv[1])
    d.barrier()
    os.makedirs(sys.argv[1])
    print("made by", int(d.all_reduce(1)))
"""


def test_each_rank_makes_it(tmp_path):
    assert run(3, MAKES, str(tmp_path / "saved" / "models")) == "made by 3\n"


def test_a_folder_of_before_is_in_the_way(tmp_path):
    ended = launch(2, "import os, sys, syncline; os.mkdir(sys.argv[1])", str(tmp_path))
    assert ended.code != 0 and "FileExistsError" in ended.err


def test_a_folder_of_before_that_is_in_use_is_in_the_way(tmp_path):
    (tmp_path / "run").mkdir()
    program = """
        import os, sys
        from syncline import distributed as d
        open(os.path.join(sys.argv[1], str(d.rank())), "w").close()  # the folder has changed since the job began
        d.barrier()
        try:
            os.makedirs(sys.argv[1])
        except FileExistsError as error:
            print("in the way", *getattr(error, "__notes__", []))
    """
    for ranks in (0, 2):
        assert run(ranks, program, str(tmp_path / "run")).startswith("in the way")


def test_mkdir_is_a_lock(tmp_path):
    program = """
        import os, sys, time
        from syncline import distributed as d
        begin, folder = time.monotonic(), sys.argv[1]
        for trial in range(20):
            while True:
                try:
                    os.mkdir(os.path.join(folder, "lock"))
                    break
                except FileExistsError:
                    time.sleep(0.001)
                    assert time.monotonic() - begin < 30
            path = os.path.join(folder, "count.%d" % trial)
            assert not os.path.exists(path) or open(path).read() == "1"
            with open(path, "a") as file:
                assert file.tell() < 2
                time.sleep(0.002)
                file.write("1")
            os.rmdir(os.path.join(folder, "lock"))
            d.barrier()
        print("alone")
    """
    assert run(2, program, str(tmp_path)) == "alone\n"


IDIOMS = """
    import os, pathlib, sys
    from syncline import distributed as d
    path = pathlib.Path(sys.argv[1])
    for trial in range(5):
        for made in ("exists", "isdir", "Path.exists", "Path.is_dir"):
            name = path / (made + str(trial))
            if made.startswith("Path"):
                looked = getattr(name, made[5:])()
            else:
                looked = getattr(os.path, made)(str(name))
            d.barrier()
            if not looked:
                name.mkdir() if trial % 2 else os.mkdir(name)
            assert name.is_dir()
    print(len(list(path.iterdir())))
"""


def test_who_looks_and_finds_nothing_makes_it(tmp_path):
    assert run(2, IDIOMS, str(tmp_path)) == "20\n"
