import type { OpsAction, OpsPage } from "../contract.ts";
import { mailPage, mailsPage } from "./mails.ts";
import { retryAllMailsAction, retryMailsAction } from "./retry.ts";

/** Looking at mails. */
export const mailPages = [mailsPage, mailPage] as readonly OpsPage[];

/** Having them sent again. */
export const mailActions = [retryMailsAction, retryAllMailsAction] as readonly OpsAction[];
