"""What a user's file imports, and the suite after it: `python user_imports.py FILE` prints JSON, as a worker would."""

import json
import sys

import frameworks
import measurement.statistics  # as a worker, which has its packages before the user's file
import workloads
from frameworks.user_file import UserFile

file = UserFile(sys.argv[1])
found = file.call("model")
print(
    json.dumps(
        {
            "user": found(),
            "named": sys.modules[found.__module__].__dict__ is found.__globals__,
            "suite": [frameworks.describe("numpy").name, workloads.get("mlp").name, measurement.statistics.__name__],
            "first": sys.path[0],
        }
    )
)
