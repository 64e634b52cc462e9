import type { Response } from "express";
import type { Reply } from "../http/request.ts";
import type { Tone } from "./format.ts";

/** A page above another, for the line of links that says where one is. */
export interface Crumb {
  label: string;
  href: string;
}

/** How wide the content of a page is: `reading` (720 px) for texts and forms, `full` for working pages. */
export type Width = "reading" | "full";

/** What the header of a page holds next to its title: see src/frame/components/page-header.eta. */
export interface PageHeader {
  /** One sentence about the page. */
  lead?: string;
  badges?: readonly { text: string; tone: Tone }[];
  /** The one primary action of the page. */
  action?: { label: string; href: string; icon?: string };
  more?: readonly { label: string; href: string }[];
  tabs?: readonly { label: string; href: string; isCurrent?: boolean; count?: number }[];
}

/** What a page shows: a template of its surface (`board/board`) with its data, or a file to keep. Null is "not found". */
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
  | { file: string; type: string; text: string };

/** An answer that is a page; `locals` hold its request id. */
export type PageReply = Response & Reply;

/** A place where people who sign in have pages of their own. */
export interface Surface {
  /** Where it begins, such as `/ops`: nobody is sent on to anywhere else. */
  base: string;
  /** The folder below `src` that has its templates, with the layout around them: `ops`. */
  folder: string;
  /** What to say where PostgreSQL does not answer. */
  away: string;
}
