"""The Python runner: a process that loads the user's callables and calls them for the judge.

Judge and runner say small JSON messages over two pipes (:mod:`k3check.runners.wire`); tensors go
through two nameless files in memory as safetensors, one for each direction. The judge speaks, the
runner answers, one answer for each message and with its number:

    judge    load {key, target, origin}            -> loaded {shown} | refused {error}
             call {key, form, device, inputs ...}  -> returned {outputs ...} | raised | broken
             probe {device}                        -> probed {error}
             describe {}                           -> described {environment}

What the runner says is taken for nothing but what the user's code may have made of it: an answer
out of turn, a damaged one, or a size that nobody expects is a crash of the candidate.
"""
