from __future__ import annotations

import sys

from windfall.api.pages import pages_detail_by_path, pages_list
from windfall.client import Client
from windfall.models import DemoEventPage, Error


def main(base_url: str) -> None:
    client = Client(base_url=base_url)

    events = pages_list.sync(
        client=client,
        type_="demo.EventPage",
        locale="en",
        order="day",
        fields="day,picture",
        limit=2,
    )
    assert events is not None
    assert not isinstance(events, Error)
    for page in events.items:
        if isinstance(page, DemoEventPage):
            picture = page.picture.meta if page.picture else None
            print(f"{page.day}: {page.title}, {picture.download_url if picture else 'no picture'}")

    journal = pages_detail_by_path.sync(client=client, html_path="/journal/")
    assert journal is not None
    assert not isinstance(journal, Error)
    parent = journal.meta.parent if journal.meta else None
    print(journal.title, parent.title if parent else None)

    wrong = pages_list.sync_detailed(client=client, limit=50)
    assert isinstance(wrong.parsed, Error)
    print(wrong.status_code.value, wrong.parsed.message)


if __name__ == "__main__":
    main(*sys.argv[1:] or ["http://localhost:5000/api/v2"])
