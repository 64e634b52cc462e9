import type { Response } from "express";
import type { Read } from "../db/reads.ts";
import type { Reply } from "../http/request.ts";
import type { Tone } from "./text/format.ts";

/** A link of the breadcrumbs. */
export interface Crumb {
  label: string;
  href: string;
}

/** The width of a page's content: `reading` (720 px) for texts and forms, `full` for working pages. */
export type Width = "reading" | "full";

/** The content of the page header next to the title: see src/frame/components/page-header.eta. */
export interface PageHeader {
  /** One sentence about the page. */
  lead?: string;
  badges?: readonly { text: string; tone: Tone }[];
  /** The one primary action of the page. */
  action?: { label: string; href: string; icon?: string };
  more?: readonly { label: string; href: string }[];
  tabs?: readonly { label: string; href: string; isCurrent?: boolean; count?: number }[];
}

/**
 * What a page handler returns: a template of its surface (`board/board`) with its data, a file to download, or another
 * page of its surface to redirect to. Null is 404.
 */
export type Shown =
  | {
      template: string;
      title: string;
      data: object;
      refreshSeconds?: number;
      crumbs?: readonly Crumb[];
      header?: PageHeader;
      width?: Width;
    }
  | { file: string; type: string; text: string }
  | { location: string };

/** A file to download that may be long: its parts are made one after another, while it is sent. */
export interface FileInParts {
  file: string;
  type: string;
  /** `read` runs the queries of a part. */
  parts: (read: Read) => AsyncGenerator<string>;
}

/** The response for a page; `locals` has the request id. */
export type PageReply = Response & Reply;

/** A part of the service with its own sign-in and pages. */
export interface Surface {
  /** Its base path, such as `/ops`: redirects stay below it. */
  base: string;
  /** The folder below `src` with its templates and its layout: `ops`. */
  folder: string;
  /** The text if PostgreSQL is down. */
  away: string;
}
