"""Ranks that make the same folder at once."""

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
