"""What `docs/findings.md` and the README say was found: sentences whose figures come from the committed records.

`evidence` reads the records and names their hosts; `bert`, `models` and `cpu` make the findings,
`summary` the README's.
"""
