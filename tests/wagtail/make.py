"""Makes the content of the site, 300 pages, or changes some of it: ``make.py [change]``."""

import datetime
import io
import os
import random
import sys
import uuid
from functools import cache

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")

import django

django.setup()

from django.core.files.base import ContentFile
from django.core.files.images import ImageFile
from django.core.management import call_command
from django.db import transaction
from django.utils import timezone
from orchard.models import (
    ArticleLink,
    ArticlePage,
    Colour,
    HomePage,
    Person,
    ReviewPage,
    SectionPage,
)
from PIL import Image as Picture
from wagtail.contrib.redirects.models import Redirect
from wagtail.documents.models import Document
from wagtail.images.models import Image
from wagtail.models import (
    Collection,
    CollectionViewRestriction,
    Locale,
    Page,
    PageViewRestriction,
    Site,
)
from wagtail.signal_handlers import disable_reference_index_auto_update

CHANCE = random.Random(7)
#: The ids of the articles so far.
PLACED = []
WORDS = "apple pear plum quince medlar owl hedge frost ladder basket scion rootstock".split()
UTC = datetime.UTC


def words(number):
    return " ".join(CHANCE.choices(WORDS, k=number))


def picture(number):
    data = io.BytesIO()
    Picture.new("RGB", (20 + number, 15), (number * 10 % 255, 100, 50)).save(data, "PNG")
    return ImageFile(data, name=f"picture-{number}.png")


def files():
    root = Collection.add_root(name="Root")
    private = root.add_child(name="Private")
    CollectionViewRestriction.objects.create(collection=private, restriction_type="login")
    for number in range(25):
        collection = private if number in (3, 4) else root
        image = Image(title=f"Picture {number}", file=picture(number), collection=collection)
        image.save()
        image.tags.add(*CHANCE.sample(WORDS, number % 3))
    for number in range(8):
        collection = private if number == 2 else root
        file = ContentFile(b"%PDF-1.4 " + str(number).encode(), name=f"paper {number}.pdf")
        Document(title=f"Paper {number}", file=file, collection=collection).save()


@cache
def pictures():
    return [*Image.objects.all()]


@cache
def persons():
    return [*Person.objects.all()]


def article(parent, number, model=ArticlePage, **given):
    """Adds an article, which is published unless it is a draft."""
    images, people = pictures(), persons()
    other = Page.objects.get(id=CHANCE.choice(PLACED)) if PLACED else None
    body = f'<p data-block-key="{number}">{words(20)} <b>bold</b> &amp; more</p>'
    if number % 4 == 0:
        body += f'<p><a linktype="page" id="{parent.id}">above</a></p>'
        body += f'<embed embedtype="image" id="{images[0].id}" alt="A" format="left"/>'
    content = [
        ("heading", words(2)),
        ("paragraph", f"<p>{words(9)}</p>"),
        ("image", images[number % 20]),
    ]
    content += [("page", other)] if other and number % 3 == 0 else []
    content += [("quote", {"text": words(4), "by": "Anna"}), ("items", WORDS[: number % 4])]
    values = {
        "title": f"{words(2).capitalize()} {number}",
        "slug": f"article-{number}" if number % 10 else f"ärtikel-{number}",
        "code": f"A{number:03}",
        "date": datetime.date(2020, 1, 1) + datetime.timedelta(number),
        "starts_at": timezone.now().replace(microsecond=number) if number % 3 else None,
        "time": datetime.time(number % 24, 30) if number % 2 else None,
        "price": f"{number}.50" if number % 5 else None,
        "rating": number / 4 if number % 6 else None,
        "number": number * 7 % 50,
        "facets": number,
        "featured": number % 3 == 0,
        "link": f"https://example.org/{number}" if number % 2 else "",
        "subtitle": words(3) if number % 2 else "",
        "key": uuid.UUID(int=number),
        "data": {"a": [number, None, 1.5], "b": words(1)},
        "body": body,
        "content": content if number % 7 else [],
        "feed_image": images[number % len(images)] if number % 4 else None,
        "related_page": other if number % 2 else None,
        "author": people[number % 5] if number % 3 else None,
        "colour": Colour.objects.first() if number % 2 else None,
        "show_in_menus": number % 5 == 0,
        "seo_title": words(2) if number % 4 == 0 else "",
        "search_description": words(6),
        "first_published_at": timezone.now() if given.get("live", True) else None,
        **given,
    }
    page = model(**values)
    page.links = [
        ArticleLink(
            title=words(2), url="https://example.org/" if n else "", page=None if n else other
        )
        for n in range(number % 3)
    ]
    page.readers = people[: number % 3]
    page.tags.add(*CHANCE.sample(WORDS, number % 4))
    parent.add_child(instance=page)
    PLACED.append(page.id)
    return page


def section(parent, number, **given):
    page = SectionPage(
        title=f"Section {number}",
        slug=f"section-{number}",
        intro=words(8),
        show_in_menus=True,
        **given,
    )
    parent.add_child(instance=page)
    return page


def pages():
    english, german, french = (Locale.objects.create(language_code=c) for c in ("en", "de", "fr"))
    root = Page.add_root(instance=Page(title="Root", slug="root", locale=english))
    hero = Image.objects.first()
    home = HomePage(title="Orchard", slug="home", intro="<p>Welcome</p>", hero=hero, locale=english)
    root.add_child(instance=home)
    second = HomePage(title="Second", slug="second", locale=english)
    root.add_child(instance=second)
    Site.objects.create(hostname="main.example", port=80, root_page=home, is_default_site=True)
    Site.objects.create(hostname="second.example", port=80, root_page=second)
    number = 0
    sections = [section(home, n) for n in range(5)]
    sections.append(section(sections[0], 10))
    hidden = section(home, 11, live=False)
    private = section(home, 12)
    PageViewRestriction.objects.create(page=private, restriction_type="login")
    for parent in [*sections, hidden, private]:
        for _ in range(22 if parent in sections else 3):
            number += 1
            model, extra = (
                (ReviewPage, {"stars": number % 6}) if number % 9 == 0 else (ArticlePage, {})
            )
            article(parent, number, model, live=number % 13 != 0, **extra)
    for _ in range(12):
        number += 1
        article(second, number)
    first = ArticlePage.objects.live().first()
    first.create_alias(parent=sections[1], update_slug="an-alias")
    for locale, below in ((german, sections[:4]), (french, sections[:3])):
        copy = HomePage(
            title=f"{home.title} {locale}",
            slug=f"home-{locale.language_code}",
            locale=locale,
            translation_key=home.translation_key,
        )
        root.add_child(instance=copy)
        for n, parent in enumerate(below):
            same = {"locale": locale, "translation_key": parent.translation_key}
            translated = section(copy, n, **same)
            for number, page in enumerate(parent.get_children().type(ArticlePage)[:21]):
                same = {"locale": locale, "translation_key": page.translation_key}
                article(translated, 200 + number, title=f"{locale} {page.title}", **same)
    Redirect.objects.create(old_path="/old", redirect_page=first, is_permanent=True)
    Redirect.objects.create(old_path="/elsewhere", redirect_link="https://example.org/x")
    Redirect.objects.create(old_path="/within", redirect_link="/section-1/?a=b")


def change():
    """An edit, a publication, a new page and a deletion."""
    live = ArticlePage.objects.live().filter(locale__language_code="en", alias_of=None)
    edited, doomed = live[3], live[5]
    edited.title = "Edited"
    edited.save()
    doomed.delete()
    draft = ArticlePage.objects.filter(live=False, locale__language_code="en").last()
    draft.live = True
    draft.save()
    article(SectionPage.objects.get(slug="section-2", locale__language_code="en"), 999)


def main():
    with transaction.atomic(), disable_reference_index_auto_update():
        if sys.argv[1:] == ["change"]:
            change()
            return
        for number in range(6):
            born = datetime.date(1960 + number, 1, 1) if number else None
            Person.objects.create(name=f"Person {number}", born=born)
        Colour.objects.create(name="red")
        files()
        pages()


if __name__ == "__main__":
    if sys.argv[1:] != ["change"]:
        call_command("migrate", run_syncdb=True, verbosity=0)
    main()
