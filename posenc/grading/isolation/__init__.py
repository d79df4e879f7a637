"""Student code in a process of its own, and the judge outside.

``sandbox`` starts the process, ``inside`` is what runs in it, ``wire`` is how the two talk,
``masked`` is the ``posenc`` that student code finds there, and ``session`` is what the judge sees.
"""
