// The baseline of `bench api`: a bare Express app that returns the JSON of a file by res.json, without keys, rate limits or
// metering. Usage: node bare-express.ts FILE; sends its URL to the parent.
import { readFileSync } from "node:fs";
import express from "express";

const body: unknown = JSON.parse(readFileSync(process.argv[2] ?? "", "utf8"));
const app = express();
app.get("/api/v1/forecasts", (_, response) => {
  response.json(body);
});
const server = app.listen(0, "127.0.0.1", () => {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("expected a port, got none");
  process.send?.(`http://127.0.0.1:${address.port}`);
});
