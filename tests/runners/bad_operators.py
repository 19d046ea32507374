"""Everything that an operator should not do. Each function is one target."""

from __future__ import annotations

import _thread
import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import torch


def good():
    return 1


def slow():
    time.sleep(1.6)
    return 1


def reads_input():
    return input()


def raises():
    print("before it raises")
    raise ValueError("expected 4 heads")


def sys_exit():
    sys.exit(3)


def interrupts():
    raise KeyboardInterrupt


def interrupts_the_main_thread():
    _thread.interrupt_main()
    time.sleep(10)


def os_exit():
    print("leaving", end="")
    os._exit(7)


def os_exit_zero():
    os._exit(0)


def segfaults():
    print("about to crash")
    ctypes.string_at(0)


def killed():
    os.kill(os.getpid(), signal.SIGKILL)


def kills_its_parent():
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(10)


def stops_itself():
    os.kill(os.getpid(), signal.SIGSTOP)


def hangs():
    print("going to hang")
    while True:
        pass


def hangs_without_the_gil_being_released():
    ctypes.PyDLL(None).sleep(60)


def ignores_signals_and_hangs():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(1)


def hangs_with_children():
    subprocess.Popen(["sleep", "60"])
    subprocess.Popen(["sleep", "60"], start_new_session=True)
    while True:
        time.sleep(1)


def leaves_children():
    subprocess.Popen(["sleep", "60"], start_new_session=True)
    multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,), daemon=True).start()
    return 1


def leaves_a_daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            while True:
                time.sleep(1)
        os._exit(0)
    os.wait()
    return 1


def fork_returns_twice():
    return "child" if os.fork() == 0 else "parent"


def leaves_threads():
    threading.Thread(target=time.sleep, args=(60,)).start()
    return 1


def prints_megabytes():
    for n in range(200_000):
        print(f"line {n} " + "x" * 40)
    return "fail"


def prints_megabytes_and_goes_on():
    prints_megabytes()
    print("the last line before a pause")
    time.sleep(1)
    return "fail"


def writes_garbage():
    os.write(1, b"\x00\x00\x00\x02{}\xff\xfe\n" * 10)
    os.write(2, b"\x1b[31mred\x1b[0m\n")
    return "fail"


def prints_from_c():
    ctypes.CDLL(None).puts(b"from C")
    return "fail"


def prints_quietly():
    print("nobody needs this")
    return 1


def prints_after_all_that():
    print("only this")
    return "fail"


def closes_stdout():
    os.close(1)
    os.close(2)
    sys.stdout.close()
    return 1


def replaces_stdout():
    sys.stdout = None
    return 1


def closes_everything():
    os.closerange(0, 4096)
    return 1


def closes_everything_and_hangs():
    os.closerange(0, 4096)
    time.sleep(60)


def writes_everywhere():
    for number in range(3, 100):
        try:
            os.write(number, b"garbage for whoever reads this\n")
        except OSError:
            continue
    return 1


def changes_directory():
    os.chdir("/")
    return 1


def tells_directory():
    return str(Path.cwd())


def changes_defaults():
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    torch.set_grad_enabled(True)
    return 1


def tells_defaults():
    return [str(torch.zeros(1).dtype), str(torch.zeros(1).device), torch.is_grad_enabled()]


def out_of_memory():
    return torch.empty(2**50, dtype=torch.uint8)


def tells_environment():
    return [os.environ.get("K3CHECK_API_KEY"), sys.argv, multiprocessing.current_process().name]


def tells_inherited_files():
    code = "import os; print([n for n in os.listdir('/proc/self/fd') if int(n) > 2])"
    listed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    return listed.stdout.count(",")


_calls = Path("calls")


def _calls_so_far():
    with _calls.open("a") as file:
        file.write("x")
    return len(_calls.read_text())


def exits_differently():
    os._exit(_calls_so_far())


def hangs_but_for_the_third_time():
    if _calls_so_far() == 3:
        return 1
    return time.sleep(60)
