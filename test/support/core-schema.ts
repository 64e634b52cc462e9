export { createDatabase as createCoreDatabase } from "./database.ts";
