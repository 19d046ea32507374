"""Output and stacks become short, readable text."""

from __future__ import annotations

from k3check.runners import printed


def test_terminal_sequences_and_control_characters_go():
    data = b"\x1b[31mred\x1b[0m\x07 \x1b]0;title\x07\x1b]8;;http://x\x1b\\link\x00\tend\xff\n"
    assert printed.tail(data) == "red link\tend�"


def test_carriage_returns_are_line_ends():
    assert printed.tail(b"10%\r20%\r\ndone\n\n") == "10%\n20%\ndone"


def test_only_the_last_lines_remain():
    lines = [f"{n:03}" for n in range(100)]
    shown = printed.tail("\n".join(lines).encode()).splitlines()
    assert shown == ["... (more before)", *lines[60:]]
    assert printed.tail(b"end", complete=False) == "... (more before)\nend"


def test_nothing_printed():
    assert printed.tail(b"") == ""


def test_a_stack_is_turned_over_and_trimmed(tmp_path):
    file = tmp_path / "kernel.py"
    file.write_text("def f():\n    spin()\n")
    ours = printed.__file__
    dump = (
        "Current thread 0x00007f (most recent call first):\n"
        f'  File "{file}", line 2 in f\n'
        '  File "/gone.py", line 7 in <module>\n'
        f'  File "{ours}", line 9 in run\n'
        '  File "<string>", line 6 in <module>\n'
        "\nThread 0x1 (most recent call first):\n"
        '  File "/other.py", line 1 in g\n'
    )
    assert printed.stack(dump) == (
        f'  File "/gone.py", line 7, in <module>\n  File "{file}", line 2, in f\n    spin()'
    )


def test_no_stack():
    assert printed.stack("") == ""
