"""The instruction tables: one row an instruction, and the proofs that operands lie where an instruction wants them.

`row` says what a row is, `table` holds all rows, `proof` checks operands. Needs neither torch nor a GPU.
"""
