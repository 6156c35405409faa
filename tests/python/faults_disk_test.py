"""Disks that are full, read-only or gone: training continues without checkpoints, and the job fails if the last one is not saved."""

import os
import subprocess
import time

import h5py
from syncline.checkpoint import files, whole_files

from faulty_training import expect_continues, expect_order, on_one_and_two_ranks, small_disk, state, status, train  # noqa: F401

# With width=20_000 a checkpoint has 0.5 MB. fill() leaves 0.2 MB, enough for a status file.
DISK = """
import shutil
ballast = os.path.join(folder, "ballast")
def fill():
    if rank == 0:
        with open(ballast, "wb") as file:
            file.write(bytes(shutil.disk_usage(folder).free - 200_000))
def clear():
    if rank == 0:
        os.remove(ballast)
"""


@on_one_and_two_ranks
def test_a_full_disk_that_has_room_again(ranks, small_disk):  # noqa: F811
    ended = train(ranks, DISK + "train(At(1, 0, fill), At(3, 0, clear), width=20_000, keep=1)", small_disk)
    assert ended.code == 0, ended
    for epoch in (2, 3):
        assert ended.err.count(f"cannot save '{small_disk}/epoch-000{epoch}.h5': [Errno 28] No space left on device; training goes on") == 1
    assert state(small_disk) == ("finished", 0)
    expect_order(small_disk, "epoch-0004.h5")


@on_one_and_two_ranks
def test_a_disk_without_room_for_a_status(ranks, small_disk):  # noqa: F811
    full = DISK.replace(" - 200_000", "")
    ended = train(ranks, full + "train(At(1, 0, fill), width=20_000)", small_disk)
    assert ended.code == 1 and "cannot write" not in ended.err, ended
    assert state(small_disk) == ("failed", 1) and status(small_disk)["checkpoint"] == "epoch-0001.h5"


@on_one_and_two_ranks
def test_a_disk_that_stays_full(ranks, small_disk):  # noqa: F811
    ended = train(ranks, DISK + "train(At(1, 0, fill), width=20_000)\nprint('trained')", small_disk)
    assert ended.code == 1 and "trained" not in ended.out, ended
    assert ended.err.count("\nOSError: Checkpoints: the last checkpoint is not saved: ") == 1, ended
    assert state(small_disk) == ("failed", 1)
    assert "No space left" in status(small_disk)["reason"]
    os.remove(small_disk / "ballast")
    expect_order(small_disk, "epoch-0001.h5")
    expect_continues(ranks, small_disk, 1)


@on_one_and_two_ranks
def test_old_checkpoints_make_room(ranks, small_disk):  # noqa: F811
    ended = train(ranks, "train(width=20_000, keep=10, epochs=8)", small_disk)
    assert ended.code == 0 and "cannot save" not in ended.err, ended
    assert f"the disk is full: removed '{small_disk}/epoch-0001.h5' to make room for " in ended.err
    assert state(small_disk) == ("finished", 0)
    names = [f"epoch-000{epoch}.h5" for epoch in range(1, 9) if (small_disk / f"epoch-000{epoch}.h5").exists()]
    assert len(names) >= 2
    expect_order(small_disk, *names)


@on_one_and_two_ranks
def test_old_checkpoints_make_room_for_names(ranks, small_disk):  # noqa: F811
    # The folder, .lock, status.json, latest, and three more: the third checkpoint leaves no name for the new link.
    subprocess.run(["mount", "-o", "remount,nr_inodes=7", str(small_disk)], check=True)
    ended = train(ranks, "train(epochs=6)", small_disk)
    assert ended.code == 0 and "cannot save" not in ended.err, ended
    assert f"the disk is full: removed '{small_disk}/epoch-0001.h5' to make room for '{small_disk}/epoch-0003.h5'" in ended.err, ended
    expect_order(small_disk, "epoch-0005.h5", "epoch-0006.h5")


def test_what_is_newer_than_latest_makes_no_room(tmp_path):
    names = [f"epoch-000{epoch}.h5" for epoch in (4, 1, 3, 2)]
    for second, name in enumerate(names):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (second, second))
    paths = [str(tmp_path / name) for name in names]
    assert files.older_than_latest(tmp_path) == paths[:3]
    (tmp_path / "latest").symlink_to(names[2])
    assert files.older_than_latest(tmp_path) == paths[:2]
    (tmp_path / "latest").unlink()
    (tmp_path / "latest").symlink_to(names[0])
    assert files.older_than_latest(tmp_path) == []


@on_one_and_two_ranks
def test_a_clock_that_was_set_back(ranks, tmp_path):
    assert train(ranks, "train()", tmp_path).code == 0
    for epoch in (2, 3, 4):
        later = time.time() + 3600 + epoch
        os.utime(tmp_path / f"epoch-000{epoch}.h5", (later, later))
    assert train(ranks, "train(epochs=6)", tmp_path).code == 0
    expect_order(tmp_path, "epoch-0004.h5", "epoch-0005.h5", "epoch-0006.h5")
    (tmp_path / "latest").unlink()
    expect_continues(ranks, tmp_path, 6)


@on_one_and_two_ranks
def test_a_limit_of_file_sizes(ranks, tmp_path):
    limited = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
    ended = train(ranks, limited + "train(width=20_000)", tmp_path)
    assert ended.code == 1, ended
    assert "cannot save" in ended.err and "File too large" in ended.err, ended
    assert ended.err.count("\nOSError: ") == 1, ended
    assert state(tmp_path) == ("failed", 1)
    assert os.listdir(tmp_path) == ["status.json"]


@on_one_and_two_ranks
def test_a_disk_that_becomes_read_only(ranks, small_disk):  # noqa: F811
    program = """
    import subprocess
    def protect():  # by a second, read-only mount upon it: the first one is in use
        if rank == 0:
            subprocess.run(["mount", "--bind", folder, folder], check=True)
            subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)
    train(At(1, 0, protect))
    """
    ended = train(ranks, program, small_disk, layout="one_node")  # a simulated node has its own mounts
    assert ended.code == 1, ended
    assert "cannot save" in ended.err and "cannot write" in ended.err and "Read-only file system" in ended.err, ended
    assert state(small_disk) == ("running", None)  # no later status could be written
    ended = train(ranks, "train()", small_disk)
    assert ended.code == 1 and ended.err.count("\nOSError: Checkpoints: cannot use ") == 1, ended


@on_one_and_two_ranks
def test_a_folder_that_is_taken_away(ranks, tmp_path):
    program = """
    import shutil
    def take_away():
        if rank == 0:
            shutil.rmtree(folder)
    train(At(1, 0, take_away))
    """
    ended = train(ranks, program, tmp_path / "run")
    assert ended.code == 1, ended
    assert "epoch-0002.h5': [Errno 2] No such file or directory" in ended.err, ended
    assert ended.err.count("\nOSError: Checkpoints: the last checkpoint is not saved: ") == 1, ended
    assert os.listdir(tmp_path) == []


@on_one_and_two_ranks
def test_a_file_in_place_of_the_folder(ranks, tmp_path):
    (tmp_path / "run").write_text("text")
    ended = train(ranks, "train()", tmp_path / "run")
    assert ended.code == 1 and ended.err.count("\nOSError: Checkpoints: cannot use ") == 1, ended
    assert (tmp_path / "run").read_text() == "text"


@on_one_and_two_ranks
def test_a_checkpoint_with_a_wrong_configuration_is_passed_over(ranks, tmp_path):
    assert train(ranks, "train()", tmp_path).code == 0
    with h5py.File(tmp_path / "epoch-0004.h5", "r+") as file:
        file.attrs["model_config"] = b"[]"  # loading raises neither OSError nor ValueError
    expect_continues(ranks, tmp_path, 3)


@on_one_and_two_ranks
def test_what_a_killed_job_was_writing_is_removed(ranks, tmp_path):
    (tmp_path / "epoch-0007.h5.tmp").write_text("half")
    assert train(ranks, "train(keep=1)", tmp_path).code == 0
    expect_order(tmp_path, "epoch-0004.h5")


@on_one_and_two_ranks
def test_a_checkpoint_that_cannot_be_removed_does_not_fail_the_save(ranks, tmp_path):
    (tmp_path / "epoch-0000.h5").mkdir()
    os.utime(tmp_path / "epoch-0000.h5", (1, 1))
    ended = train(ranks, "train(keep=2)", tmp_path)
    assert ended.code == 0 and "cannot save" not in ended.err, ended
    assert ended.err.count(f"syncline: cannot remove '{tmp_path}/epoch-0000.h5': ") == 1, ended
    expect_order(tmp_path, "epoch-0000.h5", "epoch-0003.h5", "epoch-0004.h5")


@on_one_and_two_ranks
def test_links_are_not_written_through(ranks, tmp_path):
    folder, victim = tmp_path / "run", tmp_path / "victim"
    folder.mkdir()
    victim.write_text("text")
    for name in ("epoch-0001.h5.tmp", "status.json.tmp", "status.json", "latest.tmp", "latest"):
        (folder / name).symlink_to(victim)
    program = """
    def plant():
        if rank == 0:
            os.symlink(os.path.join(os.path.dirname(folder), "victim"), os.path.join(folder, "epoch-0004.h5"))
    train(At(3, 0, plant), keep=1, epochs=4)
    """
    ended = train(ranks, program, folder)
    assert ended.code == 0, ended
    assert victim.read_text() == "text"
    expect_order(folder, "epoch-0004.h5")


def test_the_name_of_a_new_folder_is_flushed(tmp_path, monkeypatch):
    flushed = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: flushed.append(os.readlink(f"/proc/self/fd/{descriptor}")))
    whole_files.make_folder(tmp_path / "a" / "b")
    assert sorted(flushed) == [str(tmp_path), str(tmp_path / "a")]
    whole_files.make_folder(tmp_path / "a" / "b")
    assert len(flushed) == 2
