/**
 * Makes types.ts of the API's document, or says that it is not the one that the document makes.
 *
 * Whoever has this folder alone uses the document of a running instance instead:
 * npx openapi-typescript http://127.0.0.1:3000/openapi.json --output src/types.ts
 */
import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";
import { openApiDocument } from "../../src/api/openapi/document.ts";

const file = new URL("src/types.ts", import.meta.url);
const document = openApiDocument({ site: "https://rounds.example", version: "1" });
const made = `// Made by \`npm run types\`. Changes here are lost.\n${astToString(await openapiTS(JSON.stringify(document)))}`;

if (process.argv.includes("--write")) {
  await writeFile(file, made);
} else if ((await readFile(file, "utf8")) !== made) {
  console.error(
    "types.ts is not what the document makes; run `npm run types --prefix clients/typescript` and commit it",
  );
  process.exitCode = 1;
}
