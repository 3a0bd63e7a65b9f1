import createClient from "openapi-fetch";
import type { components, paths } from "./windfall";

type Page = components["schemas"]["pages.Item"];
type Event = components["schemas"]["demo.EventPage"];

function isEvent(page: Page): page is Event {
  return page.meta?.type === "demo.EventPage";
}

async function main(baseUrl: string): Promise<void> {
  const client = createClient<paths>({ baseUrl });

  const events = await client.GET("/pages/", {
    params: {
      query: { type: "demo.EventPage", locale: "en", order: "day", fields: "day,picture", limit: 2 },
    },
  });
  for (const page of events.data?.items ?? []) {
    if (isEvent(page)) {
      const day: string = page.day ?? "some day";
      console.log(`${day}: ${page.title}, ${page.picture?.meta?.download_url ?? "no picture"}`);
    }
  }

  const page = await client.GET("/pages/detail_by_path/", {
    params: { query: { html_path: "/journal/" } },
  });
  console.log(page.data?.title, page.data?.meta?.parent?.title);

  const wrong = await client.GET("/pages/", { params: { query: { limit: 50 } } });
  console.log(wrong.response.status, wrong.error?.message);
}

void main(process.argv[2] ?? "http://localhost:5000/api/v2");
