#!/usr/bin/env python3
"""Prints the forecast of every table next to what such forecasts have been worth. Needs only `requests`.

    pip install requests
    ROUNDHOUSE_KEY=rh_live_... python3 roundhouse_example.py [--watch]

With --watch it asks again every 5 seconds. An unchanged response is a free 304.
"""
import os
import sys
import time

import requests

LONGEST_WAIT_SECONDS = 60
ATTEMPTS = 3


class RoundhouseError(Exception):
    """The API refused a call. Go by `code`; give `request_id` to the operator.

    An error of the proxy in front has neither `request_id` nor `docs_url`.
    """

    def __init__(self, status, body):
        error = body["error"]
        docs_url = error.get("docs_url")
        super().__init__(f"{error['code']}: {error['message']}" + (f" ({docs_url})" if docs_url else ""))
        self.status, self.code, self.request_id = status, error["code"], body.get("request_id")


class Roundhouse:
    """One method for every endpoint: `get("rounds", house="bustabit", limit=10)`."""

    def __init__(self, url, key):
        self.url = url.rstrip("/")
        self.session = requests.Session()
        self.session.headers["X-Api-Key"] = key
        self.kept = {}  # URL: (ETag, body)

    def get(self, endpoint, **query):
        request = self.session.prepare_request(
            requests.Request("GET", f"{self.url}/api/v1/{endpoint}", params=query)
        )
        etag, body = self.kept.get(request.url, (None, None))
        if etag:
            request.headers["If-None-Match"] = etag
        response = self._send(request)
        if response.status_code == 304:
            return body
        if response.status_code != 200:
            raise RoundhouseError(response.status_code, response.json())
        if "ETag" in response.headers:
            self.kept[request.url] = (response.headers["ETag"], response.json())
        return response.json()

    def _send(self, request):
        """Sends a request again after 429 and 503, after the seconds in Retry-After if they are few enough.

        Redirects are not followed: `requests` would send the key to any host.
        """
        for attempt in range(1, ATTEMPTS + 1):
            response = self.session.send(request, timeout=30, allow_redirects=False)
            if response.is_redirect:
                raise requests.RequestException(
                    f"it redirects to {response.headers['Location']}, to which the key is not sent: if that is the "
                    "address of the API, use it as ROUNDHOUSE_URL"
                )
            wait = response.headers.get("Retry-After", "")
            is_worth_it = response.status_code in (429, 503) and wait.isdigit() and int(wait) <= LONGEST_WAIT_SECONDS
            if not is_worth_it or attempt == ATTEMPTS:
                return response
            time.sleep(int(wait))


def print_report(api):
    accuracy = api.get("accuracy", feature="next_color")["accuracy"]
    by_table = {(row["house"], row["game"], row["market"]): row for row in accuracy}
    forecasts = api.get("forecasts")
    for forecast in forecasts["forecasts"]:
        table = forecast["house"], forecast["game"], forecast["market"]
        following = forecast["next_color"]
        stated = forecast["state"] if following is None else ", ".join(
            f"{color} {p:.1%} (long run {following['baseline'][color]:.1%})"
            for color, p in following["probabilities"].items()
        )
        row = by_table.get(table)
        measured = "nothing measured yet"
        if row and row["hit_rate"] is not None:
            skill = "unknown" if row["skill"] is None else f"{row['skill']:.2%}"
            measured = f"{row['hit_rate']:.1%} of {row['sample_size']} had the likeliest color, skill {skill}"
        print(f"{'/'.join(table)}: {stated}; {measured}")
    print(forecasts["notice"])


def main():
    key = os.environ.get("ROUNDHOUSE_KEY")
    if not key:
        sys.exit("expected a key in ROUNDHOUSE_KEY; `npm start` of Roundhouse prints one")
    api = Roundhouse(os.environ.get("ROUNDHOUSE_URL", "http://127.0.0.1:3000"), key)
    try:
        print_report(api)
        while "--watch" in sys.argv[1:]:
            time.sleep(5)
            print_report(api)
    except RoundhouseError as error:
        sys.exit(f"{error} request {error.request_id}" if error.request_id else str(error))
    except requests.RequestException as error:
        sys.exit(f"expected a response of the API at {api.url}: {error}")


if __name__ == "__main__":
    main()
