"""The intermediate representation: data types, their arithmetic, facts about scalars, nodes and their printer."""
