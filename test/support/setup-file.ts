import { afterAll } from "vitest";
import { endFile } from "./file-end.ts";

// runs again for each test file
afterAll(endFile);
