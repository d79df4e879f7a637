"""References inside the site and out of it: all are well formed, and none is ambiguous."""

from __future__ import annotations

import re
from collections import Counter
from urllib.parse import urlsplit

import yaml
from conftest import ROOT

BASE = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["html"]["baseurl"]
REFERENCES = ("aria-controls", "aria-describedby", "aria-labelledby", "for")


def test_an_id_names_one_element_and_what_refers_to_it_finds_it(pages):
    for name, page in pages.items():
        ids = Counter(tag["id"] for tag in page.find_all(id=True))
        assert not [key for key, count in ids.items() if count > 1], name
        for attribute in REFERENCES:
            for tag in page.find_all(attrs={attribute: True}):
                for key in tag[attribute].split() if attribute != "for" else [tag["for"]]:
                    assert key in ids, f"{name}: {tag.name} {attribute}={key}"


def test_links_out_of_the_site_are_well_formed_and_encrypted(pages):
    found = 0
    for name, page in pages.items():
        for tag in page.find_all(["a", "form"]):
            target = tag.get("href") or tag.get("action") or ""
            if not re.match(r"[a-z+]+:|//", target) or target.startswith(BASE):
                continue
            found += 1
            url = urlsplit(target)
            assert url.scheme == "https", f"{name}: {target}"
            assert re.fullmatch(r"([a-z0-9-]+\.)+[a-z]{2,}", url.netloc), f"{name}: {target}"
            assert not re.search(r"[\s<>\"{}|\\^`]", target), f"{name}: {target}"
            assert tag.get_text(strip=True) or tag.find("img", alt=True), f"{name}: {target}"
    assert found > 20


def test_links_inside_the_site_work_in_any_folder(pages):
    for name, page in pages.items():
        if name == "404.html":
            continue
        for tag in page.find_all(["a", "link", "img", "script"]):
            target = tag.get("href") or tag.get("src") or ""
            assert not target.startswith("/"), f"{name}: {target}"
