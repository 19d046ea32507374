"""The words that everything about operators shares: one noun a file.

How one case travels::

    Case --raw()--> raw inputs --present(interface, recipe)--> inputs   (what the callable gets)
                                                                |
             Convention.call(target, inputs) -> outputs    <----+----> reference(inputs), float64
                                                                +----> baseline(inputs), recipe
"""
