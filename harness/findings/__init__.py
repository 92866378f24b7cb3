"""What the README says was found, in sentences whose figures come from the committed records.

`evidence` reads the records and names their hosts; `bert`, `models` and `cpu` make the bullets.
"""
