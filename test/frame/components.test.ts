import { expect, it } from "vitest";
import { highlight } from "../../src/frame/text/highlight.ts";
import { grouped } from "../../src/frame/nav.ts";
import { renderPage } from "../../src/frame/render.ts";
import { sparkline } from "../../src/frame/text/sparkline.ts";

it("draws a sparkline from 0, with gaps for unknown values", () => {
  expect(sparkline([0, 10])).toEqual({ line: "M0 22L100 2", area: "M0 24L0 22L100 2L100 24Z" });
  expect(sparkline([5, null, 5])).toEqual({ line: "M0 2h0M100 2h0", area: "" });
  expect(sparkline([])).toEqual({ line: "", area: "" });
  expect(sparkline([0, 0]).line).toBe("M0 22L100 22");
});

it("highlights known languages and escapes all others", () => {
  expect(highlight('{"a":1}', "json")).toContain('<span class="token number">1</span>');
  expect(highlight("<b>&", "json")).not.toContain("<b>");
  expect(highlight("<b>&")).toBe("&lt;b&gt;&amp;");
  expect(highlight("<b>", "__proto__")).toBe("&lt;b&gt;");
});

it("groups the navigation under headings in their order", () => {
  const [a, b, c] = ["x", "y", "x"].map((group, at) => ({ label: String(at), href: `/${at}`, group }));
  expect(grouped([a!, b!, c!])).toEqual([
    { label: "x", entries: [a, c] },
    { label: "y", entries: [b] },
  ]);
});

it("escapes what components are given", () => {
  const evil = '"><script>alert(1)</script>';
  const page = renderPage(
    { template: "ops/styleguide/styleguide", layout: "ops/layout" },
    { figure: figure(evil) },
    {
      title: evil,
      url: "/ops/styleguide",
      visitor: { email: evil, role: evil },
      flash: evil,
      crumbs: [{ label: evil, href: "/ops" }],
      refreshSeconds: null,
      nav: [{ label: evil, href: "/ops", group: evil }],
      header: { lead: evil, action: { label: evil, href: evil } },
      assets: { style: "", script: "" },
    },
  );
  expect(page).not.toContain("<script>alert");
  expect(page).not.toMatch(/ style="| on[a-z]+="/);
});

function figure(title: string) {
  return { title, svg: null, columns: [title], rows: [[title]] };
}
