"""Pages with a field of every kind."""

from django.db import models
from modelcluster.contrib.taggit import ClusterTaggableManager
from modelcluster.fields import ParentalKey, ParentalManyToManyField
from taggit.models import TaggedItemBase
from wagtail import blocks
from wagtail.api import APIField
from wagtail.fields import RichTextField, StreamField
from wagtail.images.api.fields import ImageRenditionField
from wagtail.images.blocks import ImageChooserBlock
from wagtail.models import Orderable, Page


class Person(models.Model):
    name = models.CharField(max_length=100)
    born = models.DateField(null=True, blank=True)

    api_fields = [APIField("name"), APIField("born")]


class Colour(models.Model):
    """A model without an endpoint."""

    name = models.CharField(max_length=100)

    api_fields = [APIField("name")]


class HomePage(Page):
    intro = RichTextField(blank=True)
    hero = models.ForeignKey(
        "wagtailimages.Image", null=True, blank=True, on_delete=models.SET_NULL
    )

    api_fields = [APIField("intro"), APIField("hero")]


class SectionPage(Page):
    intro = models.TextField(blank=True)

    api_fields = [APIField("intro")]


class ArticleTag(TaggedItemBase):
    content_object = ParentalKey(
        "orchard.ArticlePage", related_name="tagged", on_delete=models.CASCADE
    )


class ArticlePage(Page):
    code = models.CharField(max_length=20)
    date = models.DateField()
    starts_at = models.DateTimeField(null=True, blank=True)
    time = models.TimeField(null=True, blank=True)
    price = models.DecimalField(max_digits=8, decimal_places=2, null=True, blank=True)
    rating = models.FloatField(null=True, blank=True)
    number = models.IntegerField(default=0)
    facets = models.IntegerField(default=0)
    featured = models.BooleanField(default=False)
    link = models.URLField(blank=True)
    subtitle = models.CharField(max_length=100, blank=True)
    never = models.CharField(max_length=100, null=True, blank=True)
    key = models.UUIDField()
    data = models.JSONField(default=dict, blank=True)
    body = RichTextField(blank=True)
    content = StreamField(
        [
            ("heading", blocks.CharBlock()),
            ("paragraph", blocks.RichTextBlock()),
            ("image", ImageChooserBlock()),
            ("page", blocks.PageChooserBlock()),
            (
                "quote",
                blocks.StructBlock([("text", blocks.TextBlock()), ("by", blocks.CharBlock())]),
            ),
            ("items", blocks.ListBlock(blocks.CharBlock())),
        ],
        blank=True,
    )
    feed_image = models.ForeignKey(
        "wagtailimages.Image", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    related_page = models.ForeignKey(
        "wagtailcore.Page", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    author = models.ForeignKey(Person, null=True, blank=True, on_delete=models.SET_NULL)
    colour = models.ForeignKey(Colour, null=True, blank=True, on_delete=models.SET_NULL)
    readers = ParentalManyToManyField(Person, related_name="+", blank=True)
    tags = ClusterTaggableManager(through=ArticleTag, blank=True)

    @property
    def words(self):
        return len(self.body.split())

    api_meta_fields = [APIField("code")]
    api_fields = [
        *map(APIField, "date starts_at time price rating number facets featured".split()),
        *map(APIField, "link subtitle never key data body content feed_image".split()),
        *map(APIField, "related_page author colour readers tags words links".split()),
        APIField("thumb", serializer=ImageRenditionField("fill-10x10", source="feed_image")),
    ]


class ArticleLink(Orderable):
    article = ParentalKey(ArticlePage, related_name="links", on_delete=models.CASCADE)
    title = models.CharField(max_length=100)
    url = models.URLField(blank=True)
    page = models.ForeignKey(
        "wagtailcore.Page", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    api_fields = [APIField("title"), APIField("url"), APIField("page")]


class ReviewPage(ArticlePage):
    """An article with more to it."""

    stars = models.IntegerField(default=0)

    api_fields = [*ArticlePage.api_fields, APIField("stars")]
