"""Checks every example of a description against its schema, strictly. Prints their number."""

import json
import sys

from jsonschema_rs import Draft202012Validator

document = json.load(open(sys.argv[1]))
checked = 0


def check(where, schema, example):
    global checked
    validator = Draft202012Validator({**schema, "components": document["components"]})
    errors = [error.message for error in validator.iter_errors(example)]
    if errors:
        sys.exit(f"{where}: {errors}")
    checked += 1


for path, item in document["paths"].items():
    for method, call in item.items():
        where = f"{method} {path}"
        for parameter in call.get("parameters", []):
            check(f"{where} {parameter['name']}", parameter["schema"], parameter["example"])
        for media in call.get("requestBody", {}).get("content", {}).values():
            check(f"{where} body", media["schema"], media["example"])
        for status, response in call["responses"].items():
            for media in response.get("content", {}).values():
                if "example" in media:
                    check(f"{where} {status}", media["schema"], media["example"])

print("checked", checked)
